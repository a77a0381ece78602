//! The model host: an HTTP server that speaks chat completions and messages from one script, faults
//! included, over any net. The server under test cannot tell it from a provider.
//! It has no clock of its own and draws no numbers: the same requests in the same order get the same
//! bytes.
//!
//! A connection is refused by closing it before any byte of an answer, not by a closed port: who asks
//! is known only once the request has been read, and other agents are answered on the same port.

mod observer;
mod scripted;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use http::{Request, Response};
use http_body_util::{BodyExt, Limited, StreamBody};
use hyper::body::{Body, Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use nexus3::limits::{ACCEPT_BACKOFF, REQUEST_RECEIVE_MAX, SCRIPT_SILENCE_MAX};
use nexus3::provider::script::{After, Answer, Broken, Opening, Reply, Wire};
use nexus3::world::{Listener, Net, Stream};
use tokio::task::{JoinError, JoinSet};
use tokio::time::{sleep, timeout};

use crate::hosts::TICK;

pub use observer::{Answered, Asked, Observer, Received, Shown};
pub use scripted::Scripted;

/// A whole conversation has to fit.
const BODY_BYTES_MAX: usize = 64 * 1024 * 1024;
const CONNECTIONS_MAX: usize = 1024;
/// How soon an answer that waits for something looks again whether it has happened.
const LOOK_AGAIN: Duration = TICK;

/// Binds a host and serves until the future is dropped, which ends every connection with it.
pub async fn serve(
    net: Arc<dyn Net>,
    address: SocketAddr,
    script: Arc<Scripted>,
    observer: Arc<dyn Observer>,
) -> io::Result<()> {
    ModelHost::bind(net.as_ref(), address, script, observer).await?.run().await;
    Ok(())
}

/// A model host that listens.
pub struct ModelHost {
    listener: Box<dyn Listener>,
    desk: Arc<Desk>,
}

impl std::fmt::Debug for ModelHost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ModelHost").field("script", &self.desk.script).finish_non_exhaustive()
    }
}

struct Desk {
    script: Arc<Scripted>,
    observer: Arc<dyn Observer>,
}

impl ModelHost {
    pub async fn bind(
        net: &dyn Net,
        address: SocketAddr,
        script: Arc<Scripted>,
        observer: Arc<dyn Observer>,
    ) -> io::Result<Self> {
        let listener = net.bind(address).await?;
        Ok(Self { listener, desk: Arc::new(Desk { script, observer }) })
    }

    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until the future is dropped.
    pub async fn run(mut self) {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                // Ended connections first: they make room for new ones.
                biased;
                Some(ended) = connections.join_next() => forward_panic(ended),
                accepted = self.listener.accept(), if connections.len() < CONNECTIONS_MAX => {
                    match accepted {
                        Ok(stream) => {
                            connections.spawn(connection(stream, Arc::clone(&self.desk)));
                        }
                        Err(_no_handles_left) => sleep(ACCEPT_BACKOFF).await,
                    }
                }
            }
        }
    }
}

/// A check that fails in an observer fails the run, not one connection.
fn forward_panic(ended: Result<(), JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        std::panic::resume_unwind(error.into_panic());
    }
}

async fn connection(stream: Box<dyn Stream>, desk: Arc<Desk>) {
    let keeps = desk.script.keeps_connections();
    let handler = service_fn(move |request| {
        let desk = Arc::clone(&desk);
        async move { desk.answer(request).await }
    });
    let served = http1::Builder::new()
        // The simulation has its own clock.
        .auto_date_header(false)
        .keep_alive(keeps)
        .timer(TokioTimer::new())
        .header_read_timeout(REQUEST_RECEIVE_MAX)
        .serve_connection(TokioIo::new(stream), handler);
    // A client may leave at any moment, and a script breaks connections on purpose: how it ended is
    // no news. A client that takes no byte is held as long as a silent script holds one.
    let _ = timeout(SCRIPT_SILENCE_MAX, served).await;
}

/// The connection closes without an answer.
#[derive(Clone, Copy, Debug)]
struct Closed;

impl std::fmt::Display for Closed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the script closes the connection")
    }
}

impl std::error::Error for Closed {}

impl Desk {
    async fn answer(
        &self,
        request: Request<Incoming>,
    ) -> Result<Response<impl Body<Data = Bytes, Error = Broken> + use<>>, Closed> {
        let (Reply { delay, opening }, agent, after) = self.reply(request).await?;
        if delay > Duration::ZERO {
            sleep(delay).await;
        }
        if let Some(after) = after.filter(|after| !self.observer.is_due(after)) {
            self.observer.waits(&agent, &after);
            timeout(SCRIPT_SILENCE_MAX, self.wait_for(&after)).await.map_err(|_never| Closed)?;
        }
        match opening {
            Opening::Answer(answer) => Ok(response(answer)),
            Opening::Closes => Err(Closed),
            Opening::Silence => {
                sleep(SCRIPT_SILENCE_MAX).await;
                Err(Closed)
            }
        }
    }

    /// Reads a request whole and finds what answers it.
    async fn reply(
        &self,
        request: Request<Incoming>,
    ) -> Result<(Reply, String, Option<After>), Closed> {
        let (head, body) = request.into_parts();
        let received = timeout(REQUEST_RECEIVE_MAX, Limited::new(body, BODY_BYTES_MAX).collect());
        // A client that breaks off within its request asked for nothing.
        let body = received.await.map_err(|_late| Closed)?.map_err(|_broken| Closed)?.to_bytes();
        let request = Request::from_parts(head, body);
        let (asked, reply, after) = self.script.answer(&request);
        let (headers, body, wire) = (request.headers(), request.body(), Wire::of(&request));
        self.observer.asked(&asked, &Received { headers, body, wire });
        Ok((reply, asked.agent, after))
    }

    async fn wait_for(&self, after: &After) {
        while !self.observer.is_due(after) {
            sleep(LOOK_AGAIN).await;
        }
    }
}

fn response(mut answer: Answer) -> Response<impl Body<Data = Bytes, Error = Broken> + use<>> {
    let status = answer.status;
    let headers = std::mem::take(&mut answer.headers);
    let mut response =
        Response::new(StreamBody::new(answer.body().map(|piece| piece.map(Frame::data))));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

#[cfg(test)]
mod tests {
    use nexus3::provider::script::{Entry, Fault, Script, Stall};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    struct Nobody;

    impl Observer for Nobody {
        fn asked(&self, _: &Asked, _: &Received<'_>) {}
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_leaves_a_silent_model_ends_its_connection() {
        for (stall, answered) in [(Stall::Headers, false), (Stall::Chunks(0), true)] {
            let fault = Some(Fault { stall: Some(stall), ..Fault::default() });
            let script = Script::new(vec![Entry { fault, ..Entry::default() }]).unwrap();
            let script = Arc::new(Scripted::new(script, [].into()));
            let desk = Arc::new(Desk { script, observer: Arc::new(Nobody) });
            let (mut near, far) = tokio::io::duplex(1024);
            let mut ended = tokio::spawn(connection(Box::new(far), desk));
            let body = r#"{"model":"m","messages":[]}"#;
            let head = "POST /v1/chat/completions HTTP/1.1\r\ncontent-length";
            let request = format!("{head}: {}\r\n\r\n{body}", body.len());
            near.write_all(request.as_bytes()).await.unwrap();
            if answered {
                near.read_u8().await.unwrap();
            }
            let early = timeout(Duration::from_hours(1), &mut ended).await;
            assert!(early.is_err(), "the connection is held as long as the client is there");
            drop(near);
            let left = timeout(Duration::from_secs(1), ended).await;
            assert!(left.is_ok(), "nothing stays open for a client that left");
        }
    }
}
