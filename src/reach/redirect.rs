//! Where somebody who moved sends our request.
//! Pure: it makes the next request or says why there is none. The address itself is checked where
//! it is connected to, like every other.

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode, Uri, header};

use crate::limits::REDIRECTS_MAX;

/// Why a redirection is not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoRedirect {
    #[error("more than {REDIRECTS_MAX} times")]
    TooMany,
    #[error("without saying where")]
    Nowhere,
    #[error("to an unencrypted address")]
    Unencrypted,
}

/// Those that keep method and body. The others would turn a question into a visit.
pub fn is_one(status: StatusCode) -> bool {
    matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT)
}

/// The request after it was sent elsewhere, where `may_be_asked` has nothing against it. Another origin
/// gets none of our secrets.
pub fn follow(
    request: &Request<Bytes>,
    answer: &HeaderMap,
    followed: u32,
    may_be_asked: impl Fn(&Uri) -> bool,
) -> Result<Request<Bytes>, NoRedirect> {
    if followed >= REDIRECTS_MAX {
        return Err(NoRedirect::TooMany);
    }
    let location = answer.get(header::LOCATION).and_then(|value| value.to_str().ok());
    let next = location.and_then(|location| resolved(request.uri(), location));
    let next = next.ok_or(NoRedirect::Nowhere)?;
    if !may_be_asked(&next) {
        return Err(NoRedirect::Unencrypted);
    }
    let mut moved = request.clone();
    if origin(&next) != origin(request.uri()) {
        let headers = moved.headers_mut();
        let secret: Vec<_> = headers
            .iter()
            .filter(|(_, value)| value.is_sensitive())
            .map(|(name, _)| name.clone())
            .collect();
        for name in secret {
            headers.remove(name);
        }
    }
    *moved.uri_mut() = next;
    Ok(moved)
}

/// A location as it stands in a header: a whole URL, or a path on the same server.
fn resolved(from: &Uri, location: &str) -> Option<Uri> {
    let location = location.split('#').next().unwrap_or(location);
    if location.starts_with('/') && !location.starts_with("//") {
        let mut parts = from.clone().into_parts();
        parts.path_and_query = Some(location.parse().ok()?);
        return Uri::from_parts(parts).ok();
    }
    let uri: Uri = location.parse().ok()?;
    let known = matches!(uri.scheme_str(), Some("http" | "https"));
    let user = uri.authority().is_some_and(|authority| authority.as_str().contains('@'));
    (known && uri.host().is_some() && !user).then_some(uri)
}

fn origin(uri: &Uri) -> (Option<&str>, Option<&str>, Option<u16>) {
    (uri.scheme_str(), uri.host(), uri.port_u16())
}

#[cfg(test)]
#[path = "redirect_tests.rs"]
mod tests;
