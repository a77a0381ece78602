//! What is seen of a conversation while its messages pass: that it ends, that a server says more than
//! anybody asked for, and that it takes nothing of what it is sent. The last two end it.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use rmcp::RoleClient;
use rmcp::model::JsonRpcMessage;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::connection::{Lost, Server};
use super::ear::{self, End};
use super::http;
use crate::limits::{MCP_UNASKED_PER_SECOND_MAX, MCP_UNTAKEN_MAX};

/// What was seen of a connection besides its messages.
#[derive(Default)]
pub(super) struct Watch {
    pub(super) over: CancellationToken,
    /// Why we ended it.
    ended: ArcSwapOption<Lost>,
}

impl Watch {
    fn end(&self, why: Lost) {
        self.ended.store(Some(Arc::new(why)));
        self.over.cancel();
    }

    pub(super) fn because(&self, lost: Lost) -> Lost {
        self.ended.load_full().map_or(lost, |ended| Lost::clone(&ended))
    }
}

/// How many there were in this second.
pub(super) struct Rate {
    most: u32,
    since: Instant,
    count: u32,
}

const SECOND: Duration = Duration::from_secs(1);

impl Rate {
    pub(super) fn of(most: u32) -> Self {
        Self { most, since: Instant::now(), count: 0 }
    }

    /// Counts one more.
    pub(super) fn is_exceeded(&mut self) -> bool {
        let now = Instant::now();
        if now.duration_since(self.since) >= SECOND {
            (self.since, self.count) = (now, 0);
        }
        self.count += 1;
        self.count > self.most
    }

    /// Counts one more, and says when it may be if that is not now.
    pub(super) fn pause(&mut self) -> Option<Instant> {
        self.is_exceeded().then(|| self.since + SECOND)
    }
}

/// A transport whose end is seen, and which ends when it is flooded or nothing is taken.
pub(super) struct Watched<T> {
    inner: T,
    watch: Arc<Watch>,
    rate: Rate,
    /// Requests that have no answer yet.
    asked: u64,
    /// Held once for each message that is not taken yet.
    untaken: Arc<()>,
    server: Arc<Server>,
}

impl<T> Watched<T> {
    pub(super) fn new(inner: T, watch: &Arc<Watch>, server: &Arc<Server>) -> Self {
        Self {
            inner,
            watch: Arc::clone(watch),
            rate: Rate::of(MCP_UNASKED_PER_SECOND_MAX),
            asked: 0,
            untaken: Arc::default(),
            server: Arc::clone(server),
        }
    }

    /// Whether nobody waits for it.
    fn is_unasked(&mut self, message: &RxJsonRpcMessage<RoleClient>) -> bool {
        match message {
            JsonRpcMessage::Notification(_) | JsonRpcMessage::Request(_) => true,
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {
                let is_one_too_many = self.asked == 0;
                self.asked = self.asked.saturating_sub(1);
                is_one_too_many
            }
        }
    }
}

impl<T> Transport<RoleClient> for Watched<T>
where
    T: Transport<RoleClient> + 'static,
{
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        let told = self.server.ear().map(|ear| {
            let message = ear::sent(&message);
            let id = message["id"].clone();
            ear.asks(&self.server.name, message);
            (Arc::clone(ear), Arc::clone(&self.server), id)
        });
        if matches!(message, JsonRpcMessage::Request(_)) {
            self.asked += 1;
        }
        let untaken = Arc::clone(&self.untaken);
        if Arc::strong_count(&untaken) > MCP_UNTAKEN_MAX {
            self.watch.end(Lost::Deaf);
        }
        let sending = self.inner.send(message);
        async move {
            let sent = sending.await;
            drop(untaken);
            if let (Err(error), Some((ear, server, id))) = (&sent, told) {
                let end = match (http::trouble(error), &*server.trouble.load()) {
                    (Some(lost), _) => End::of(&lost),
                    (None, Some(lost)) => End::of(lost),
                    (None, None) => End::Closed,
                };
                ear.failed(&server.name, id, end);
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let message = self.inner.receive().await;
        if let (Some(message), Some(ear)) = (&message, self.server.ear()) {
            ear::tell(ear.as_ref(), &self.server.name, message);
        }
        let is_unasked = message.as_ref().is_some_and(|message| self.is_unasked(message));
        if is_unasked && self.rate.is_exceeded() {
            self.watch.end(Lost::Flood);
            return None;
        }
        if message.is_none() {
            self.watch.over.cancel();
        }
        message
    }

    async fn close(&mut self) -> Result<(), T::Error> {
        self.inner.close().await
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_comes_too_often_waits_for_the_next_second() {
        let mut rate = Rate::of(2);
        let began = Instant::now();
        let next = Some(began + SECOND);
        assert_eq!([rate.pause(), rate.pause(), rate.pause()], [None, None, next]);
        advance(SECOND).await;
        assert_eq!(rate.pause(), None);
    }
}
