//! `mock`: a model that answers at once, in the streaming form of OpenAI chat completions.
//! `GET /last` tells how long the body of its last request was.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::Method;
use hyper::body::Frame;
use serde_json::{Value, json};

use super::{Yardstick, http};

const TEXT: &str = "word ";
const PAUSE: Duration = Duration::from_millis(1);

pub(crate) async fn run(yardstick: &Yardstick) -> anyhow::Result<()> {
    let last = Arc::new(AtomicUsize::new(0));
    let (chunks, gap) = (yardstick.chunks, Duration::from_micros(yardstick.gap_us));
    let burst = yardstick.burst;
    let whole: Arc<[Bytes]> = (0..chunks).map(|_| piece(TEXT)).chain(ending(chunks)).collect();
    http::serve(yardstick.port, move |request| {
        let (last, whole) = (Arc::clone(&last), Arc::clone(&whole));
        async move {
            if request.method() == Method::GET {
                let bytes = last.load(Ordering::Relaxed);
                return Ok(http::json(bytes.to_string().into()));
            }
            let body = request.into_body().collect().await?.to_bytes();
            last.store(body.len(), Ordering::Relaxed);
            let frames = if gap.is_zero() {
                unhurried(whole, burst).left_stream()
            } else {
                stamped(chunks, gap).right_stream()
            };
            let frames = frames.map(|piece| Ok::<_, Infallible>(Frame::data(piece)));
            let body = StreamBody::new(frames).boxed_unsync();
            Ok(http::stream("text/event-stream", body))
        }
    })
    .await
}

/// The pieces, with a pause after each burst.
fn unhurried(whole: Arc<[Bytes]>, burst: usize) -> impl Stream<Item = Bytes> + Send {
    stream::iter(0..whole.len()).then(move |index| {
        let piece = whole[index].clone();
        async move {
            if burst > 0 && index % burst == burst - 1 {
                tokio::time::sleep(PAUSE).await;
            }
            piece
        }
    })
}

/// Pieces that come one by one, each holding the nanoseconds since 1970 when it was sent.
fn stamped(chunks: usize, gap: Duration) -> impl Stream<Item = Bytes> + Send {
    stream::iter(0..chunks)
        .then(move |_| async move {
            tokio::time::sleep(gap).await;
            let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
            piece(&format!("{} ", now.as_nanos()))
        })
        .chain(stream::iter(ending(chunks)))
}

fn piece(text: &str) -> Bytes {
    record(&json!([{"index": 0, "delta": {"content": text}, "finish_reason": null}]), &Value::Null)
}

fn ending(chunks: usize) -> [Bytes; 3] {
    let stop = json!([{"index": 0, "delta": {}, "finish_reason": "stop"}]);
    let usage = json!({
        "prompt_tokens": 10,
        "completion_tokens": chunks,
        "total_tokens": 10 + chunks,
    });
    [
        record(&stop, &Value::Null),
        record(&json!([]), &usage),
        Bytes::from_static(b"data: [DONE]\n\n"),
    ]
}

fn record(choices: &Value, usage: &Value) -> Bytes {
    let record = json!({
        "id": "c",
        "object": "chat.completion.chunk",
        "created": 0,
        "model": "m",
        "choices": choices,
        "usage": usage,
    });
    format!("data: {record}\n\n").into()
}
