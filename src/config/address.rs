//! Reads `base_url`: where a provider is asked. It decides by what the text says alone; what a name
//! leads to is checked when it is resolved.

use super::section::Field;
use crate::reach::{Forbidden, Reach, literal};

pub(super) fn base_url(
    field: &Field<'_>,
    allow_insecure_http: bool,
    reach: Reach,
) -> Option<String> {
    let text = field.text()?;
    let uri = text.parse::<http::Uri>().unwrap_or_default();
    let host = uri.host().unwrap_or_default();
    let port_fits = uri.port_u16().is_some() || uri.authority().is_some_and(|a| a == host);
    let plain = !host.is_empty() && port_fits && !text.contains(['?', '#', '@']);
    match uri.scheme_str() {
        Some("https") if plain => {}
        Some("http") if plain && (allow_insecure_http || is_loopback(host)) => {}
        Some("http") if plain => field.refuse(
            "plain http to another machine shows the key and every message to the network",
            "use https, or set `allow_insecure_http` to true",
        ),
        _ => {
            field.refuse(
                "expected an http or https URL with nothing but host, port and path",
                "write it like \"https://api.openai.com/v1\"",
            );
            return None;
        }
    }
    if let Some(Err(forbidden)) = literal(host).map(|address| reach.check(address)) {
        let hint = match forbidden {
            Forbidden::Private { .. } => {
                "set `network.allow_private` to true if models may be asked there"
            }
            Forbidden::Metadata { .. } => "name another host: no setting allows this one",
            Forbidden::NoMachine { .. } => "name the machine that is to be asked",
        };
        field.refuse(&forbidden.to_string(), hint);
    }
    Some(text.to_owned())
}

/// Whether a URL's host is this machine.
pub fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost")
        || literal(host).is_some_and(|address| address.is_loopback())
}
