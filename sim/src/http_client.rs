//! Outgoing HTTP by hyper over any net, plain HTTP only. Like the real client it keeps connections for
//! later requests, and has no policy: no redirects, no retries, no deadlines.
//!
//! A kept connection that is too old goes when the client is used again, not by a timer of its own.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::Stream;
use http::header::HOST;
use http::{HeaderValue, Request, Uri};
use http_body_util::{BodyDataStream, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use nexus3::limits::{HTTP_IDLE_CONNECTION_MAX, HTTP_IDLE_CONNECTIONS_MAX};
use nexus3::reach::{Reach, literal};
use nexus3::world::{
    BoxFuture, Connection, Http, HttpError, HttpFault, HttpResponse, HttpTerms, Net,
};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

const PORT: u16 = 80;

pub struct HttpClient {
    net: Arc<dyn Net>,
    reach: Reach,
    kept: Arc<Kept>,
}

impl std::fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HttpClient")
    }
}

impl HttpClient {
    /// A client on the default terms.
    pub fn new(net: Arc<dyn Net>) -> Self {
        Self { net, reach: Reach::default(), kept: Arc::default() }
    }

    async fn dial(&self, address: SocketAddr) -> Result<Line, HttpError> {
        let stream = self.net.connect(address).await.map_err(classified(HttpFault::Connect))?;
        let (sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(classified(HttpFault::Reset))?;
        let connection = AbortOnDropHandle::new(tokio::spawn(connection));
        Ok(Line { sender, _connection: connection })
    }
}

impl Http for HttpClient {
    /// There is no TLS for which authorities would matter.
    fn with(self: Arc<Self>, terms: &HttpTerms) -> Arc<dyn Http> {
        Arc::new(Self { net: Arc::clone(&self.net), reach: terms.reach, kept: Arc::default() })
    }

    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<HttpResponse, HttpError>> {
        Box::pin(async move {
            let address = address(request.uri())?;
            self.reach.check(address.ip()).map_err(classified(HttpFault::Forbidden))?;
            let kept = match Connection::of(&request) {
                Connection::Kept => self.kept.take(address),
                Connection::Fresh => None,
            };
            let request = in_origin_form(request)?;
            let (mut line, broken) = match kept {
                Some(line) => (line, HttpFault::Stale),
                None => (self.dial(address).await?, HttpFault::Reset),
            };
            let response = line.sender.send_request(request).await.map_err(|error| {
                let fault = match broken {
                    _ if error.is_user() => HttpFault::Request,
                    _ if error.is_parse() => HttpFault::Reset,
                    broken => broken,
                };
                classified(fault)(error)
            })?;
            let (head, body) = response.into_parts();
            let body = BodyDataStream::new(body);
            let answer = Answer { body, line: Some(line), address, kept: Arc::clone(&self.kept) };
            Ok(HttpResponse { status: head.status, headers: head.headers, body: Box::pin(answer) })
        })
    }
}

/// One connection, which closes when it is dropped.
struct Line {
    sender: http1::SendRequest<Full<Bytes>>,
    _connection: AbortOnDropHandle<hyper::Result<()>>,
}

/// Connections that wait for their next request, the latest last.
#[derive(Default)]
struct Kept {
    /// Held while a connection is put in or taken out; nothing is awaited under it.
    lines: Mutex<BTreeMap<SocketAddr, Vec<(Instant, Line)>>>,
}

impl Kept {
    fn take(&self, address: SocketAddr) -> Option<Line> {
        let mut lines = self.lines.lock().expect("nothing panics while it holds the connections");
        sweep(&mut lines);
        let lines = lines.get_mut(&address)?;
        let ready = lines.iter().rposition(|(_, line)| line.sender.is_ready())?;
        Some(lines.remove(ready).1)
    }

    fn put(&self, address: SocketAddr, line: Line) {
        let mut lines = self.lines.lock().expect("nothing panics while it holds the connections");
        sweep(&mut lines);
        let lines = lines.entry(address).or_default();
        if lines.len() < HTTP_IDLE_CONNECTIONS_MAX {
            lines.push((Instant::now(), line));
        }
    }
}

/// Drops what is closed or too old.
fn sweep(lines: &mut BTreeMap<SocketAddr, Vec<(Instant, Line)>>) {
    let usable = |(since, line): &(Instant, Line)| {
        !line.sender.is_closed() && since.elapsed() < HTTP_IDLE_CONNECTION_MAX
    };
    lines.retain(|_, lines| {
        lines.retain(usable);
        !lines.is_empty()
    });
}

/// A body and the connection it comes by. Whoever drops it before its end closes the connection.
struct Answer {
    body: BodyDataStream<Incoming>,
    line: Option<Line>,
    address: SocketAddr,
    kept: Arc<Kept>,
}

impl Stream for Answer {
    type Item = Result<Bytes, HttpError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let piece = ready!(Pin::new(&mut self.body).poll_next(cx));
        if piece.is_none()
            && let Some(line) = self.line.take()
        {
            self.kept.put(self.address, line);
        }
        Poll::Ready(piece.map(|piece| piece.map_err(classified(HttpFault::Broken))))
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
    let ip = match uri.host().unwrap_or_default() {
        "localhost" => IpAddr::V4(Ipv4Addr::LOCALHOST),
        host => literal(host).ok_or_else(|| unreachable("the client knows no names"))?,
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
