//! Scripted MCP servers at a host: each under its name, by streamable HTTP. What is said besides an
//! answer comes as events before it, or on the stream of those who listen.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, BoxStream};
use futures_util::{Stream, StreamExt};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Limited, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use nexus3::limits::{MCP_MESSAGE_BYTES_MAX, REQUEST_RECEIVE_MAX};
use nexus3::world::Net;
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::{Scripted, Step, of_subscription};
use crate::scenario::{ELSEWHERE, McpMoved, Revision};

/// Where a host has another origin, if it needs one.
pub const ELSEWHERE_PORT: u16 = 82;
/// How long after the last word a connection breaks.
const BREAKS_AFTER: Duration = Duration::from_millis(5);
const SESSION: &str = "mcp-session-id";
const EVENTS: &str = "text/event-stream";

type Body = StreamBody<BoxStream<'static, Result<Frame<Bytes>, Closed>>>;

/// The connection closes in place of an answer.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the script closes the connection")]
struct Closed;

/// Serves until the future is dropped. Sessions of an earlier time are not known any more.
pub async fn serve(
    net: Arc<dyn Net>,
    address: SocketAddr,
    servers: Vec<Arc<Scripted>>,
) -> io::Result<Infallible> {
    let mut listener = net.bind(address).await?;
    for server in &servers {
        server.known().sessions.clear();
    }
    let servers: Arc<[Arc<Scripted>]> = servers.into();
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => {
                let stream = accepted?;
                let servers = Arc::clone(&servers);
                let handler = service_fn(move |request| {
                    let servers = Arc::clone(&servers);
                    async move { answer(&servers, request).await }
                });
                let served = http1::Builder::new()
                    // The simulation has its own clock.
                    .auto_date_header(false)
                    .timer(TokioTimer::new())
                    .header_read_timeout(REQUEST_RECEIVE_MAX)
                    .serve_connection(TokioIo::new(stream), handler);
                // A client may leave at any moment: how it ended is no news.
                connections.spawn(async move { drop(served.await) });
            }
        }
    }
}

async fn answer(
    servers: &[Arc<Scripted>],
    request: Request<Incoming>,
) -> Result<Response<Body>, Closed> {
    let (head, body) = request.into_parts();
    let name = head.uri.path().trim_start_matches('/');
    let Some(server) = servers.iter().find(|server| server.name() == name) else {
        return Ok(empty(StatusCode::NOT_FOUND));
    };
    if let Some(moved) = &server.server.moved {
        return Ok(elsewhere(moved, &head.headers));
    }
    let has = |(name, value): (&String, &String)| {
        head.headers.get(name).is_some_and(|given| given.as_bytes() == value.as_bytes())
    };
    if !server.server.headers.iter().all(has) {
        server.note("refuses somebody who does not say who asks");
        return Ok(empty(StatusCode::UNAUTHORIZED));
    }
    let given = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok());
    let session = given(SESSION);
    if session.is_some_and(|session| !server.known().sessions.contains_key(session)) {
        server.note("does not know the session");
        return Ok(empty(StatusCode::NOT_FOUND));
    }
    match head.method {
        Method::POST => {}
        Method::GET => return Ok(listened(server, given("last-event-id"))),
        Method::DELETE => {
            server.note("is told that the session is over");
            server.known().sessions.remove(session.unwrap_or_default());
            return Ok(empty(StatusCode::OK));
        }
        _ => return Ok(empty(StatusCode::METHOD_NOT_ALLOWED)),
    }
    let session = session.map(str::to_owned);
    let body = Limited::new(body, MCP_MESSAGE_BYTES_MAX).collect().await.map_err(|_| Closed)?;
    let Ok(message) = serde_json::from_slice::<Value>(&body.to_bytes()) else {
        return Ok(empty(StatusCode::BAD_REQUEST));
    };
    if message["method"] == "tools/call" && !server.may_call(session.as_deref()) {
        server.note("does not know the session");
        return Ok(empty(StatusCode::NOT_FOUND));
    }
    let mut response = said(server, &message).await?;
    if message["method"] == "initialize" && server.server.revision != Revision::Of2026 {
        let session = HeaderValue::try_from(server.begin_session()).map_err(|_| Closed)?;
        response.headers_mut().insert(SESSION, session);
    }
    Ok(response)
}

impl Scripted {
    fn begin_session(&self) -> String {
        let mut known = self.known();
        known.begun += 1;
        let name = format!("session-{}", known.begun);
        known.sessions.insert(name.clone(), 0);
        name
    }

    /// Counts a call; one too many ends its session.
    fn may_call(&self, session: Option<&str>) -> bool {
        let (Some(max), Some(session)) = (self.server.session_calls, session) else { return true };
        let mut known = self.known();
        let calls = known.sessions.get_mut(session).map_or(0, |calls| {
            *calls += 1;
            *calls
        });
        if calls > max {
            known.sessions.remove(session);
        }
        calls <= max
    }
}

/// What a server says to a message: nothing, one answer, or events.
async fn said(server: &Arc<Scripted>, message: &Value) -> Result<Response<Body>, Closed> {
    let mut steps = server.on(message);
    if message["method"] == "subscriptions/listen" {
        let id = message["id"].clone();
        let acknowledged = stream::iter(steps).filter_map(async |step| match step {
            Step::Say(said) => Some(Ok(event(&said))),
            Step::Wait(_)
            | Step::WaitForEver
            | Step::Tell(_)
            | Step::Break
            | Step::Die(_)
            | Step::Refuse(_) => None,
        });
        let news = news(server).map(move |news| Ok(event(&of_subscription(news, &id))));
        return Ok(reply(EVENTS, acknowledged.chain(news).boxed()));
    }
    for step in &mut steps {
        if let Step::Tell(news) = step {
            let news = std::mem::take(news);
            *step = if server.server.stream {
                // Nobody may listen.
                let _ = server.news.send(news);
                Step::Wait(Duration::ZERO)
            } else {
                Step::Say(news)
            };
        }
    }
    if steps.is_empty() {
        return Ok(empty(StatusCode::ACCEPTED));
    }
    if let Some(Step::Refuse(status)) = steps.last() {
        let status = StatusCode::from_u16(*status).map_err(|_| Closed)?;
        pass(&steps).await;
        return Ok(empty(status));
    }
    let breaks = steps.contains(&Step::Break);
    if breaks || steps.iter().filter(|step| matches!(step, Step::Say(_))).count() > 1 {
        let numbered = breaks.then(|| format!("{}-", message["id"]));
        return Ok(reply(EVENTS, events(server, steps, numbered)));
    }
    let said = Box::pin(played(steps)).next().await.ok_or(Closed)??;
    Ok(reply("application/json", stream::once(async move { Ok(whole(&said)) }).boxed()))
}

/// Sends somebody elsewhere.
fn elsewhere(moved: &McpMoved, headers: &HeaderMap) -> Response<Body> {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let host = host.rsplit_once(':').map_or(host, |(host, _)| host);
    let to = moved.to.replace(ELSEWHERE, &format!("http://{host}:{ELSEWHERE_PORT}"));
    let mut response = empty(StatusCode::from_u16(moved.status).unwrap_or(StatusCode::FOUND));
    if let Ok(to) = HeaderValue::try_from(to) {
        response.headers_mut().insert(header::LOCATION, to);
    }
    response
}

/// A stream for somebody who listens, or the rest of one that broke.
fn listened(server: &Arc<Scripted>, last_event: Option<&str>) -> Response<Body> {
    if let Some(rest) = last_event.and_then(|last| server.known().unsaid.remove(last)) {
        server.note("is asked for the rest");
        return reply(EVENTS, events(server, rest, None));
    }
    if !server.server.stream || server.server.revision == Revision::Of2026 {
        return empty(StatusCode::METHOD_NOT_ALLOWED);
    }
    server.note("is listened to");
    reply(EVENTS, news(server).map(|news| Ok(event(&news))).boxed())
}

/// What is told from now on.
fn news(server: &Scripted) -> impl Stream<Item = Value> + Send + 'static + use<> {
    stream::unfold(server.news.subscribe(), async |mut news| {
        let next = news.recv().await.ok()?;
        Some((next, news))
    })
}

/// What is said as events. Those of a stream that will break have names, so that the rest can be asked
/// for.
fn events(
    server: &Arc<Scripted>,
    mut steps: Vec<Step>,
    numbered: Option<String>,
) -> BoxStream<'static, Result<Frame<Bytes>, Closed>> {
    let Some(prefix) = numbered else {
        return played(steps).map(|said| said.map(|said| event(&said))).boxed();
    };
    let broken = steps.iter().position(|step| *step == Step::Break).unwrap_or(steps.len());
    let mut rest = steps.split_off(broken);
    let says = |step: &&Step| matches!(step, Step::Say(_));
    let last = format!("{prefix}{}", steps.iter().filter(says).count());
    rest.retain(|step| *step != Step::Break);
    server.known().unsaid.insert(last, rest);
    let first = stream::once({
        let id = format!("id: {prefix}0\ndata:\n\n");
        async move { Ok(Frame::data(id.into())) }
    });
    let numbered = played(steps).enumerate().map(move |(number, said)| {
        said.map(|said| {
            let id = number + 1;
            Frame::data(format!("id: {prefix}{id}\nevent: message\ndata: {said}\n\n").into())
        })
    });
    // What was said is on its way by then.
    let broken = stream::once(async {
        sleep(BREAKS_AFTER).await;
        Err(Closed)
    });
    first.chain(numbered).chain(broken).boxed()
}

/// Waits for as long as all of it takes.
async fn pass(steps: &[Step]) {
    for step in steps {
        match step {
            Step::Wait(time) => sleep(*time).await,
            Step::WaitForEver => std::future::pending().await,
            Step::Say(_) | Step::Tell(_) | Step::Break | Step::Die(_) | Step::Refuse(_) => {}
        }
    }
}

/// What is said, each at its time.
fn played(steps: Vec<Step>) -> impl Stream<Item = Result<Value, Closed>> + Send + 'static {
    stream::unfold(steps.into_iter(), async |mut steps| {
        loop {
            match steps.next()? {
                Step::Wait(time) => sleep(time).await,
                Step::WaitForEver => std::future::pending().await,
                Step::Break | Step::Die(_) | Step::Refuse(_) => return Some((Err(Closed), steps)),
                // It was told where it belongs.
                Step::Tell(_) => {}
                Step::Say(message) => return Some((Ok(message), steps)),
            }
        }
    })
}

fn event(message: &Value) -> Frame<Bytes> {
    Frame::data(format!("event: message\ndata: {message}\n\n").into())
}

fn whole(message: &Value) -> Frame<Bytes> {
    Frame::data(message.to_string().into())
}

fn reply(
    kind: &'static str,
    body: BoxStream<'static, Result<Frame<Bytes>, Closed>>,
) -> Response<Body> {
    let mut response = Response::new(StreamBody::new(body));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(StreamBody::new(stream::empty().boxed()));
    *response.status_mut() = status;
    response
}
