//! The network rule: which addresses the server may ask on its own behalf.
//! Pure: it looks at addresses alone and never at names; whoever resolves a name asks for each address.

pub mod redirect; // somebody who moved

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// How far requests may go. This machine itself is always within reach, and some addresses never are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// The public network.
    #[default]
    Public,
    /// Private networks as well.
    Private,
}

/// Why an address may not be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Forbidden {
    #[error("the address {address} gives credentials of the machine to everybody who asks")]
    Metadata { address: IpAddr },
    #[error("the address {address} is no single machine's")]
    NoMachine { address: IpAddr },
    #[error("the address {address} is private")]
    Private { address: IpAddr },
}

impl Reach {
    pub fn check(self, address: IpAddr) -> Result<(), Forbidden> {
        match (Realm::of(address), self) {
            (Realm::Loopback | Realm::Public, _) | (Realm::Private, Self::Private) => Ok(()),
            (Realm::Private, Self::Public) => Err(Forbidden::Private { address }),
            (Realm::Metadata, _) => Err(Forbidden::Metadata { address }),
            (Realm::NoMachine, _) => Err(Forbidden::NoMachine { address }),
        }
    }
}

/// The host of a URL as an address, if it is one rather than a name.
pub fn literal(host: &str) -> Option<IpAddr> {
    match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(inside) => inside.parse().ok().map(IpAddr::V6),
        None => host.parse().ok(),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Realm {
    Loopback,
    Public,
    Private,
    Metadata,
    NoMachine,
}

/// Where clouds tell a machine who it is, its credentials included: most of them, AWS for containers
/// and for pods, Alibaba, Oracle, Scaleway, Azure's own host; by IPv6 AWS, its pods, Google, Scaleway.
const METADATA_V4: [Ipv4Addr; 7] = [
    Ipv4Addr::new(169, 254, 169, 254),
    Ipv4Addr::new(169, 254, 170, 2),
    Ipv4Addr::new(169, 254, 170, 23),
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(192, 0, 0, 192),
    Ipv4Addr::new(169, 254, 42, 42),
    Ipv4Addr::new(168, 63, 129, 16),
];
const METADATA_V6: [Ipv6Addr; 4] = [
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23),
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42),
];

impl Realm {
    fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => Self::of_v4(address),
            IpAddr::V6(address) => Self::of_v6(address),
        }
    }

    fn of_v4(address: Ipv4Addr) -> Self {
        match address.octets() {
            _ if METADATA_V4.contains(&address) => Self::Metadata,
            // "This network", multicast, and reserved up to broadcast. A system may take the first
            // for itself, which would make a second name of loopback.
            [0 | 224..=255, ..] => Self::NoMachine,
            [127, ..] => Self::Loopback,
            [10, ..]
            | [172, 16..=31, ..]
            | [192, 168, ..]
            | [100, 64..=127, ..]
            | [169, 254, ..]
            // Protocol assignments and benchmarks, which no public network routes.
            | [192, 0, 0, _]
            | [198, 18 | 19, ..] => Self::Private,
            _ => Self::Public,
        }
    }

    fn of_v6(address: Ipv6Addr) -> Self {
        if METADATA_V6.contains(&address) {
            return Self::Metadata;
        }
        if address == Ipv6Addr::LOCALHOST {
            return Self::Loopback;
        }
        // A system takes these for the IPv4 address itself.
        if let Some(mapped) = address.to_ipv4_mapped() {
            return Self::of_v4(mapped);
        }
        if let Some(translated) = translated(address) {
            return match Self::of_v4(translated) {
                // It would be the translator that meets itself.
                Self::Loopback => Self::NoMachine,
                realm => realm,
            };
        }
        match address.segments() {
            // The unspecified one and what was never given out beside it; multicast.
            [0 | 0xff00..=0xffff, ..] => Self::NoMachine,
            // A network's own translator: whom it leads to is for that network to say, but for one.
            [0x64, 0xff9b, 1, .., high, low] => match Self::of_v4(joined(high, low)) {
                Self::Metadata => Self::Metadata,
                Self::Loopback | Self::Public | Self::Private | Self::NoMachine => Self::Private,
            },
            // Unique local, link-local, and the old site-local.
            [0xfc00..=0xfdff | 0xfe80..=0xfeff, ..] => Self::Private,
            _ => Self::Public,
        }
    }
}

/// The IPv4 address that a translator on the way makes of an IPv6 address: the old compatible form,
/// NAT64, and 6to4.
fn translated(address: Ipv6Addr) -> Option<Ipv4Addr> {
    match address.segments() {
        [0, 0, 0, 0, 0, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => Some(joined(high, low)),
        _ => None,
    }
}

fn joined(high: u16, low: u16) -> Ipv4Addr {
    Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low))
}

#[cfg(test)]
#[path = "reach_tests.rs"]
mod tests;
