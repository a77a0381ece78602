//! One stream as its reader sees it: kept events first where it asked for them, then what the hub
//! has for it, and a ping where nothing happens. Dropping it closes it.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use tokio::time::{Instant, Sleep, sleep_until};

use super::pace::{Pace, Rest};
use super::reader::{Hands, Kept, Next, Progress, Snapshot};
use super::{Hub, Journal, JournalError, KeptEvent, Page, Scope, Start};
use crate::event::{Event, Seq, What, iso};
use crate::limits::{STREAM_PING_AFTER, STREAM_WRITE_BYTES_MAX};
use crate::sse;
use crate::world::BoxFuture;

/// The type of an agent's last event.
const LAST_OF_AGENT: &str = "agent_destroyed";

pub struct Subscription {
    hub: Arc<Hub>,
    journal: Arc<dyn Journal>,
    scope: Scope,
    number: u64,
    progress: Progress,
    /// The journal's last word, once it is asked again and has nothing.
    after_kept: Kept,
    page: VecDeque<KeptEvent>,
    reading: Option<BoxFuture<'static, Result<Page, JournalError>>>,
    last_frame: Instant,
    /// Looks at `last_frame` when it may be time for a ping; it is not set anew with every frame,
    /// which would take the lock of the runtime's timers each time.
    ticking: Pin<Box<Sleep>>,
    ended: bool,
    /// What the hub hands out at once; empty between polls.
    frames: Vec<Bytes>,
    pace: Pace,
    /// Whether an agent opened it.
    powerless: bool,
}

impl std::fmt::Debug for Subscription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Subscription").field("scope", &self.scope).finish_non_exhaustive()
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if self.powerless {
            self.hub.discount_powerless(&self.scope, self.number);
        }
        self.hub.close(&self.scope, self.number);
    }
}

impl Subscription {
    pub(super) fn new(
        hub: Arc<Hub>,
        journal: Arc<dyn Journal>,
        (scope, number): (Scope, u64),
        start: Start,
        delivered: Seq,
    ) -> Self {
        let after_kept = match start {
            Start::Now | Start::After(_) => Kept::Nothing,
            Start::KeptOnly(_) => Kept::Over,
        };
        let now = Instant::now();
        Self {
            hub,
            journal,
            scope,
            number,
            progress: Progress { delivered, kept: Kept::More },
            after_kept,
            page: VecDeque::new(),
            reading: None,
            last_frame: now,
            ticking: Box::pin(sleep_until(now + STREAM_PING_AFTER)),
            ended: false,
            frames: Vec::new(),
            pace: Pace::new(),
            powerless: false,
        }
    }

    /// The same stream, of which is known that whoever reads it can answer no confirmation.
    #[must_use]
    pub fn of_an_agent(mut self) -> Self {
        self.hub.count_powerless(&self.scope);
        self.powerless = true;
        self
    }

    /// The next frame or ping; `None` at the end. Dropping the wait loses nothing.
    pub async fn next(&mut self) -> Option<Bytes> {
        poll_fn(|cx| self.poll(cx, 0)).await
    }

    /// The next frames that are there, as one piece to be written; else like `next`. A piece for
    /// each would cost more than what is in it.
    pub fn poll_some(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        self.poll(cx, STREAM_WRITE_BYTES_MAX)
    }

    fn poll(&mut self, cx: &mut Context<'_>, bytes_max: usize) -> Poll<Option<Bytes>> {
        if self.ended {
            return Poll::Ready(None);
        }
        match self.poll_frames(cx, bytes_max) {
            Poll::Ready(frame) => {
                self.last_frame = Instant::now();
                self.ended = frame.is_none();
                Poll::Ready(frame)
            }
            Poll::Pending => self.poll_ping(cx).map(Some),
        }
    }

    fn poll_ping(&mut self, cx: &mut Context<'_>) -> Poll<Bytes> {
        loop {
            ready!(self.ticking.as_mut().poll(cx));
            let now = Instant::now();
            let silent = now >= self.last_frame + STREAM_PING_AFTER;
            if silent {
                self.last_frame = now;
            }
            self.ticking.as_mut().reset(self.last_frame + STREAM_PING_AFTER);
            if silent {
                return Poll::Ready(Bytes::from_static(sse::PING));
            }
        }
    }

    fn poll_frames(&mut self, cx: &mut Context<'_>, bytes_max: usize) -> Poll<Option<Bytes>> {
        loop {
            if let Some(kept) = self.page.pop_front() {
                return Poll::Ready(Some(self.replay(&kept)));
            }
            if let Some(reading) = &mut self.reading {
                let page = ready!(reading.as_mut().poll(cx));
                self.reading = None;
                match page {
                    Ok(page) => {
                        if let Some(gap) = self.turn_to(page) {
                            return Poll::Ready(Some(gap));
                        }
                    }
                    Err(error) => {
                        // The reader comes back with its cursor.
                        tracing::error!(%error, scope = ?self.scope, "an event stream ends");
                        return Poll::Ready(None);
                    }
                }
                continue;
            }
            ready!(self.pace.poll_time(cx));
            let rest = self.pace.rest();
            // Whoever looks again by itself is not woken by every event before that.
            let waker = (rest == Rest::UntilWoken).then_some(cx.waker());
            let hands = Hands { frames: &mut self.frames, bytes_max };
            match self.hub.next((&self.scope, self.number), self.progress, waker, hands) {
                Next::Frames(seq) => {
                    self.pace.found();
                    self.progress.delivered = seq.unwrap_or(self.progress.delivered);
                    return Poll::Ready(Some(joined(&mut self.frames)));
                }
                Next::Snapshot(snapshot) => {
                    self.pace.found();
                    return Poll::Ready(Some(self.snapshot(snapshot)));
                }
                Next::Replay => self.reading = Some(self.read()),
                Next::Moved(scope) => {
                    self.scope = scope;
                    // What was read last may lack what was kept under the other id.
                    self.progress.kept = Kept::More;
                }
                Next::Wait => {
                    self.pace.rested();
                    if rest == Rest::UntilWoken {
                        return Poll::Pending;
                    }
                }
                Next::End => return Poll::Ready(None),
            }
        }
    }

    fn read(&self) -> BoxFuture<'static, Result<Page, JournalError>> {
        let (journal, scope) = (Arc::clone(&self.journal), self.scope.clone());
        let after = self.progress.delivered;
        Box::pin(async move { journal.page(&scope, after).await })
    }

    /// Takes a page to be delivered next; returns a frame that says what is missing before it.
    fn turn_to(&mut self, page: Page) -> Option<Bytes> {
        let Page { events, gap, more } = page;
        self.progress.kept = match (events.is_empty(), more, self.progress.kept) {
            (false, true, _) => Kept::More,
            // An agent's last event was read, and now it was published too.
            (true, _, Kept::Over) => Kept::Over,
            (true, _, Kept::More | Kept::Nothing) | (false, false, _) => self.after_kept,
        };
        self.page = events.into();
        let (from, to) = gap?;
        Some(self.frame(What::StreamGap { from, to }))
    }

    fn replay(&mut self, kept: &KeptEvent) -> Bytes {
        self.progress.delivered = kept.seq;
        // An agent that ended, and was not made anew: nothing follows.
        let is_last = self.page.is_empty() && self.progress.kept == Kept::Nothing;
        if is_last && kept.name == LAST_OF_AGENT && self.scope != Scope::Everything {
            self.progress.kept = Kept::Over;
        }
        sse::frame(Some(kept.seq), &kept.name, &kept.json)
    }

    fn snapshot(&self, snapshot: Snapshot) -> Bytes {
        let Snapshot { agent, request, text, chars } = snapshot;
        let what = What::TurnSnapshot { text: text.whole(), offset: chars };
        let name = what.name();
        let event = Event::new(&agent, self.hub.clock.now(), what).of(&request);
        sse::frame(None, name, &event.json())
    }

    fn frame(&self, what: What) -> Bytes {
        let name = what.name();
        let agent_id = match &self.scope {
            Scope::Agent(agent) => Some(agent.clone()),
            Scope::Everything => None,
        };
        let at = iso(self.hub.clock.now());
        let event = Event { what, agent_id, at, request_id: None, seq: None };
        sse::frame(None, name, &event.json())
    }
}

/// All of them as one; a single one is shared, not copied.
fn joined(frames: &mut Vec<Bytes>) -> Bytes {
    if frames.len() == 1
        && let Some(only) = frames.pop()
    {
        return only;
    }
    let mut all = BytesMut::with_capacity(frames.iter().map(Bytes::len).sum());
    for frame in frames.drain(..) {
        all.extend_from_slice(&frame);
    }
    all.freeze()
}
