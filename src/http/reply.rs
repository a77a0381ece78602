//! Answers as HTTP: whole ones, and streams of events. What is refused before JSON-RPC still carries a JSON-RPC error, with a null id.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONNECTION, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;

use super::phase::Exchange;
use crate::activity::Busy;
use crate::hub::Subscription;
use crate::limits::{BODY_BYTES_MAX, REQUEST_RECEIVE_MAX, RETRY_AFTER_SECONDS};
use crate::policy::Reason;
use crate::record::StreamSeen;
use crate::rpc::code::Code;
use crate::rpc::wire::{self, ErrorObject, Id};
use crate::rpc::{Reply, caller};

/// A request that never reaches JSON-RPC.
#[derive(Debug, PartialEq)]
pub struct Refusal {
    status: StatusCode,
    /// The JSON-RPC error, written out.
    body: String,
    header: Option<(HeaderName, &'static str)>,
    close: bool,
}

impl Refusal {
    pub fn request(status: StatusCode, message: impl Into<String>) -> Self {
        Self::new(status, ErrorObject::new(Code::InvalidRequest, message))
    }

    pub fn params(status: StatusCode, message: impl Into<String>) -> Self {
        Self::new(status, ErrorObject::new(Code::InvalidParams, message))
    }

    pub fn body_too_large() -> Self {
        let message = format!("Request body too large: at most {BODY_BYTES_MAX} bytes");
        Self::request(StatusCode::PAYLOAD_TOO_LARGE, message).closing()
    }

    pub fn body_broken() -> Self {
        let message = "Request body malformed or cut off";
        Self::request(StatusCode::BAD_REQUEST, message).closing()
    }

    pub fn too_slow() -> Self {
        let seconds = REQUEST_RECEIVE_MAX.as_secs();
        let message = format!("Request not received within {seconds} seconds");
        Self::request(StatusCode::REQUEST_TIMEOUT, message).closing()
    }

    pub fn too_many_connections() -> Self {
        let error = ErrorObject::new(Code::Overloaded, "Too many connections; try again later");
        Self::new(StatusCode::SERVICE_UNAVAILABLE, error).closing()
    }

    pub fn unknown_requester(shown: &[u8]) -> Self {
        let shown: String = String::from_utf8_lossy(shown).chars().take(80).collect();
        let message = format!("Unknown requester: {shown}");
        Self::new(StatusCode::FORBIDDEN, caller::refused(Reason::Policy, message))
    }

    pub fn new(status: StatusCode, error: ErrorObject) -> Self {
        Self { status, body: wire::answer(&Id::Null, &Err(error)), header: None, close: false }
    }

    #[must_use]
    pub fn with(mut self, name: HeaderName, value: &'static str) -> Self {
        self.header = Some((name, value));
        self
    }

    /// The connection ends with this answer.
    #[must_use]
    pub fn closing(mut self) -> Self {
        self.close = true;
        self
    }

    pub fn response(self) -> Response<Outgoing> {
        let mut response = json(self.status, self.body);
        if let Some((name, value)) = self.header {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        if self.close {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }

    /// The whole answer as bytes, for a connection that hyper does not serve (any more).
    pub fn bytes(self) -> Vec<u8> {
        let Self { status, body, .. } = self;
        format!(
            "HTTP/1.1 {} {}\r\ncontent-type: application/json\r\nconnection: close\r\n\
             content-length: {}\r\n\r\n{body}",
            status.as_u16(),
            status.canonical_reason().expect("our own statuses have names"),
            body.len()
        )
        .into_bytes()
    }
}

pub fn json(status: StatusCode, body: impl Into<Bytes>) -> Response<Outgoing> {
    let mut response = Response::new(Outgoing::Whole(Full::new(body.into())));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

pub fn of_rpc(reply: Reply) -> Response<Outgoing> {
    match reply {
        Reply::Answer(body) => json(StatusCode::OK, body),
        Reply::NotJsonRpc(body) => json(StatusCode::BAD_REQUEST, body),
        Reply::NotFound(body) => json(StatusCode::NOT_FOUND, body),
        Reply::Failed(body) => json(StatusCode::INTERNAL_SERVER_ERROR, body),
        Reply::NoContent => {
            let mut response = Response::new(Outgoing::Whole(Full::default()));
            *response.status_mut() = StatusCode::NO_CONTENT;
            response
        }
        Reply::Busy(body) => {
            let mut response = json(StatusCode::SERVICE_UNAVAILABLE, body);
            response.headers_mut().insert(RETRY_AFTER, RETRY_AFTER_SECONDS.into());
            response
        }
    }
}

pub fn of_events((events, seen): (Subscription, Option<StreamSeen>)) -> Response<Outgoing> {
    let events = Outgoing::Events { events: Box::new(events), _seen: seen };
    let mut response = Response::new(events);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

/// What goes out after an answer's head.
#[derive(Debug)]
pub enum Outgoing {
    Whole(Full<Bytes>),
    /// Frames as they come, until the stream ends, and who notes that it did.
    Events {
        events: Box<Subscription>,
        _seen: Option<StreamSeen>,
    },
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match self.get_mut() {
            Self::Whole(body) => Pin::new(body).poll_frame(cx),
            Self::Events { events, .. } => {
                events.poll_some(cx).map(|frame| frame.map(|frame| Ok(Frame::data(frame))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(body) => body.is_end_stream(),
            Self::Events { .. } => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(body) => body.size_hint(),
            Self::Events { .. } => SizeHint::default(),
        }
    }
}

/// An answer's body that marks the end of its exchange: from then on the connection is idle, and maybe
/// the server.
#[derive(Debug)]
pub struct Tracked {
    body: Outgoing,
    _exchange: Exchange,
    _busy: Busy,
}

impl Tracked {
    pub fn new(body: Outgoing, exchange: Exchange, busy: Busy) -> Self {
        Self { body, _exchange: exchange, _busy: busy }
    }
}

impl Body for Tracked {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
