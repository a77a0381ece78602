//! What an agent has to write down, in order, and what may happen only once it is durable.
//! At most one commit of an agent is under way; what comes up meanwhile goes into the next one.
//! It keeps order and never decides what a failed commit means: that is the actor's.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::context::Compacted;
use super::handle::{Cancelled, CompactReply};
use super::outcome::Outcome;
use super::renaming::RenameReply;
use super::turn::Verdict;
use crate::id::{AgentId, ConfirmId, RequestId};
use crate::limits::STORAGE_RETRY_AFTER;
use crate::message::ToolCall;
use crate::policy::Permit;
use crate::provider::Model;
use crate::store::{Store, StoreError, Write};
use crate::world::BoxFuture;

/// Writes that belong together, and what waits for them.
#[derive(Debug)]
pub struct Entry {
    /// The request they are about.
    pub request: Option<RequestId>,
    pub writes: Vec<Write>,
    pub then: Then,
}

#[derive(Debug)]
pub enum Then {
    /// The agent owes these since an earlier commit failed; nobody waits for them.
    Nothing,
    /// The request is accepted.
    Accept,
    /// The turn goes on.
    Work(Vec<Work>),
    /// The request has ended.
    End(Outcome),
    /// The request, whose end was told before it could be written, is on record after all.
    Recorded,
    /// Somebody's answer to a confirmation is on record.
    Answered(ConfirmId),
    /// Whoever cancelled these is told.
    Cancelled(oneshot::Sender<Cancelled>, Cancelled),
    /// The agent has another model, and whoever asked for it is told.
    Model(Box<Model>, oneshot::Sender<Result<(), NotChanged>>),
    Prompt(Arc<str>, oneshot::Sender<Result<(), NotChanged>>),
    /// A summary stands for older messages, and whoever asked for it is told.
    Compacted(Box<Compacted>, CompactReply),
    /// The agent has another id, and whoever gave it is told.
    Renamed(AgentId, RenameReply),
}

/// A change that was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotChanged {
    /// The disk did not take it.
    Storage,
    /// The agent is on its way out.
    Retiring,
}

/// What a turn does once it may.
#[derive(Debug)]
pub enum Work {
    Ask,
    /// Looks whether somebody has to be asked about a call.
    Examine {
        index: usize,
        call: ToolCall,
    },
    /// Lets the confirmation be answered.
    Await(ConfirmId),
    /// Goes on with a call that was decided on without anybody.
    Decide {
        index: usize,
        verdict: Verdict,
    },
    Run {
        index: usize,
        call: ToolCall,
        permit: Permit,
    },
}

pub struct Outbox {
    store: Store,
    waiting: VecDeque<Entry>,
    under_way: Option<UnderWay>,
    retry_at: Option<Instant>,
    /// Why the last commit of what is owed failed.
    owed_because: Option<StoreError>,
}

struct UnderWay {
    entries: Vec<Entry>,
    commit: BoxFuture<'static, Result<(), StoreError>>,
}

impl Outbox {
    pub fn new(store: Store) -> Self {
        Self {
            store,
            waiting: VecDeque::new(),
            under_way: None,
            retry_at: None,
            owed_because: None,
        }
    }

    pub fn push(&mut self, entry: Entry) {
        self.waiting.push_back(entry);
        // Somebody waits for this one; what is owed goes with it.
        self.retry_at = None;
    }

    /// Starts the next commit, if there is something to write and none is under way.
    pub fn flush(&mut self) {
        let due = self.retry_at.is_none_or(|at| at <= Instant::now());
        if self.under_way.is_some() || self.waiting.is_empty() || !due {
            return;
        }
        self.retry_at = None;
        let entries: Vec<Entry> = self.waiting.drain(..).collect();
        let writes: Vec<Write> = entries.iter().flat_map(|entry| entry.writes.clone()).collect();
        let store = self.store.clone();
        let commit =
            async move { if writes.is_empty() { Ok(()) } else { store.commit(writes).await } };
        self.under_way = Some(UnderWay { entries, commit: Box::pin(commit) });
    }

    /// Waits for the commit that is under way; for ever where there is none. Dropping the future
    /// loses nothing.
    pub async fn committed(&mut self) -> (Vec<Entry>, Result<(), StoreError>) {
        let Some(under_way) = &mut self.under_way else {
            return std::future::pending().await;
        };
        let result = under_way.commit.as_mut().await;
        let UnderWay { entries, .. } = self.under_way.take().expect("it was under way just now");
        (entries, result)
    }

    /// Puts what could not be written before everything that waits, and tries again in a while.
    pub fn owe(&mut self, entries: Vec<Entry>, because: StoreError) {
        if entries.is_empty() {
            return;
        }
        self.owed_because = Some(because);
        for entry in entries.into_iter().rev() {
            self.waiting.push_front(entry);
        }
        self.retry_at = Some(Instant::now() + STORAGE_RETRY_AFTER);
    }

    /// Tries at once to write what is owed, for somebody who cannot wait for a better time.
    pub fn try_now(&mut self) {
        self.retry_at = None;
    }

    /// Forgets everything about a request that waits to be written.
    pub fn drop_request(&mut self, request: &RequestId) -> Vec<Entry> {
        let (dropped, kept) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition(|entry: &Entry| entry.request.as_ref() == Some(request));
        self.waiting = kept;
        let dropped: VecDeque<Entry> = dropped;
        dropped.into()
    }

    /// The turn goes no further: what it wanted to do is not done, what it wrote is kept.
    pub fn abandon_work(&mut self) {
        for entry in self.entries_mut() {
            if matches!(entry.then, Then::Work(_)) {
                entry.then = Then::Nothing;
            }
        }
    }

    /// Whether a turn still waits for something to be written, its end included, or what was done
    /// between turns.
    pub fn holds_turn(&mut self) -> bool {
        let holds =
            |then: &Then| matches!(then, Then::Work(_) | Then::End(_) | Then::Compacted(..));
        self.entries_mut().any(|entry| holds(&entry.then))
    }

    /// Whether the agent's next id waits to be written: until it is, nobody knows what to call it.
    pub fn holds_name(&self) -> bool {
        let under_way = self.under_way.iter().flat_map(|under_way| &under_way.entries);
        under_way.chain(&self.waiting).any(|entry| matches!(entry.then, Then::Renamed(..)))
    }

    /// Whether nothing is under way, and what waits only waits for the disk to recover.
    pub fn is_settled(&self) -> bool {
        self.under_way.is_none() && (self.waiting.is_empty() || self.retry_at.is_some())
    }

    /// Why what waits could not be written, where it only waits for the disk to recover.
    pub fn owes(&self) -> Option<&StoreError> {
        self.retry_at.and(self.owed_because.as_ref())
    }

    pub fn retry_at(&self) -> Option<Instant> {
        self.retry_at
    }

    fn entries_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        let under_way = self.under_way.iter_mut().flat_map(|under_way| &mut under_way.entries);
        under_way.chain(&mut self.waiting)
    }
}
