//! Where a server is, as people write it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::home::DEFAULT_PORT;

const SCHEME: &str = "http://";

/// A server's address. Tokens are for this machine only, so nothing else is one.
pub fn local_address(url: &str) -> Result<SocketAddr, String> {
    let rest = url.strip_prefix(SCHEME).ok_or("it must begin with http://")?;
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    let (host, port) = match rest.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => {
            (host, port.parse().map_err(|_| format!("{port:?} is no port"))?)
        }
        Some(_) | None => (rest, DEFAULT_PORT),
    };
    let ip = match host {
        "localhost" | "127.0.0.1" => IpAddr::V4(Ipv4Addr::LOCALHOST),
        "[::1]" => IpAddr::V6(Ipv6Addr::LOCALHOST),
        _ => return Err("servers are on this machine: localhost, 127.0.0.1 or [::1]".to_owned()),
    };
    Ok(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_on_this_machine() {
        let read = |url: &str| local_address(url).map(|address| address.to_string());
        let of = |text: &str| Ok(text.to_owned());
        assert_eq!(read("http://localhost"), of("127.0.0.1:8765"));
        assert_eq!(read("http://127.0.0.1:9000/"), of("127.0.0.1:9000"));
        assert_eq!(read("http://[::1]:9000"), of("[::1]:9000"));
        assert_eq!(read("http://[::1]"), of("[::1]:8765"));
        for bad in [
            "localhost:8765",
            "https://localhost",
            "http://",
            "http://example.com:80",
            "http://localhost:x",
            "http://localhost:8765/rpc",
            "http://localhost@example.com",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
