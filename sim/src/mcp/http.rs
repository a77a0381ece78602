//! Scripted MCP servers at a host: each under its name, by streamable HTTP. What is said besides an
//! answer comes as events before it.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::{self, BoxStream};
use futures_util::{Stream, StreamExt};
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
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

use super::{Scripted, Step};
use crate::scenario::Revision;

type Body = StreamBody<BoxStream<'static, Result<Frame<Bytes>, Closed>>>;

/// The connection closes in place of an answer.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the script closes the connection")]
struct Closed;

/// Serves until the future is dropped.
pub async fn serve(
    net: Arc<dyn Net>,
    address: SocketAddr,
    servers: Vec<Arc<Scripted>>,
) -> io::Result<Infallible> {
    let mut listener = net.bind(address).await?;
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
    let has = |(name, value): (&String, &String)| {
        head.headers.get(name).is_some_and(|given| given.as_bytes() == value.as_bytes())
    };
    if !server.server.headers.iter().all(has) {
        server.note("refuses somebody who does not say who asks");
        return Ok(empty(StatusCode::UNAUTHORIZED));
    }
    match head.method {
        Method::POST => {}
        Method::DELETE => {
            server.note("is told that the session is over");
            return Ok(empty(StatusCode::OK));
        }
        _ => return Ok(empty(StatusCode::METHOD_NOT_ALLOWED)),
    }
    let body = Limited::new(body, MCP_MESSAGE_BYTES_MAX).collect().await.map_err(|_| Closed)?;
    let Ok(message) = serde_json::from_slice::<Value>(&body.to_bytes()) else {
        return Ok(empty(StatusCode::BAD_REQUEST));
    };
    let steps = server.on(&message);
    if steps.is_empty() {
        return Ok(empty(StatusCode::ACCEPTED));
    }
    let mut response = if steps.iter().filter(|step| matches!(step, Step::Say(_))).count() > 1 {
        reply("text/event-stream", played(steps).map(|said| said.map(|said| event(&said))).boxed())
    } else {
        let said = Box::pin(played(steps)).next().await.ok_or(Closed)??;
        reply("application/json", stream::once(async move { Ok(whole(&said)) }).boxed())
    };
    if message["method"] == "initialize" && server.server.revision != Revision::Of2026 {
        let session = HeaderValue::from_static("session-1");
        response.headers_mut().insert("mcp-session-id", session);
    }
    Ok(response)
}

/// What is said, each at its time.
fn played(steps: Vec<Step>) -> impl Stream<Item = Result<Value, Closed>> + Send + 'static {
    stream::unfold(steps.into_iter(), async |mut steps| {
        loop {
            match steps.next()? {
                Step::Wait(time) => sleep(time).await,
                Step::WaitForEver => std::future::pending().await,
                Step::Die => return Some((Err(Closed), steps)),
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
