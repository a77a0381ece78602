//! What each agent did, in files of its own, for people: `context.md`, the transcript, always;
//! `verbose.md`, every durable event, and `raw.jsonl`, the traffic with providers, where asked for.
//!
//! Telling the logs something never waits and never fails: agents must not depend on a disk that is
//! only there to be read later. What finds no room is counted, and the file says how much it lacks.
//! Nothing here is ever read back: the database is the truth.

mod append; // texts to the ends of files
mod carry; // files of an agent that got another id
mod discard; // files of an agent that is gone
mod queue; // what waits
mod raw; // traffic as JSON lines
mod text; // messages and events as Markdown
mod writer; // the task that writes

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use self::discard::Discard;
use self::queue::{LogFile, Place, Queue};
use self::writer::Writer;
use crate::event::{Audience, Committed, What, iso};
use crate::id::{AgentId, RequestId};
use crate::limits::LOG_CLOSE_MAX;
use crate::message::Message;
use crate::provider::{Passed, Traffic};
use crate::world::{Clock, World};

/// What is written besides the transcripts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Detail {
    /// Every durable event.
    pub verbose: bool,
    /// The traffic with providers.
    pub raw: bool,
}

/// Takes what is to be written. Cloning shares it; with the last clone the writing ends.
#[derive(Clone)]
pub struct Logs {
    shared: Arc<Shared>,
}

struct Shared {
    clock: Arc<dyn Clock>,
    detail: Detail,
    queue: Queue,
    /// Which request each agent works on, as its events say; only kept for the traffic's lines.
    running: ArcSwap<BTreeMap<AgentId, RequestId>>,
    close: CancellationToken,
    closed: CancellationToken,
}

impl fmt::Debug for Logs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Logs").field("detail", &self.shared.detail).finish_non_exhaustive()
    }
}

impl Logs {
    /// Starts the task that writes into `dir`, an absolute path. Nothing is made there before there
    /// is something to write.
    pub fn start(world: &World, dir: PathBuf, detail: Detail) -> Self {
        let (queue, waiting, dropped) = Queue::new();
        let (close, closed) = (CancellationToken::new(), CancellationToken::new());
        let writer = Writer::new(world.clone(), dir, waiting, dropped).run(close.clone());
        // However the task ends, nobody waits for it in vain.
        let told = closed.clone().drop_guard();
        tokio::spawn(async move {
            let _told = told;
            writer.await;
        });
        let clock = Arc::clone(&world.clock);
        let running = ArcSwap::default();
        let shared = Shared { clock, detail, queue, running, close, closed };
        Self { shared: Arc::new(shared) }
    }

    /// A message joined an agent's conversation.
    pub fn message(&self, agent: &AgentId, message: &Message) {
        self.push(agent, LogFile::Context, text::message(&self.now(), message));
    }

    /// Removes the files of an id that nobody has, after what waits for them; returns their bytes.
    pub async fn discard(&self, agent: &AgentId) -> u64 {
        self.shared.queue.ask(Discard::Remove, agent).await
    }

    /// How many bytes the files of an id have.
    pub async fn bytes(&self, agent: &AgentId) -> u64 {
        self.shared.queue.ask(Discard::Measure, agent).await
    }

    /// Who writes down what passes between providers and us, where that was asked for.
    pub fn traffic(&self) -> Option<Arc<dyn Traffic>> {
        self.shared.detail.raw.then(|| Arc::new(self.clone()) as Arc<dyn Traffic>)
    }

    /// Writes what waits, within bounds; what is said from now on is lost.
    pub async fn close(&self) {
        self.shared.close.cancel();
        if timeout(LOG_CLOSE_MAX, self.shared.closed.cancelled()).await.is_err() {
            tracing::warn!("the logs of agents lack their ends: the disk takes too long");
        }
    }

    fn push(&self, agent: &AgentId, file: LogFile, text: String) {
        self.shared.queue.push(Place { agent: agent.clone(), file }, text);
    }

    fn now(&self) -> Arc<str> {
        iso(self.shared.clock.now())
    }

    /// Follows which request an agent works on.
    fn follow(&self, agent: &AgentId, request: &RequestId, what: &What) {
        let change = |change: &dyn Fn(&mut BTreeMap<AgentId, RequestId>)| {
            self.shared.running.rcu(|running| {
                let mut running = BTreeMap::clone(running);
                change(&mut running);
                running
            });
        };
        if matches!(what, What::TurnStarted { .. }) {
            change(&|running| {
                running.insert(agent.clone(), request.clone());
            });
        } else if what.is_terminal() && self.shared.running.load().get(agent) == Some(request) {
            change(&|running| {
                running.remove(agent);
            });
        }
    }
}

impl Audience for Logs {
    fn publish(&self, events: &[Committed]) {
        for Committed { seq, event, json: _ } in events {
            let Some(agent) = &event.agent_id else { continue };
            if let What::AgentUpdated { previous_agent_id: Some(previous), .. } = &event.what {
                self.shared.queue.carry(previous, agent);
            }
            if let Some(note) = text::note(event) {
                self.push(agent, LogFile::Context, note);
            }
            if self.shared.detail.verbose {
                self.push(agent, LogFile::Verbose, text::verbose(*seq, event));
            }
            if self.shared.detail.raw
                && let Some(request) = &event.request_id
            {
                self.follow(agent, request, &event.what);
            }
        }
    }
}

impl Traffic for Logs {
    fn passed(&self, agent: &AgentId, passed: Passed) {
        let running = self.shared.running.load();
        let line = raw::line(&self.now(), running.get(agent), passed);
        self.push(agent, LogFile::Raw, line);
    }
}
