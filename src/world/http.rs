//! Outgoing HTTP: a whole request in; status, headers and a stream of bytes out.
//! No policy: no redirects, no retries, no proxies, no decompression. Those who call it bound the
//! waits, read the records and decide what to repeat, so that all of that is simulated too.

use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::Stream;
use http::{HeaderMap, Request, StatusCode};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{self, PemObject};

use super::BoxFuture;
use crate::reach::Reach;

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
    /// A connection that was kept from an earlier request closed before the whole response head had
    /// arrived: the peer had most likely given it up, and a fresh one may do at once. A request that
    /// waited for its own connection and was then given a kept one may be told `Reset` instead.
    #[error("a kept connection was closed before the answer")]
    Stale,
    /// The body ended before its declared end, or the connection broke within it.
    #[error("the connection broke in the middle of the answer")]
    Broken,
    #[error("the request cannot be sent as it is")]
    Request,
    /// The host is, or every address of its name is, one that the [`Reach`] leaves out.
    #[error("the address may not be reached")]
    Forbidden,
}

/// On which terms requests are sent.
#[derive(Clone, Debug, Default)]
pub struct HttpTerms {
    /// Those who may vouch for a peer besides the machine's own authorities.
    pub authorities: Authorities,
    pub reach: Reach,
}

/// Certificates of authorities. None by default.
#[derive(Clone, Debug, Default)]
pub struct Authorities {
    pub(super) certificates: Vec<CertificateDer<'static>>,
}

#[derive(Debug, thiserror::Error)]
pub enum AuthoritiesError {
    #[error("it holds no certificate in PEM form")]
    Empty,
    #[error("it is no PEM file")]
    Pem {
        #[source]
        source: pem::Error,
    },
    #[error("its certificate {number} is no authority's certificate")]
    Certificate {
        /// Counts from 1.
        number: usize,
        #[source]
        source: rustls::Error,
    },
}

impl Authorities {
    /// Reads one or many certificates, and checks that each can be used.
    pub fn parse(pem: &[u8]) -> Result<Self, AuthoritiesError> {
        let mut usable = RootCertStore::empty();
        let mut certificates = Vec::new();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate.map_err(|source| AuthoritiesError::Pem { source })?;
            let number = certificates.len() + 1;
            usable
                .add(certificate.clone())
                .map_err(|source| AuthoritiesError::Certificate { number, source })?;
            certificates.push(certificate);
        }
        if certificates.is_empty() {
            return Err(AuthoritiesError::Empty);
        }
        Ok(Self { certificates })
    }
}

/// Which connection a request may take, as one of its extensions; without it, [`Self::Kept`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Connection {
    /// One that was kept from an earlier request, if there is one.
    #[default]
    Kept,
    /// One that nobody used before.
    Fresh,
}

impl Connection {
    pub fn of<T>(request: &Request<T>) -> Self {
        request.extensions().get().copied().unwrap_or_default()
    }
}

pub trait Http: Send + Sync {
    /// A client with terms, and connections, of its own. The machine's own client is on the default
    /// terms.
    fn with(self: Arc<Self>, terms: &HttpTerms) -> Arc<dyn Http>;

    /// Sends `request` (absolute URI, whole body) and returns once the response head is there.
    /// The request may carry a [`Connection`].
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<HttpResponse, HttpError>>;
}
