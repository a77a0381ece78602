//! The task with the queue: takes what waits, has it done in one blocking call, tells everybody, while
//! more is being done if more waits. It never touches the database itself, and never waits for anybody it tells.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::Write;
use super::error::{Fault, StoreError};
use super::journal::More;
use super::ledger::Ledger;
use crate::causes::told;
use crate::event::{Audience, Committed};
use crate::limits::{EVENTS_FORGET_EVERY, STORE_BATCH_MAX};
use crate::world::Blocking;

pub(super) enum Job {
    Commit { writes: Vec<Write>, reply: oneshot::Sender<Result<(), StoreError>> },
    Read(Read),
    Close { reply: oneshot::Sender<()> },
}

/// Reads with the connection and returns how to tell what was read.
type Read = Box<dyn FnOnce(Result<&Connection, StoreError>) -> Told + Send>;
type Told = Box<dyn FnOnce() + Send>;

impl Job {
    pub(super) fn read<T: Send + 'static>(
        read: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
        reply: oneshot::Sender<Result<T, StoreError>>,
    ) -> Self {
        Self::Read(Box::new(move |connection| {
            let result = connection
                .and_then(|connection| read(connection).map_err(|error| unread(error.into())));
            Box::new(move || {
                // Whoever asked may have gone.
                let _ = reply.send(result);
            })
        }))
    }
}

pub(super) struct Writer {
    blocking: Arc<dyn Blocking>,
    queue: mpsc::Receiver<Job>,
    audience: Arc<dyn Audience>,
    last_seq: Arc<AtomicU64>,
}

/// What is done in one go.
#[derive(Default)]
struct Round {
    writes: Vec<Write>,
    members: Vec<oneshot::Sender<Result<(), StoreError>>>,
    reads: Vec<Read>,
    close: Option<oneshot::Sender<()>>,
}

/// What came of it.
struct Done {
    committed: Result<Vec<Committed>, StoreError>,
    members: Vec<oneshot::Sender<Result<(), StoreError>>>,
    told: Vec<Told>,
}

impl Writer {
    pub(super) fn new(
        blocking: Arc<dyn Blocking>,
        queue: mpsc::Receiver<Job>,
        audience: Arc<dyn Audience>,
        last_seq: Arc<AtomicU64>,
    ) -> Self {
        Self { blocking, queue, audience, last_seq }
    }

    pub(super) async fn run(mut self, mut ledger: Ledger) {
        let mut forget_at = Instant::now();
        let mut first = None;
        // What was done and nobody was told of yet: that happens while the next round is under way.
        let mut done: Option<Done> = None;
        let close = loop {
            if let Some(job) = first.take().or_else(|| self.queue.try_recv().ok()) {
                let mut round = self.round(job);
                let close = round.close.take();
                let under_way = self.blocking.call(move || round.perform(ledger));
                self.tell(done.take());
                let just_done;
                (ledger, just_done) = under_way.await;
                done = Some(just_done);
                if close.is_some() {
                    self.tell(done);
                    break close;
                }
            } else {
                self.tell(done.take());
                tokio::select! {
                    biased;
                    job = self.queue.recv() => match job {
                        Some(job) => first = Some(job),
                        // All handles are gone: nobody is left to be told.
                        None => break None,
                    },
                    () = tokio::time::sleep_until(forget_at) => {}
                }
            }
            if forget_at <= Instant::now() {
                self.tell(done.take());
                let more;
                (ledger, more) = self.blocking.call(move || forget_old(ledger)).await;
                forget_at = match more {
                    More::Maybe => Instant::now(),
                    More::No => Instant::now() + EVENTS_FORGET_EVERY,
                };
            }
        };
        self.queue.close();
        if let Err(fault) = self.blocking.call(move || ledger.close()).await {
            // Nothing is lost by it: the next start reads the log.
            tracing::warn!(fault = told(&fault), "the database was left with its log");
        }
        if let Some(reply) = close {
            let _ = reply.send(());
        }
    }

    /// The job at hand and what else waits, up to a bound. Nothing is taken after a close.
    fn round(&mut self, first: Job) -> Round {
        let mut round = Round::default();
        round.add(first);
        while round.len() < STORE_BATCH_MAX && round.close.is_none() {
            match self.queue.try_recv() {
                Ok(job) => round.add(job),
                Err(_) => break,
            }
        }
        round
    }

    /// First the events, then the answers: who is answered finds the events published.
    fn tell(&self, done: Option<Done>) {
        let Some(done) = done else { return };
        if let Ok(events) = &done.committed
            && let (Some(first), Some(last)) = (events.first(), events.last())
        {
            let before = self.last_seq.swap(last.seq, Ordering::AcqRel);
            assert_eq!(before + 1, first.seq, "no sequence number is left out or given twice");
            self.audience.publish(events);
        }
        let answer = done.committed.map(drop);
        if let Err(error) = &answer {
            tracing::error!(error = told(error), commits = done.members.len(), "nothing was kept");
        }
        for member in done.members {
            let _ = member.send(answer.clone());
        }
        for told in done.told {
            told();
        }
    }
}

impl Round {
    fn add(&mut self, job: Job) {
        match job {
            Job::Commit { writes, reply } => {
                self.writes.extend(writes);
                self.members.push(reply);
            }
            Job::Read(read) => self.reads.push(read),
            Job::Close { reply } => self.close = Some(reply),
        }
    }

    fn len(&self) -> usize {
        self.members.len() + self.reads.len()
    }

    /// The writes as one transaction, then the reads, which so see them.
    fn perform(self, mut ledger: Ledger) -> (Ledger, Done) {
        let committed = if self.writes.is_empty() {
            Ok(Vec::new())
        } else {
            ledger.commit(self.writes).map_err(unwritten)
        };
        let read = |read: Read| read(ledger.connection().map_err(unread));
        let told = self.reads.into_iter().map(read).collect();
        (ledger, Done { committed, members: self.members, told })
    }
}

fn forget_old(mut ledger: Ledger) -> (Ledger, More) {
    let more = ledger.forget_old().unwrap_or_else(|fault| {
        tracing::warn!(fault = told(&fault), "old events are forgotten later");
        More::No
    });
    (ledger, more)
}

fn unread(fault: Fault) -> StoreError {
    StoreError::Read { source: Arc::new(fault) }
}

fn unwritten(fault: Fault) -> StoreError {
    StoreError::Write { source: Arc::new(fault) }
}
