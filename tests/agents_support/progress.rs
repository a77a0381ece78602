//! Tells a test when the server has taken what the scripted model sent: the machine's own HTTP
//! client, with a note of every byte that was asked for again after it had been given.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::Request;
use nexus3::world::{BoxFuture, Http, HttpBody, HttpError, HttpResponse, HttpTerms};
use tokio::sync::Notify;

/// The response header that numbers the calls of the model.
pub const CALL_NUMBER: &str = "x-call";

#[derive(Default)]
pub struct Progress {
    /// Call → bytes of its answer that were used.
    used: Mutex<BTreeMap<u64, usize>>,
    changed: Notify,
}

impl Progress {
    /// Waits until `bytes` of the answer to this call were used.
    pub async fn reached(&self, call: u64, bytes: usize) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            if self.used.lock().expect("nothing under it panics").get(&call) >= Some(&bytes) {
                return;
            }
            changed.await;
        }
    }

    fn note(&self, call: u64, bytes: usize) {
        self.used.lock().expect("nothing under it panics").insert(call, bytes);
        self.changed.notify_waiters();
    }
}

pub struct WatchedHttp {
    pub inner: Arc<dyn Http>,
    pub progress: Arc<Progress>,
}

impl Http for WatchedHttp {
    fn with(self: Arc<Self>, terms: &HttpTerms) -> Arc<dyn Http> {
        let inner = Arc::clone(&self.inner).with(terms);
        Arc::new(Self { inner, progress: Arc::clone(&self.progress) })
    }

    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<HttpResponse, HttpError>> {
        Box::pin(async move {
            let mut response = self.inner.send(request).await?;
            let number = response.headers.get(CALL_NUMBER).and_then(|value| value.to_str().ok());
            if let Some(number) = number.and_then(|number| number.parse().ok()) {
                response.body = watched(response.body, number, Arc::clone(&self.progress));
            }
            Ok(response)
        })
    }
}

/// Whoever asks for more has used what it got before.
fn watched(body: HttpBody, call: u64, progress: Arc<Progress>) -> HttpBody {
    let given = 0_usize;
    Box::pin(stream::unfold((body, given), move |(mut body, given)| {
        let progress = Arc::clone(&progress);
        async move {
            progress.note(call, given);
            let piece = body.next().await?;
            let given = given + piece.as_ref().map_or(0, Bytes::len);
            Some((piece, (body, given)))
        }
    }))
}
