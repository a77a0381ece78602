//! Outgoing HTTP by hyper over any net: one connection per request, plain HTTP only.
//! Like the real client it has no policy: no redirects, no retries, no deadlines.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use http::header::HOST;
use http::{HeaderValue, Request, Uri};
use http_body_util::{BodyDataStream, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use nexus3::world::{BoxFuture, Http, HttpError, HttpFault, HttpResponse, Net};
use tokio_util::task::AbortOnDropHandle;

const PORT: u16 = 80;

#[derive(Clone)]
pub struct HttpClient {
    net: Arc<dyn Net>,
}

impl std::fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HttpClient")
    }
}

impl HttpClient {
    pub fn new(net: Arc<dyn Net>) -> Self {
        Self { net }
    }
}

impl Http for HttpClient {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<HttpResponse, HttpError>> {
        Box::pin(async move {
            let address = address(request.uri())?;
            let request = in_origin_form(request)?;
            let stream = self.net.connect(address).await.map_err(classified(HttpFault::Connect))?;
            let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
                .await
                .map_err(classified(HttpFault::Reset))?;
            // Whoever drops the answer, or stops waiting for it, closes the connection.
            let connection = AbortOnDropHandle::new(tokio::spawn(connection));
            let response = sender.send_request(request).await.map_err(|error| {
                let fault = if error.is_user() { HttpFault::Request } else { HttpFault::Reset };
                classified(fault)(error)
            })?;
            let (head, body) = response.into_parts();
            let body = BodyDataStream::new(body).map_err(classified(HttpFault::Broken));
            let body = body.map(move |piece| {
                let _open = (&sender, &connection);
                piece
            });
            Ok(HttpResponse { status: head.status, headers: head.headers, body: Box::pin(body) })
        })
    }
}

/// Where a URI leads. There is no TLS and no table of names: a peer that needs either cannot be
/// connected.
fn address(uri: &Uri) -> Result<SocketAddr, HttpError> {
    let unreachable = |what: &str| classified(HttpFault::Connect)(what);
    match uri.scheme_str() {
        Some("http") => {}
        Some("https") => return Err(unreachable("the client speaks no TLS")),
        Some(_) | None => return Err(classified(HttpFault::Request)("the URI is not http")),
    }
    let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    let ip = match host {
        "localhost" => IpAddr::V4(Ipv4Addr::LOCALHOST),
        _ => host.parse().map_err(|_| unreachable("the client knows no names"))?,
    };
    Ok(SocketAddr::new(ip, uri.port_u16().unwrap_or(PORT)))
}

/// The request as it stands on the wire: the path alone, and the host in its header.
fn in_origin_form(request: Request<Bytes>) -> Result<Request<Full<Bytes>>, HttpError> {
    let mut request = request.map(Full::new);
    let uri = std::mem::take(request.uri_mut());
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    let host = HeaderValue::from_str(authority).map_err(classified(HttpFault::Request))?;
    request.headers_mut().entry(HOST).or_insert(host);
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    *request.uri_mut() = path.parse().map_err(classified(HttpFault::Request))?;
    Ok(request)
}

fn classified<E: ToString>(fault: HttpFault) -> impl Fn(E) -> HttpError {
    move |error| HttpError { fault, detail: error.to_string() }
}
