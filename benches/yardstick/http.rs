//! What the yardsticks that speak HTTP share: a listener, whole bodies, fixed answers.

use std::convert::Infallible;
use std::io::Write as _;

use anyhow::Context as _;
use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde_json::Value;
use tokio::net::TcpListener;

use super::LISTENING;
use crate::load::RESULT_PREFIX;

pub(crate) type Answer = Response<UnsyncBoxBody<Bytes, Infallible>>;

/// The part of a JSON-RPC request that every server has to read.
#[derive(Debug, Deserialize)]
pub(crate) struct Call {
    pub(crate) method: String,
    pub(crate) params: Value,
}

pub(crate) async fn listen(port: u16) -> anyhow::Result<TcpListener> {
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{LISTENING}{}", listener.local_addr()?.port())?;
    stdout.flush()?;
    Ok(listener)
}

/// Answers every request with `handler`, for as long as the process lives.
pub(crate) async fn serve<H, F>(port: u16, handler: H) -> anyhow::Result<()>
where
    H: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
    F: Future<Output = anyhow::Result<Answer>> + Send + 'static,
{
    let listener = listen(port).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let handler = handler.clone();
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let healthy = request.uri().path() == "/healthz";
                let answer = handler(request);
                async move {
                    if healthy {
                        return Ok(json(Bytes::from_static(br#"{"status":"ok"}"#)));
                    }
                    answer.await
                }
            });
            // A connection that breaks is the client's to report.
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

pub(crate) async fn call(body: Incoming) -> anyhow::Result<Call> {
    let bytes = body.collect().await?.to_bytes();
    serde_json::from_slice(&bytes).context("the body is no call")
}

/// A successful answer of exactly `bytes` bytes, or of the fewest that make one.
pub(crate) fn fixed(bytes: usize) -> Bytes {
    let mut answer = RESULT_PREFIX.to_vec();
    answer.extend_from_slice(br#"{"fixed":""#);
    let end = br#""}}"#;
    while answer.len() + end.len() < bytes {
        answer.push(b'x');
    }
    answer.extend_from_slice(end);
    answer.into()
}

pub(crate) fn json(body: Bytes) -> Answer {
    stream("application/json", Full::new(body).boxed_unsync())
}

pub(crate) fn stream(kind: &'static str, body: UnsyncBoxBody<Bytes, Infallible>) -> Answer {
    Response::builder().header("content-type", kind).body(body).expect("a constant header is valid")
}
