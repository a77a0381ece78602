//! A server that is reached by streamable HTTP, through the http seam. What it may be asked at all is
//! the network rule's to say, which the seam holds to, for every address that a server sends us on to.
//! When a session is over, or nobody answers any more, the conversation is told.

#![expect(
    clippy::disallowed_types,
    reason = "the library's trait asks for a HashMap; it is put in order before anything is sent"
)]

use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri};
use rmcp::ErrorData;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, JsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpClientTransportConfig, StreamableHttpError,
    StreamableHttpPostResponse,
};
use sse_stream::Sse;
use tokio::sync::{Notify, mpsc};
use tokio::time::timeout;

use super::Ground;
use super::connection::{Lost, Opening, Server, Why};
use super::events::{Ties, events};
use super::session::{Ears, talk};
use crate::config::McpServer;
use crate::limits::{
    MCP_CLOSE_MAX, MCP_HTTP_HEAD_MAX, MCP_MESSAGE_BYTES_MAX, MCP_RETRY_FIRST, MCP_RETRY_MAX,
};
use crate::reach::redirect;
use crate::world::{Connection, Http, HttpBody, HttpError, HttpFault, HttpResponse};

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
    let ears = Ears::new();
    let client = Client {
        http: Arc::clone(&ground.http),
        headers: Arc::new(headers.iter().filter_map(header).collect()),
        server: Arc::clone(server),
        changed: Arc::clone(&ears.listener.changed),
        has_stream: Arc::default(),
        ties: Ties::new(ears.doubts.clone(), held),
    };
    // However this ends: the library's tasks wait for answers that may never come.
    let over = client.ties.over.clone().drop_guard();
    let mut config = StreamableHttpClientTransportConfig::with_uri(url.to_string());
    config.max_sse_event_size = MCP_MESSAGE_BYTES_MAX;
    // A new session is a new conversation, with other tools perhaps: we begin it ourselves.
    config.reinit_on_expired_session = false;
    let mut retries = ExponentialBackoff::default();
    (retries.base_duration, retries.max_delay) = (MCP_RETRY_FIRST, Some(MCP_RETRY_MAX));
    config.retry_config = Arc::new(retries);
    let transport = StreamableHttpClientTransport::with_client(client, config);
    let why = talk(server, transport, opening, ears).await;
    drop(over);
    // They hold connections until they are gone.
    let _ = timeout(MCP_CLOSE_MAX, released.recv()).await;
    why
}

/// What went wrong with a request, as far as its error says.
pub(super) fn trouble(error: &(dyn Error + 'static)) -> Option<Lost> {
    match error.downcast_ref::<Failure>()? {
        StreamableHttpError::SessionExpired => Some(Lost::SessionOver),
        // What is broken for other reasons is noted beside it.
        StreamableHttpError::Client(HttpError { fault: HttpFault::Broken, .. }) => None,
        StreamableHttpError::Client(error) => Some(Lost::Unreachable(error.fault)),
        _ => None,
    }
}

/// Held by everything that may have a connection open.
pub(super) type Held = mpsc::Sender<Infallible>;

#[derive(Clone)]
struct Client {
    http: Arc<dyn Http>,
    /// Those of the configuration.
    headers: Arc<HeaderMap>,
    server: Arc<Server>,
    /// The tools may be others.
    changed: Arc<Notify>,
    /// There was a stream of news once.
    has_stream: Arc<AtomicBool>,
    ties: Ties,
}

/// Whether a request may be sent again when a connection turns out to be none.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Again {
    Yes,
    /// It may have an effect.
    No,
}

impl Client {
    /// Sends a request to where it is answered.
    async fn send(
        &self,
        method: Method,
        uri: &str,
        (headers, given): (HeaderMap, HashMap<HeaderName, HeaderValue>),
        (body, again): (Bytes, Again),
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
        let is_encrypted = |uri: &Uri| uri.scheme_str() == Some("https");
        let must_be = is_encrypted(request.uri());
        let mut followed = 0;
        loop {
            let response = self.exchange(&request, again).await?;
            if !redirect::is_one(response.status) {
                return Ok(response);
            }
            let may_be_asked = |next: &Uri| is_encrypted(next) || !must_be;
            request = redirect::follow(&request, &response.headers, followed, may_be_asked)
                .map_err(|why| self.failed(Lost::Moved(why)))?;
            followed += 1;
        }
    }

    async fn exchange(
        &self,
        request: &Request<Bytes>,
        again: Again,
    ) -> Result<HttpResponse, Failure> {
        let mut request = request.clone();
        loop {
            let sending = timeout(MCP_HTTP_HEAD_MAX, self.http.send(request.clone()));
            let fault = match self.ties.over.run_until_cancelled(sending).await {
                Some(Ok(Ok(response))) => return Ok(response),
                Some(Ok(Err(error))) => error.fault,
                Some(Err(_)) | None => HttpFault::Reset,
            };
            let is_first = Connection::of(&request) == Connection::Kept;
            if fault == HttpFault::Stale && again == Again::Yes && is_first {
                request.extensions_mut().insert(Connection::Fresh);
                continue;
            }
            self.note(Lost::Unreachable(fault));
            return Err(failed(fault));
        }
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
        let again = match &message {
            JsonRpcMessage::Request(asked) => match asked.request {
                ClientRequest::CallToolRequest(_) => Again::No,
                _ => Again::Yes,
            },
            JsonRpcMessage::Notification(_)
            | JsonRpcMessage::Response(_)
            | JsonRpcMessage::Error(_) => Again::Yes,
        };
        let sent = (body.into(), again);
        let response = self.send(Method::POST, &uri, (headers, given), sent).await?;
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
            return Ok(StreamableHttpPostResponse::Sse(events(response.body, &self.ties), session));
        }
        let is_json = kind.starts_with(JSON);
        let body = self.ties.over.run_until_cancelled(whole(response.body)).await;
        let body = body.unwrap_or(Err(Lost::Closed)).map_err(|lost| self.failed(lost))?;
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
        let nothing = (Bytes::new(), Again::Yes);
        self.send(Method::DELETE, &uri, (headers, given), nothing).await.map(drop)
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
        let nothing = (Bytes::new(), Again::Yes);
        let had_stream = self.has_stream.load(Ordering::Acquire);
        let response = match self.send(Method::GET, &uri, (headers, given), nothing).await {
            Ok(response) => response,
            Err(StreamableHttpError::Client(error)) if error.fault == HttpFault::Connect => {
                self.ties.doubt(Lost::Unreachable(HttpFault::Connect));
                return Err(StreamableHttpError::Client(error));
            }
            // The library tries only those again that were there once.
            Err(_) if !had_stream && last_event.is_none() => return Ok(stream::empty().boxed()),
            Err(error) => return Err(error),
        };
        let kind = text(&response.headers, &CONTENT_TYPE).unwrap_or_default();
        match response.status {
            status if status.is_success() && kind.starts_with(EVENTS) => {
                if last_event.is_none() && self.has_stream.swap(true, Ordering::AcqRel) {
                    // Nobody says what was told while there was none.
                    self.changed.notify_one();
                }
                Ok(events(response.body, &self.ties))
            }
            StatusCode::NOT_FOUND if session.is_some() && (had_stream || last_event.is_some()) => {
                self.ties.doubt(Lost::SessionOver);
                Err(StreamableHttpError::ServerDoesNotSupportSse)
            }
            StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT
            | StatusCode::TOO_MANY_REQUESTS => {
                let is_first = !had_stream && last_event.is_none();
                if is_first { Ok(stream::empty().boxed()) } else { Err(failed(HttpFault::Reset)) }
            }
            // Many have nothing to say that nobody asked for, and refuse in many ways.
            _ => Err(StreamableHttpError::ServerDoesNotSupportSse),
        }
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
