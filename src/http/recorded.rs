//! Requests that are refused before they become calls, for a recording: as much of their bytes as the
//! refusal is about. No key is in them: only whether the token was shown, or another one.
//!
//! What depends on the moment (too slow, too many), on a head that is too large or on a body that was not
//! kept is left out, since a replay could not be refused for the same; the recording says how many there
//! were.

use std::fmt::Write;

use http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HOST, ORIGIN};
use http::request::Parts;
use http::{HeaderName, StatusCode};

use super::auth::AuthError;
use super::sse::LAST_EVENT_ID;
use super::{CLIENT, REQUESTER, Service};
use crate::record::{LeftOut, RefusedRequest, Shown};
use crate::rpc::caller::ClientName;

impl Service {
    /// Notes a request that was refused; `body` is what was read of it.
    pub(super) fn record_refused(&self, parts: &Parts, body: &[u8], status: StatusCode) {
        let Some(recorder) = self.rpc.recorder() else { return };
        let (Some(head), Ok(body)) = (head(parts, status), std::str::from_utf8(body)) else {
            recorder.left_out(LeftOut::Request(status.as_u16()));
            return;
        };
        let shown = match self.auth.check(&parts.headers) {
            _ if !parts.headers.contains_key(AUTHORIZATION) => Shown::Nothing,
            Ok(()) => Shown::Token,
            Err(AuthError::Wrong) => Shown::AnotherToken,
            Err(AuthError::Missing) => Shown::NoToken,
        };
        let client = parts.headers.get(CLIENT).map(|name| ClientName::parse(name.as_bytes()));
        let client = client.and_then(Result::ok).unwrap_or_default();
        let body = body.to_owned();
        recorder.refused(RefusedRequest {
            client: client.as_str().to_owned(),
            head,
            shown,
            body,
            status: status.as_u16(),
        });
    }
}

impl Service {
    /// Notes that a request was refused for a reason that a replay cannot have.
    pub(super) fn record_left_out(&self, status: StatusCode) {
        if let Some(recorder) = self.rpc.recorder() {
            recorder.left_out(LeftOut::Request(status.as_u16()));
        }
    }
}

/// The lines that decide, without the token; `None` where a replay could not be refused for them.
fn head(parts: &Parts, status: StatusCode) -> Option<String> {
    // A length that is too large is refused before anything is sent of it.
    let of_length = match status {
        StatusCode::BAD_REQUEST
        | StatusCode::UNAUTHORIZED
        | StatusCode::FORBIDDEN
        | StatusCode::NOT_FOUND
        | StatusCode::METHOD_NOT_ALLOWED => None,
        StatusCode::PAYLOAD_TOO_LARGE if parts.headers.contains_key(CONTENT_LENGTH) => {
            Some(CONTENT_LENGTH)
        }
        _ => return None,
    };
    let names = [REQUESTER, CLIENT, LAST_EVENT_ID].map(HeaderName::from_static);
    let names = [HOST, ORIGIN, CONTENT_TYPE].into_iter().chain(names).chain(of_length);
    let mut head = format!("{} {} HTTP/1.1\r\n", parts.method, parts.uri);
    for name in names {
        for value in parts.headers.get_all(&name) {
            write!(head, "{name}: {}\r\n", value.to_str().ok()?).ok()?;
        }
    }
    Some(head)
}
