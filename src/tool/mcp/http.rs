//! A server that is reached by streamable HTTP, through the http seam. What it may be asked at all is
//! the network rule's to say, which the seam holds to; redirects are not followed, so that they
//! cannot lead around it.

#![expect(
    clippy::disallowed_types,
    reason = "the library's trait asks for a HashMap; it is put in order before anything is sent"
)]

use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode};
use rmcp::ErrorData;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, JsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpClientTransportConfig, StreamableHttpError,
    StreamableHttpPostResponse,
};
use sse_stream::{Sse, SseStream};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::Ground;
use super::connection::{Lost, Opening, Server, Why};
use super::session::talk;
use crate::config::McpServer;
use crate::limits::{
    MCP_CLOSE_MAX, MCP_HTTP_HEAD_MAX, MCP_HTTP_SILENCE_MAX, MCP_MESSAGE_BYTES_MAX,
};
use crate::world::{Http, HttpBody, HttpError, HttpFault, HttpResponse};

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
const EVENTS: &str = "text/event-stream";
const JSON: &str = "application/json";
const EVENTS_OR_JSON: HeaderValue = HeaderValue::from_static("text/event-stream, application/json");

type Failure = StreamableHttpError<HttpError>;

/// Speaks with the server until it is lost.
pub(super) async fn live(server: &Arc<Server>, ground: &Ground, opening: Opening) -> Why {
    let McpServer::Http { url, headers } = &server.config else { return Why::Stopped };
    let header = |(name, value): (&String, &crate::config::HeaderText)| {
        let name = HeaderName::try_from(name).ok()?;
        let mut value = HeaderValue::try_from(value.expose()).ok()?;
        value.set_sensitive(true);
        Some((name, value))
    };
    let (held, mut released) = mpsc::channel(1);
    let client = Client {
        http: Arc::clone(&ground.http),
        headers: Arc::new(headers.iter().filter_map(header).collect()),
        server: Arc::clone(server),
        held,
    };
    let mut config = StreamableHttpClientTransportConfig::with_uri(url.to_string());
    config.max_sse_event_size = MCP_MESSAGE_BYTES_MAX;
    // A new session is a new conversation, with other tools perhaps: we begin it ourselves.
    config.reinit_on_expired_session = false;
    let transport = StreamableHttpClientTransport::with_client(client, config);
    let why = talk(server, transport, opening).await;
    // The library's tasks end by themselves once nobody wants them; until then they hold connections.
    let _ = timeout(MCP_CLOSE_MAX, released.recv()).await;
    why
}

/// Held by everything that may have a connection open.
type Held = mpsc::Sender<Infallible>;

#[derive(Clone)]
struct Client {
    http: Arc<dyn Http>,
    /// Those of the configuration.
    headers: Arc<HeaderMap>,
    server: Arc<Server>,
    held: Held,
}

impl Client {
    async fn send(
        &self,
        method: Method,
        uri: &str,
        (headers, given): (HeaderMap, HashMap<HeaderName, HeaderValue>),
        body: Bytes,
    ) -> Result<HttpResponse, Failure> {
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = uri.parse().map_err(|_| failed(HttpFault::Request))?;
        // In the order of their names: that of a `HashMap` would differ in every run.
        let given: BTreeMap<String, (HeaderName, HeaderValue)> =
            given.into_iter().map(|(name, value)| (name.to_string(), (name, value))).collect();
        request.headers_mut().extend(self.headers.as_ref().clone());
        request.headers_mut().extend(given.into_values());
        request.headers_mut().extend(headers);
        let fault = match timeout(MCP_HTTP_HEAD_MAX, self.http.send(request)).await {
            Ok(Ok(response)) => return Ok(response),
            Ok(Err(error)) => error.fault,
            Err(_) => HttpFault::Reset,
        };
        self.note(Lost::Unreachable(fault));
        Err(failed(fault))
    }

    fn failed(&self, lost: Lost) -> Failure {
        self.note(lost);
        failed(HttpFault::Broken)
    }

    /// For those whom the library tells only that something failed.
    fn note(&self, trouble: Lost) {
        self.server.trouble.store(Some(Arc::new(trouble)));
    }
}

impl StreamableHttpClient for Client {
    type Error = HttpError;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _: Option<String>,
        given: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, EVENTS_OR_JSON);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
        let has_session = session.is_some();
        put(&mut headers, SESSION, session.as_deref())?;
        let body = serde_json::to_vec(&message)?;
        let response = self.send(Method::POST, &uri, (headers, given), body.into()).await?;
        let status = response.status;
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == StatusCode::NOT_FOUND && has_session {
            return Err(StreamableHttpError::SessionExpired);
        }
        let session = text(&response.headers, &SESSION).map(str::to_owned);
        let kind = text(&response.headers, &CONTENT_TYPE).unwrap_or_default();
        if status.is_success() && kind.starts_with(EVENTS) {
            let events = events(response.body, self.held.clone());
            return Ok(StreamableHttpPostResponse::Sse(events, session));
        }
        let is_json = kind.starts_with(JSON);
        let body = whole(response.body).await.map_err(|lost| self.failed(lost))?;
        let said = if is_json { serde_json::from_slice(&body).ok() } else { None };
        match judge(status, &message, said).map_err(|lost| self.failed(lost))? {
            Some(answer) => Ok(StreamableHttpPostResponse::Json(answer, session)),
            None => Ok(StreamableHttpPostResponse::Accepted),
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        _: Option<String>,
        given: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failure> {
        let mut headers = HeaderMap::new();
        put(&mut headers, SESSION, Some(&session))?;
        // A server need not let its sessions be ended.
        self.send(Method::DELETE, &uri, (headers, given), Bytes::new()).await.map(drop)
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        _: Option<String>,
        given: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failure> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, EVENTS_OR_JSON);
        put(&mut headers, SESSION, session.as_deref())?;
        put(&mut headers, LAST_EVENT, last_event.as_deref())?;
        let response = self.send(Method::GET, &uri, (headers, given), Bytes::new()).await?;
        let kind = text(&response.headers, &CONTENT_TYPE).unwrap_or_default();
        if response.status.is_success() && kind.starts_with(EVENTS) {
            return Ok(events(response.body, self.held.clone()));
        }
        // Many have nothing to say that nobody asked for, and refuse in many ways.
        Err(StreamableHttpError::ServerDoesNotSupportSse)
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        auth: Option<String>,
        given: HashMap<HeaderName, HeaderValue>,
        // The same for all, and always held to.
        _: usize,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        self.post_message(uri, message, session, auth, given).await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        auth: Option<String>,
        given: HashMap<HeaderName, HeaderValue>,
        _: usize,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failure> {
        self.get_stream(uri, session, last_event, auth, given).await
    }
}

/// What an answer that is no stream of events means for a message: an answer to it, or only that it
/// was taken.
fn judge(
    status: StatusCode,
    message: &ClientJsonRpcMessage,
    said: Option<ServerJsonRpcMessage>,
) -> Result<Option<ServerJsonRpcMessage>, Lost> {
    let JsonRpcMessage::Request(asked) = message else {
        return if status.is_success() { Ok(None) } else { Err(refused(status)) };
    };
    let is_discovery = matches!(asked.request, ClientRequest::DiscoverRequest(_));
    let is_about_us = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    match said {
        Some(said) if status.is_success() => Ok(Some(said)),
        // Servers of earlier revisions refuse what they do not know before they look at its id.
        said if is_discovery && status.is_client_error() && !is_about_us => {
            let error = match said {
                Some(JsonRpcMessage::Error(error)) => error.error,
                _ => ErrorData::invalid_request("the server does not know it", None),
            };
            Ok(Some(ServerJsonRpcMessage::error(error, Some(asked.id.clone()))))
        }
        Some(said @ JsonRpcMessage::Error(_)) if !is_about_us => Ok(Some(said)),
        _ if status.is_success() => {
            Err(Lost::Unspoken { said: "its answer is neither JSON nor events".to_owned() })
        }
        _ => Err(refused(status)),
    }
}

fn refused(status: StatusCode) -> Lost {
    Lost::Status { status: status.as_u16() }
}

fn failed(fault: HttpFault) -> Failure {
    StreamableHttpError::Client(HttpError { fault, detail: String::new() })
}

fn put(headers: &mut HeaderMap, name: HeaderName, value: Option<&str>) -> Result<(), Failure> {
    if let Some(value) = value {
        let value = HeaderValue::try_from(value).map_err(|_| failed(HttpFault::Request))?;
        headers.insert(name, value);
    }
    Ok(())
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

async fn whole(mut body: HttpBody) -> Result<Vec<u8>, Lost> {
    let mut bytes = Vec::new();
    while let Some(piece) = timeout(MCP_HTTP_HEAD_MAX, body.next()).await.unwrap_or_default() {
        bytes.extend_from_slice(&piece.map_err(|error| Lost::Unreachable(error.fault))?);
        if bytes.len() > MCP_MESSAGE_BYTES_MAX {
            return Err(Lost::TooLong);
        }
    }
    Ok(bytes)
}

fn events(body: HttpBody, held: Held) -> BoxStream<'static, Result<Sse, SseError>> {
    let silence = Box::pin(silence());
    let bounded = Bounded { body, since_end: 0, last: 0, silence, _held: held };
    SseStream::from_bytes_stream(bounded).boxed()
}

/// A stream of events that ends with an error when one of them is too long, or nothing comes for long.
struct Bounded {
    body: HttpBody,
    /// Bytes of the event that has not ended yet.
    since_end: usize,
    /// The byte before, to find the empty line that ends an event.
    last: u8,
    silence: Pin<Box<tokio::time::Sleep>>,
    _held: Held,
}

fn silence() -> tokio::time::Sleep {
    tokio::time::sleep(MCP_HTTP_SILENCE_MAX)
}

impl Stream for Bounded {
    type Item = Result<Bytes, HttpError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let broken = || HttpError { fault: HttpFault::Broken, detail: String::new() };
        let Poll::Ready(piece) = self.body.as_mut().poll_next(context) else {
            return match self.silence.as_mut().poll(context) {
                Poll::Ready(()) => Poll::Ready(Some(Err(broken()))),
                Poll::Pending => Poll::Pending,
            };
        };
        self.silence.set(silence());
        if let Some(Ok(bytes)) = &piece {
            for byte in bytes {
                let is_end = *byte == b'\n' && self.last == b'\n';
                self.since_end = if is_end { 0 } else { self.since_end + 1 };
                // The other byte that ends lines is as if it were not there.
                if *byte != b'\r' {
                    self.last = *byte;
                }
            }
            if self.since_end > MCP_MESSAGE_BYTES_MAX {
                return Poll::Ready(Some(Err(broken())));
            }
        }
        Poll::Ready(piece)
    }
}
