//! Outgoing HTTP: a whole request in; status, headers and a stream of bytes out.
//! No policy: no redirects, no retries, no proxies, no decompression. Those who call it bound the
//! waits, read the records and decide what to repeat, so that all of that is simulated too.

use std::pin::Pin;

use bytes::Bytes;
use futures_util::Stream;
use http::{HeaderMap, Request, StatusCode};

use super::BoxFuture;

pub type HttpBody = Pin<Box<dyn Stream<Item = Result<Bytes, HttpError>> + Send>>;

pub struct HttpResponse {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: HttpBody,
}

impl std::fmt::Debug for HttpResponse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpResponse").field("status", &self.status).finish_non_exhaustive()
    }
}

/// Where an exchange broke. The library's own words stay in `detail`, for the log only: they differ
/// between the real and the simulated side.
#[derive(Debug, thiserror::Error)]
#[error("{fault}")]
pub struct HttpError {
    pub fault: HttpFault,
    pub detail: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HttpFault {
    #[error("cannot connect")]
    Connect,
    /// The connection closed before the whole response head had arrived, or what came was none.
    #[error("the connection broke before the answer")]
    Reset,
    /// The body ended before its declared end, or the connection broke within it.
    #[error("the connection broke in the middle of the answer")]
    Broken,
    #[error("the request cannot be sent as it is")]
    Request,
}

pub trait Http: Send + Sync {
    /// Sends `request` (absolute URI, whole body) and returns once the response head is there.
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<HttpResponse, HttpError>>;
}
