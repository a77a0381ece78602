//! What survives: agents, their conversations, requests and events, in one SQLite database with one
//! connection and one writer. It never decides what is worth keeping; agents and the pool do.
//!
//! **Group commit.** All that is asked goes through one queue to one task (`writer`). It takes what
//! waits, writes it in one transaction in one blocking call, publishes the events, and only then
//! answers. `seq` is given inside the transaction: the order of commits is the order of events.
//!
//! **Failed means failed.** A commit that reported an error may be on disk all the same. Its members
//! are told that it failed, so it must not come back: the connection is dropped without another
//! write and opened again, and the number of the last batch in the database tells whether the failed
//! one is there. If it is, it is the last in the write-ahead log, whose length from before the batch
//! is known, and the log is cut back to it and synced (`ledger`). Until that is done there is no
//! connection, nothing is read or written, and each job first tries again. So nobody ever sees a
//! batch that failed, its sequence numbers are given to the next one, and a caller may repeat what
//! failed. (Telling callers of the late success instead would need every caller to be able to hear
//! that an agent exists which it was told does not.) Only where the process ends in between can a
//! failed batch be found at the next start: whole, and never published before.
//!
//! **A damaged database** is set aside at the start and a new one is made; one that cannot be read is
//! left alone. Damage that is met later fails the read that meets it.
//!
//! **After the agent's end.** Writes about an agent that is gone, or never was, change nothing.

mod apply; // a change, as SQL
mod budgets; // what agents may use, and have used
mod confirmations; // what somebody is asked, as SQL
mod database; // one connection, as we want it
mod error; // what can go wrong
mod files; // the database's files
mod journal; // events that are kept
mod known; // what of it need not be read
mod ledger; // the database, and what must be true of it
mod messages; // conversations, as SQL
mod prune; // what is left of agents that are gone
mod read; // what was written
mod recovery; // what the last server left open
mod rename; // another id for an agent, as SQL
mod requests; // what agents are asked, as SQL
mod schema; // tables, and how they came to be
mod sessions; // what belongs to session files
mod write; // what can be written
mod writer; // the task with the queue

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use crate::code::ErrorObject;
use crate::event::{Audience, Seq};
use crate::hub::{Journal, JournalError, Page, Scope};
use crate::id::{AgentId, ConfirmId, RequestId};
use crate::limits::STORE_QUEUE_MAX;
use crate::message::Message;
use crate::policy::budget::KeptBudget;
use crate::world::{BoxFuture, World};

pub use error::{Fault, StoreError};
pub use journal::Kept;
pub use prune::GoneAgent;
pub use read::{ConfirmationRecord, Loaded, Opening, RequestRecord, Resident};
pub use recovery::Closed;
pub use sessions::{Exported, Listing, SessionRow, StoredSession, TakenSession};
pub use write::{AgentNumber, AgentRecord, ConfirmationAsked, Granted, Recipe, Standing, Write};

use ledger::Ledger;
use writer::{Job, Writer};

/// The open database. Cloning shares it.
#[derive(Clone)]
pub struct Store {
    queue: mpsc::Sender<Job>,
    last_seq: Arc<AtomicU64>,
}

#[derive(Clone, Debug)]
pub struct Options {
    /// Absolute; its directory exists.
    pub path: PathBuf,
    pub sync: Sync,
    pub kept: Kept,
    /// What the event of a turn says that the end of the last server ended.
    pub interrupted: ErrorObject,
}

/// When a commit is told to be done (`storage.sync`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// Once it is durable.
    Full,
    /// Once it is written: it outlives the process, but the last ones may not outlive a power cut,
    /// and a disk that fails a sync just before one may take more.
    Normal,
}

#[derive(Debug)]
pub struct Opened {
    pub store: Store,
    /// The agents that can be restored, in order of number.
    pub residents: Vec<Resident>,
    /// Parents before their children.
    pub budgets: Vec<KeptBudget>,
    pub next_number: AgentNumber,
    pub last_seq: Seq,
    /// What the last server left open.
    pub closed: Closed,
    /// The results that it gave to tool calls which had none.
    pub results: Vec<(AgentId, Arc<Message>)>,
    /// Where a damaged database was put; a new one was made.
    pub set_aside: Option<PathBuf>,
}

impl Store {
    /// Opens the database, made where there is none, and closes what the last server left open.
    pub async fn open(
        world: &World,
        options: Options,
        audience: Arc<dyn Audience>,
    ) -> Result<Opened, StoreError> {
        let job = {
            let world = world.clone();
            move || Ledger::open(&world, &options)
        };
        let (ledger, start) = world.blocking.call(job).await?;
        if !start.events.is_empty() {
            audience.publish(&start.events);
        }
        let last_seq = Arc::new(AtomicU64::new(ledger.last_seq()));
        let (queue, jobs) = mpsc::channel(STORE_QUEUE_MAX);
        let opened = Opened {
            store: Self { queue, last_seq: Arc::clone(&last_seq) },
            residents: start.residents,
            budgets: start.budgets,
            next_number: ledger.next_number(),
            last_seq: ledger.last_seq(),
            closed: start.recovered.closed,
            results: start.recovered.results,
            set_aside: start.set_aside,
        };
        let writer = Writer::new(Arc::clone(&world.blocking), jobs, audience, last_seq);
        tokio::spawn(writer.run(ledger));
        Ok(opened)
    }

    /// Commits all of `writes` or nothing. Their events are published, in the order of their `seq`,
    /// before it returns. What was asked is done even if nobody waits for it any more.
    pub async fn commit(&self, writes: Vec<Write>) -> Result<(), StoreError> {
        for write in &writes {
            if let Write::Event(event) = write {
                assert!(event.what.is_durable(), "live events are not kept");
                assert!(event.agent_id.is_some(), "durable events are about an agent");
            }
        }
        let (reply, answer) = oneshot::channel();
        self.ask(Job::Commit { writes, reply }, answer).await?
    }

    /// All that is needed to restore an agent; none where there is no such agent, or only one that
    /// cannot be restored. Of its messages come the newest, at most `messages_max`.
    pub async fn load(
        &self,
        agent: AgentNumber,
        messages_max: usize,
    ) -> Result<Option<Loaded>, StoreError> {
        let messages_max = messages_max as u64;
        self.read(move |connection| read::load(connection, agent, messages_max)).await
    }

    /// A page of an agent's messages, from the one with index `offset` on.
    pub async fn messages(
        &self,
        agent: AgentNumber,
        offset: u64,
        limit: u64,
    ) -> Result<Vec<Arc<Message>>, StoreError> {
        self.read(move |connection| messages::messages(connection, agent, offset, limit)).await
    }

    /// What stands for an agent's messages before the one of this index when a model is asked.
    pub async fn summary(&self, agent: AgentNumber) -> Result<Option<(u64, Arc<str>)>, StoreError> {
        self.read(move |connection| read::summary(connection, agent)).await
    }

    /// Agents that are gone and last changed before a time (ISO 8601, UTC), after the one of a number;
    /// so many at most.
    pub async fn gone(
        &self,
        before: &str,
        after: AgentNumber,
        limit: usize,
    ) -> Result<Vec<GoneAgent>, StoreError> {
        let before = before.to_owned();
        self.read(move |connection| prune::gone(connection, &before, (after, limit))).await
    }

    /// How many bytes are left of an agent that is gone.
    pub async fn bytes_left(&self, agent: AgentNumber) -> Result<u64, StoreError> {
        self.read(move |connection| prune::bytes(connection, agent)).await
    }

    /// Removes all that is left of an agent that is gone, piece by piece; others get in between.
    pub async fn prune(&self, agent: AgentNumber) -> Result<(), StoreError> {
        while self.read(move |connection| prune::is_left(connection, agent)).await? {
            self.commit(vec![Write::AgentPruned { number: agent }]).await?;
        }
        Ok(())
    }

    pub async fn request(
        &self,
        agent: AgentNumber,
        id: &RequestId,
    ) -> Result<Option<RequestRecord>, StoreError> {
        let id = id.clone();
        self.read(move |connection| read::request(connection, agent, &id)).await
    }

    pub async fn confirmation(
        &self,
        agent: AgentNumber,
        id: &ConfirmId,
    ) -> Result<Option<ConfirmationRecord>, StoreError> {
        let id = id.clone();
        self.read(move |connection| read::confirmation(connection, agent, &id)).await
    }

    /// A page of the events that are kept after a cursor, bounded in bytes and rows; at least one
    /// where there is any.
    pub async fn events(&self, of: &Scope, after: Seq) -> Result<Page, StoreError> {
        let of = of.clone();
        self.read(move |connection| journal::page(connection, &of, after)).await
    }

    /// All of an agent's session but its messages; also of a temporary one that ended with its server.
    pub async fn session(&self, agent: AgentNumber) -> Result<Option<SessionRow>, StoreError> {
        self.read(move |connection| sessions::row(connection, agent)).await
    }

    /// The sessions that are only here, in order of number.
    pub async fn sessions(&self, listing: Listing) -> Result<Vec<StoredSession>, StoreError> {
        self.read(move |connection| sessions::list(connection, listing)).await
    }

    /// The agent whose stream a terminal opened last, unless it was destroyed since.
    pub async fn last_session(&self) -> Result<Option<AgentNumber>, StoreError> {
        self.read(sessions::last).await
    }

    /// Of the last commit, without waiting. It is set before that commit's events are published.
    pub fn last_seq(&self) -> Seq {
        self.last_seq.load(Ordering::Acquire)
    }

    /// Waits for what was asked before, then closes the database. Later calls fail with `Closed`.
    pub async fn close(&self) {
        let (reply, answer) = oneshot::channel();
        // It may be closed already, which is what was asked for.
        let _ = self.ask(Job::Close { reply }, answer).await;
    }

    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.ask(Job::read(read, reply), answer).await?
    }

    async fn ask<T>(&self, job: Job, answer: oneshot::Receiver<T>) -> Result<T, StoreError> {
        self.queue.send(job).await.map_err(|_| StoreError::Closed)?;
        answer.await.map_err(|_| StoreError::Closed)
    }
}

impl Journal for Store {
    fn page<'a>(&'a self, of: &'a Scope, after: Seq) -> BoxFuture<'a, Result<Page, JournalError>> {
        Box::pin(async move {
            let page = self.events(of, after).await;
            page.map_err(|source| JournalError { source: Box::new(source) })
        })
    }

    fn last_seq(&self) -> Seq {
        self.last_seq()
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("last_seq", &self.last_seq()).finish_non_exhaustive()
    }
}
