//! Every range of the network rule with its edges, in all the forms an address can take.

use super::*;

/// What the rule says with and without leave to go to private networks.
fn judged(address: &str) -> (Result<(), Forbidden>, Result<(), Forbidden>) {
    let address = address.parse().unwrap();
    (Reach::Public.check(address), Reach::Private.check(address))
}

#[track_caller]
fn all(addresses: &[&str], expected: impl Fn(IpAddr) -> [Result<(), Forbidden>; 2]) {
    for address in addresses {
        let [public, private] = expected(address.parse().unwrap());
        assert_eq!(judged(address), (public, private), "{address}");
    }
}

#[test]
fn this_machine_is_always_within_reach() {
    let own = ["127.0.0.0", "127.0.0.1", "127.255.255.255", "::1", "::ffff:127.0.0.1"];
    all(&own, |_| [Ok(()), Ok(())]);
}

#[test]
fn public_addresses_are_within_reach_up_to_the_edges() {
    let public = [
        "1.0.0.0",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "169.253.255.255",
        "169.255.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "191.255.255.255",
        "192.0.1.0",
        "192.167.255.255",
        "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "223.255.255.255",
        "2001:db8::1",
        "fbff::1",
        "fe7f::1",
        "2606:4700::1111",
        "::ffff:8.8.8.8",
        "64:ff9b::8.8.8.8",
        "2002:808:808::1",
    ];
    all(&public, |_| [Ok(()), Ok(())]);
}

#[test]
fn private_addresses_need_leave() {
    let private = [
        "10.0.0.0",
        "10.255.255.255",
        "172.16.0.0",
        "172.31.255.255",
        "192.168.0.0",
        "192.168.255.255",
        "100.64.0.0",
        "100.127.255.255",
        "169.254.0.0",
        "169.254.255.255",
        "169.254.169.253",
        "169.254.169.255",
        "192.0.0.0",
        "192.0.0.255",
        "198.18.0.0",
        "198.19.255.255",
        "fc00::",
        "fdff:ffff::1",
        "fd00:ec2::253",
        "fe80::1",
        "feff::1",
        "64:ff9b:1::8.8.8.8",
        "::ffff:10.0.0.1",
        "::10.0.0.1",
        "64:ff9b::10.0.0.1",
        "2002:a00:1::1",
    ];
    all(&private, |address| [Err(Forbidden::Private { address }), Ok(())]);
}

#[test]
fn metadata_is_never_within_reach_in_whatever_form() {
    let metadata = [
        "169.254.169.254",
        "169.254.170.2",
        "169.254.170.23",
        "169.254.42.42",
        "168.63.129.16",
        "fd20:ce::254",
        "fd00:ec2::23",
        "fd00:42::42",
        "100.100.100.200",
        "192.0.0.192",
        "fd00:ec2::254",
        "::ffff:169.254.169.254",
        "::ffff:169.254.170.2",
        "::ffff:100.100.100.200",
        "::169.254.169.254",
        "::169.254.170.2",
        "::100.100.100.200",
        "64:ff9b::169.254.169.254",
        "64:ff9b::169.254.170.2",
        "64:ff9b::100.100.100.200",
        "64:ff9b:1::169.254.169.254",
        "64:ff9b:1:2:3:4:6464:64c8",
        "2002:a9fe:a9fe::",
        "2002:a9fe:aa02::1",
        "2002:6464:64c8::1",
    ];
    all(&metadata, |address| [Err(Forbidden::Metadata { address }); 2]);
}

#[test]
fn what_is_no_single_machine_is_never_within_reach() {
    let nobody = [
        "0.0.0.0",
        "0.255.255.255",
        "224.0.0.0",
        "239.255.255.255",
        "240.0.0.0",
        "255.255.255.255",
        "::",
        "ff00::",
        "ff02::1",
        "ffff::1",
        "::2:0:0",
        "::ffff:0.0.0.0",
        "::ffff:224.0.0.1",
        "::127.0.0.1",
        "64:ff9b::127.0.0.1",
        "2002:7f00:1::1",
    ];
    all(&nobody, |address| [Err(Forbidden::NoMachine { address }); 2]);
}

#[test]
fn a_host_is_an_address_or_a_name() {
    let hosts = ["127.0.0.1", "[::1]", "[::1", "::1", "[127.0.0.1]", "localhost", "1.2.3", ""];
    let (v4, v6) = (IpAddr::from([127, 0, 0, 1]), IpAddr::V6(Ipv6Addr::LOCALHOST));
    let expected = [Some(v4), Some(v6), None, Some(v6), None, None, None, None];
    assert_eq!(hosts.map(literal), expected);
}
