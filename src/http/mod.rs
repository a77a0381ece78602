//! Bytes on a socket: the accept loop, the limits of a connection, and the way of one request
//! through the checks to `rpc` and back. What is decided without waiting is in pure leaves.

mod auth;
mod body;
mod head;
mod phase;
mod recorded;
mod reply;
mod route;
mod sse;

use std::convert::Infallible;
use std::sync::Arc;

use http::header::CONNECTION;
use http::request::Parts;
use http::{HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use auth::Auth;
use body::Drained;
use phase::{Phase, Timed};
use reply::{Outgoing, Refusal, Tracked};
use route::Route;

use crate::activity::Activity;
use crate::hub::{Hub, Journal};
use crate::limits::{
    ACCEPT_BACKOFF, CLOSE_CONNECTIONS_MAX, DRAIN_BYTES_MAX, DRAIN_MAX, LIBRARY_HEADER_BYTES_MAX,
    LIBRARY_HEADER_FIELDS_MAX, REFUSALS_AT_ONCE_MAX,
};
use crate::rpc::caller::{Caller, ClientName};
use crate::rpc::{Reply, Rpc, Target};
use crate::world::{Listener, Stream};

const REQUESTER: &str = "x-nexus-agent";
const CLIENT: &str = "x-nexus-client";

pub struct Service {
    pub rpc: Rpc,
    pub auth: Auth,
    pub hub: Arc<Hub>,
    /// Where requests and streams are counted.
    pub activity: Arc<Activity>,
    /// Where streams find what happened before they were opened.
    pub journal: Arc<dyn Journal>,
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Service")
    }
}

/// Serves connections until `stop`, then lets those that are answering finish, for a while.
pub async fn serve(
    mut listener: Box<dyn Listener>,
    service: Arc<Service>,
    connections_max: usize,
    stop: CancellationToken,
) {
    let (connections, cut) = (TaskTracker::new(), CancellationToken::new());
    let places = Arc::new(Semaphore::new(connections_max));
    let refusals = Arc::new(Semaphore::new(REFUSALS_AT_ONCE_MAX));
    loop {
        let stream = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            stream = listener.accept() => match stream {
                Ok(stream) => stream,
                Err(error) => {
                    // Usually there are no handles left; they come back as connections end.
                    tracing::warn!(%error, "cannot accept a connection");
                    sleep(ACCEPT_BACKOFF).await;
                    continue;
                }
            },
        };
        if let Ok(place) = Arc::clone(&places).try_acquire_owned() {
            let served = connection(stream, Arc::clone(&service), stop.clone(), place);
            connections.spawn(cut.clone().run_until_cancelled_owned(served));
        } else if let Ok(place) = Arc::clone(&refusals).try_acquire_owned() {
            service.record_left_out(StatusCode::SERVICE_UNAVAILABLE);
            connections.spawn(refuse(stream, place));
        }
    }
    drop(listener);
    connections.close();
    if timeout(CLOSE_CONNECTIONS_MAX, connections.wait()).await.is_err() {
        // Whoever has not taken its last answer by now is not waited for.
        cut.cancel();
        connections.wait().await;
    }
}

async fn connection(
    stream: Box<dyn Stream>,
    service: Arc<Service>,
    stop: CancellationToken,
    _place: OwnedSemaphorePermit,
) {
    let phase = Phase::new();
    let timed = Timed::new(stream, Arc::clone(&phase));
    let inside = Arc::clone(&service);
    let handler = service_fn(move |request| {
        let service = &inside;
        let (service, phase) = (Arc::clone(service), Arc::clone(&phase));
        async move {
            let (exchange, busy) = (phase.head_received(), service.activity.begin());
            let response = service.answer(request, exchange.receive_until).await;
            Ok::<_, Infallible>(response.map(|body| Tracked::new(body, exchange, busy)))
        }
    });
    let served = http1::Builder::new()
        // The simulation has its own clock, and nobody needs this header on loopback.
        .auto_date_header(false)
        .max_headers(LIBRARY_HEADER_FIELDS_MAX)
        .max_buf_size(LIBRARY_HEADER_BYTES_MAX)
        .serve_connection(TokioIo::new(timed), handler);
    let mut served = std::pin::pin!(served);
    let ended = tokio::select! {
        biased;
        ended = served.as_mut() => ended,
        () = stop.cancelled() => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    // How a connection ended is the client's business: it may leave at any moment.
    if let Err(error) = ended {
        if error.is_parse() {
            // The library has answered what it could not read.
            service.record_left_out(if error.is_parse_too_large() {
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
            } else {
                StatusCode::BAD_REQUEST
            });
        }
        tracing::debug!(%error, "a connection broke");
    }
}

/// Tells one connection too many that it is. What it sends is read for a moment, so that closing
/// does not destroy the answer.
async fn refuse(mut stream: Box<dyn Stream>, _place: OwnedSemaphorePermit) {
    // Clients take an answer that overtakes their request for noise, so the first byte of it is
    // waited for, as long as for the rest of it.
    let _ = timeout(DRAIN_MAX, stream.read_u8()).await;
    let told = async {
        stream.write_all(&Refusal::too_many_connections().bytes()).await?;
        stream.shutdown().await?;
        tokio::io::copy(&mut stream.take(DRAIN_BYTES_MAX as u64), &mut tokio::io::sink()).await
    };
    let _ = timeout(DRAIN_MAX, told).await;
}

/// What a request that may come in wants.
enum Wanted {
    Call,
    Events,
}

impl Service {
    async fn answer(&self, request: Request<Incoming>, until: Instant) -> Response<Outgoing> {
        let (parts, body) = request.into_parts();
        let (what, target) = match head::check(&parts, &self.auth) {
            Ok(Route::Global) => (Wanted::Call, Target::Global),
            Ok(Route::Agent(id)) => (Wanted::Call, Target::Agent(id)),
            Ok(Route::AllEvents) => (Wanted::Events, Target::Global),
            Ok(Route::AgentEvents(id)) => (Wanted::Events, Target::Agent(id)),
            Ok(Route::Health) => return without_body(health(), body, &parts).await,
            Err(refusal) => return self.refused(refusal, body, &parts).await,
        };
        let caller = match self.caller(&parts) {
            Ok(caller) => caller,
            Err(refusal) => return self.refused(refusal, body, &parts).await,
        };
        match what {
            Wanted::Call => match body::read(body, until).await {
                Ok(body) => {
                    let answer = self.rpc.answer(&caller, target, &body).await;
                    match &answer {
                        Reply::NotJsonRpc(_) => {
                            self.record_refused(&parts, &body, StatusCode::BAD_REQUEST);
                        }
                        Reply::NotFound(_) if !Rpc::is_recorded_as_call(target, &body) => {
                            self.record_refused(&parts, &body, StatusCode::NOT_FOUND);
                        }
                        Reply::Failed(_) if !Rpc::is_recorded_as_call(target, &body) => {
                            self.record_left_out(StatusCode::INTERNAL_SERVER_ERROR);
                        }
                        Reply::Busy(_) => self.record_left_out(StatusCode::SERVICE_UNAVAILABLE),
                        // These are calls, and recorded as such.
                        Reply::Answer(_)
                        | Reply::NotFound(_)
                        | Reply::Failed(_)
                        | Reply::NoContent => {}
                    }
                    reply::of_rpc(answer)
                }
                Err(refusal) => {
                    let response = refusal.response();
                    self.record_left_out(response.status());
                    response
                }
            },
            Wanted::Events => match self.open_stream(&caller, target, &parts).await {
                Ok(events) => without_body(reply::of_events(events), body, &parts).await,
                Err(refusal) => self.refused(refusal, body, &parts).await,
            },
        }
    }

    /// Refuses a request by its head.
    async fn refused(&self, refusal: Refusal, body: Incoming, parts: &Parts) -> Response<Outgoing> {
        let response = refusal.response();
        self.record_refused(parts, &[], response.status());
        without_body(response, body, parts).await
    }

    fn caller(&self, parts: &Parts) -> Result<Caller, Refusal> {
        let mut shown = parts.headers.get_all(REQUESTER).iter().map(HeaderValue::as_bytes);
        let agent = match (shown.next(), shown.next()) {
            (None, _) => None,
            // In whose name such a call is made cannot be known.
            (Some(_), Some(second)) => return Err(Refusal::unknown_requester(second)),
            (Some(shown), None) => {
                let agent = self.rpc.requester(shown);
                Some(agent.ok_or_else(|| Refusal::unknown_requester(shown))?)
            }
        };
        let client = match parts.headers.get(CLIENT) {
            None => ClientName::default(),
            Some(name) => ClientName::parse(name.as_bytes())
                .map_err(|error| Refusal::request(StatusCode::BAD_REQUEST, error.to_string()))?,
        };
        Ok(Caller { agent, client })
    }
}

/// An answer for which the body does not matter. A connection whose body was not read to its end
/// is closed with it.
async fn without_body(
    mut response: Response<Outgoing>,
    body: Incoming,
    parts: &Parts,
) -> Response<Outgoing> {
    if body::drain(body, &parts.headers).await == Drained::InPart {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

fn health() -> Response<Outgoing> {
    let version = env!("CARGO_PKG_VERSION");
    let status = json!({"service": "nexus3", "status": "ok", "version": version});
    reply::json(StatusCode::OK, status.to_string())
}
