//! `baresse`: hyper with Server-Sent Events: one model call, every piece to every subscriber.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::Method;
use hyper::body::Frame;
use serde_json::json;
use tokio::sync::broadcast;

use super::direct::{Model, request_body};
use super::{Yardstick, http};

const QUEUE_MAX: usize = 1024;

pub(crate) async fn run(yardstick: &Yardstick) -> anyhow::Result<()> {
    let model = Arc::new(Model::new(yardstick.model)?);
    let (events, _) = broadcast::channel::<Bytes>(QUEUE_MAX);
    let (reply, body) = (http::fixed(yardstick.reply_bytes), request_body(yardstick.request_bytes));
    http::serve(yardstick.port, move |request| {
        let (model, events) = (Arc::clone(&model), events.clone());
        let (reply, body) = (reply.clone(), body.clone());
        async move {
            if request.method() == Method::GET {
                return Ok(subscription(events.subscribe()));
            }
            let call = http::call(request.into_body()).await?;
            if call.method == "send" {
                model
                    .call(body, |text| {
                        // Without a subscriber nobody misses it.
                        let _ = events.send(event(text));
                    })
                    .await?;
            }
            Ok(http::json(reply))
        }
    })
    .await
}

/// A stream that ends when its reader was too slow.
fn subscription(events: broadcast::Receiver<Bytes>) -> http::Answer {
    let frames = stream::unfold(events, |mut events| async move {
        let event = events.recv().await.ok()?;
        Some((Ok::<_, Infallible>(Frame::data(event)), events))
    });
    http::stream("text/event-stream", StreamBody::new(frames).boxed_unsync())
}

fn event(text: &str) -> Bytes {
    let data = json!({"type": "content_chunk", "agent_id": "a", "text": text});
    format!("event: content_chunk\ndata: {data}\n\n").into()
}
