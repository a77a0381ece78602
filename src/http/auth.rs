//! Who may come in at all: names of this machine, pages of this machine, holders of the token.
//! Pure.

use std::net::IpAddr;

use http::HeaderMap;
use http::header::{AUTHORIZATION, HOST, ORIGIN};
use secrecy::{ExposeSecret, SecretString};
use subtle::ConstantTimeEq;

/// Whether callers must show the token.
#[derive(Clone, Debug)]
pub enum Auth {
    Token(SecretString),
    /// `serve --no-auth`, for tests.
    Off,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthError {
    Missing,
    Wrong,
}

impl Auth {
    pub fn check(&self, headers: &HeaderMap) -> Result<(), AuthError> {
        let Self::Token(token) = self else {
            return Ok(());
        };
        let shown = bearer(headers).ok_or(AuthError::Missing)?;
        let same = shown.ct_eq(token.expose_secret().as_bytes());
        if bool::from(same) { Ok(()) } else { Err(AuthError::Wrong) }
    }
}

/// The token of the one `Authorization: Bearer …` header.
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let value = only(headers, &AUTHORIZATION)?;
    let (scheme, token) = value.split_at_checked(b"bearer ".len())?;
    let token = token.trim_ascii();
    (scheme.eq_ignore_ascii_case(b"bearer ") && !token.is_empty()).then_some(token)
}

/// A foreign name in `Host` is how a web page reaches a local server behind the browser's back.
pub fn host_is_loopback(headers: &HeaderMap, authority: Option<&str>) -> bool {
    let named = only(headers, &HOST).and_then(|host| std::str::from_utf8(host).ok());
    named.is_some_and(is_loopback) && authority.is_none_or(is_loopback)
}

/// No `Origin`, or that of a page from this machine. `null` is nobody's.
pub fn origin_is_loopback(headers: &HeaderMap) -> bool {
    if !headers.contains_key(ORIGIN) {
        return true;
    }
    let origin = only(headers, &ORIGIN).and_then(|origin| std::str::from_utf8(origin).ok());
    let host = origin.and_then(|origin| {
        origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"))
    });
    host.is_some_and(is_loopback)
}

/// `localhost`, an address of 127.0.0.0/8 or `[::1]`, with any port.
fn is_loopback(host: &str) -> bool {
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((name, port)) => (name, port),
            None => return false,
        },
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    let port_is_fine = match port.strip_prefix(':') {
        Some(port) => port.parse::<u16>().is_ok(),
        None => port.is_empty(),
    };
    let bracketed = host.starts_with('[');
    let name_is_fine = match name.parse::<IpAddr>() {
        Ok(address) => address.is_loopback() && address.is_ipv6() == bracketed,
        Err(_) => !bracketed && name.eq_ignore_ascii_case("localhost"),
    };
    port_is_fine && name_is_fine
}

/// The value of a header that may stand only once.
fn only<'a>(headers: &'a HeaderMap, name: &http::HeaderName) -> Option<&'a [u8]> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?;
    values.next().is_none().then_some(first.as_bytes())
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    fn headers(name: &HeaderName, values: &[&[u8]]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(name, HeaderValue::from_bytes(value).unwrap());
        }
        headers
    }

    #[test]
    fn only_names_of_this_machine_pass_as_host() {
        let host = |values: &[&[u8]]| host_is_loopback(&headers(&HOST, values), None);
        let good = ["localhost", "LOCALHOST:1", "127.0.0.1:8765", "127.1.2.3", "[::1]", "[::1]:80"];
        for good in good {
            assert!(host(&[good.as_bytes()]), "{good}");
        }
        let bad = "evil.example localhost.evil localhost: localhost:x ::1 10.0.0.1 [127.0.0.1] [::1 \
                   [::1]x 0.0.0.0 localhost:99999 127.0.0.1. [localhost]";
        for bad in bad.split(' ').chain([""]) {
            assert!(!host(&[bad.as_bytes()]), "{bad}");
        }
        assert!(!host(&[]));
        assert!(!host(&[b"localhost", b"localhost"]));
        assert!(!host(&[b"\xff"]));
        assert!(!host_is_loopback(&headers(&HOST, &[b"localhost"]), Some("evil.example")));
    }

    #[test]
    fn only_pages_of_this_machine_pass_as_origin() {
        let origin = |values: &[&[u8]]| origin_is_loopback(&headers(&ORIGIN, values));
        assert!(origin(&[]));
        assert!(origin(&[b"http://localhost:3000"]));
        assert!(origin(&[b"https://127.0.0.1"]));
        for bad in [&b"null"[..], b"", b"http://evil.example", b"file://", b"localhost", b"\xff"] {
            assert!(!origin(&[bad]));
        }
        assert!(!origin(&[b"http://localhost", b"http://evil.example"]));
    }

    #[test]
    fn the_token_is_asked_for_and_compared() {
        let auth = Auth::Token("nxk_secret".to_owned().into());
        let check = |values: &[&[u8]]| auth.check(&headers(&AUTHORIZATION, values));
        assert_eq!(check(&[b"Bearer nxk_secret"]), Ok(()));
        assert_eq!(check(&[b"bEARER   nxk_secret"]), Ok(()));
        for malformed in [&b""[..], b"Bearer", b"Bearer ", b"Basic nxk_secret", b"nxk_secret"] {
            assert_eq!(check(&[malformed]), Err(AuthError::Missing));
        }
        assert_eq!(check(&[]), Err(AuthError::Missing));
        assert_eq!(check(&[b"Bearer nxk_secret", b"Bearer nxk_secret"]), Err(AuthError::Missing));
        for wrong in [&b"Bearer nxk_secre"[..], b"Bearer nxk_secret2", b"Bearer \xc3\xa9"] {
            assert_eq!(check(&[wrong]), Err(AuthError::Wrong));
        }
        assert_eq!(Auth::Off.check(&HeaderMap::new()), Ok(()));
    }
}
