//! `mock`: a model that answers at once, in the streaming form of OpenAI chat completions.
//! `GET /last` tells how long the body of its last request was, `GET /mean` how long bodies were on
//! average since that was asked last.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
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
    let mean = Arc::new(Mean::default());
    let (chunks, gap) = (yardstick.chunks, Duration::from_micros(yardstick.gap_us));
    let burst = yardstick.burst;
    let whole: Arc<[Bytes]> =
        (0..chunks).map(|_| piece(TEXT)).chain(ending("stop", chunks)).collect();
    let file = yardstick.calls_for.as_deref().unwrap_or_default();
    let calling: Arc<[Bytes]> = [call(file)].into_iter().chain(ending("tool_calls", 1)).collect();
    let calls_on: Option<Arc<[u8]>> =
        yardstick.calls_on.as_deref().map(|ask| json!(ask).to_string().into_bytes().into());
    http::serve(yardstick.port, move |request| {
        let (last, mean, whole) = (Arc::clone(&last), Arc::clone(&mean), Arc::clone(&whole));
        let (calls_on, calling) = (calls_on.clone(), Arc::clone(&calling));
        async move {
            if request.method() == Method::GET {
                let bytes = match request.uri().path() {
                    "/mean" => mean.take(),
                    _ => last.load(Ordering::Relaxed),
                };
                return Ok(http::json(bytes.to_string().into()));
            }
            let body = request.into_body().collect().await?.to_bytes();
            last.store(body.len(), Ordering::Relaxed);
            mean.add(body.len());
            let calls = calls_on.is_some_and(|ask| newest(&body).is_some_and(|text| *text == *ask));
            let frames = if gap.is_zero() {
                unhurried(if calls { calling } else { whole }, burst).left_stream()
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

/// How long bodies are on average.
#[derive(Debug, Default)]
struct Mean {
    bytes: AtomicU64,
    bodies: AtomicU64,
}

impl Mean {
    fn add(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.bodies.fetch_add(1, Ordering::Relaxed);
    }

    /// Begins anew.
    fn take(&self) -> usize {
        let bytes = self.bytes.swap(0, Ordering::Relaxed);
        let bodies = self.bodies.swap(0, Ordering::Relaxed);
        usize::try_from(bytes / bodies.max(1)).expect("bodies fit into memory")
    }
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
        .chain(stream::iter(ending("stop", chunks)))
}

fn piece(text: &str) -> Bytes {
    record(&json!([{"index": 0, "delta": {"content": text}, "finish_reason": null}]), &Value::Null)
}

fn call(file: &str) -> Bytes {
    let arguments = json!({"path": file}).to_string();
    let call = json!({
        "index": 0,
        "id": "call_1",
        "type": "function",
        "function": {"name": "read_file", "arguments": arguments},
    });
    let delta = json!({"tool_calls": [call]});
    record(&json!([{"index": 0, "delta": delta, "finish_reason": null}]), &Value::Null)
}

/// The content of a request's newest message, as it is written there.
fn newest(body: &[u8]) -> Option<&[u8]> {
    const CONTENT: &[u8] = br#""content":"#;
    let at = body.windows(CONTENT.len()).rposition(|window| window == CONTENT)?;
    let text = &body[at + CONTENT.len()..];
    let end = text.iter().enumerate().skip(1).find(|(_, byte)| **byte == b'"')?.0;
    Some(&text[..=end])
}

fn ending(finish: &str, chunks: usize) -> [Bytes; 3] {
    let stop = json!([{"index": 0, "delta": {}, "finish_reason": finish}]);
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
