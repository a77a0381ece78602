//! What waits for one reader: a bounded buffer, which snapshots are due, and whether it reads from
//! the journal instead. Pure: it never waits and wakes nobody; the hub does both.

use std::collections::{BTreeMap, VecDeque};
use std::task::Waker;

use bytes::Bytes;

use super::Scope;
use super::text::Text;
use crate::event::Seq;
use crate::id::{AgentId, RequestId};
use crate::limits::STREAM_BUFFER_BYTES_MAX;

/// A turn that runs, as far as its text goes.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) request: RequestId,
    pub(super) text: Text,
    pub(super) chars: usize,
}

/// The running turn of every agent that has one.
pub(super) type AllRunning = BTreeMap<AgentId, Running>;

/// The text of a running turn at one moment.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) agent: AgentId,
    pub(super) request: RequestId,
    pub(super) text: Text,
    pub(super) chars: usize,
}

/// A durable event on its way to readers.
#[derive(Debug)]
pub(super) struct Durable<'a> {
    pub(super) seq: Seq,
    pub(super) agent: &'a AgentId,
    /// `None` where it is too long for any buffer: readers find it in the journal.
    pub(super) frame: Option<Bytes>,
    pub(super) ends: Ends,
}

/// What is over with an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ends {
    Nothing,
    /// The turn whose text is followed.
    Turn,
    Agent,
}

/// How far a reader has come, as it knows itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    /// The last durable event it got.
    pub(super) delivered: Seq,
    pub(super) kept: Kept,
}

/// What the journal still has for a reader, by the last page it read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    More,
    Nothing,
    /// Nothing, and nothing will ever follow.
    Over,
}

/// What a reader does next.
#[derive(Debug)]
pub(super) enum Next {
    /// Take what was handed out, the last durable event of which this is.
    Frames(Option<Seq>),
    Snapshot(Snapshot),
    /// Read the journal on from what was delivered.
    Replay,
    /// The agent has another id: this is what the stream is about from now on.
    Moved(Scope),
    /// It will be woken.
    Wait,
    End,
}

/// Where a reader puts what it hands out.
#[derive(Debug)]
pub(super) struct Hands<'a> {
    pub(super) frames: &'a mut Vec<Bytes>,
    /// A first frame is handed out in any case, others only up to so many bytes in all.
    pub(super) bytes_max: usize,
}

#[derive(Debug)]
struct Pending {
    /// Counts what was queued for this reader, so that a snapshot can be due after it.
    number: u64,
    /// Of durable events.
    seq: Option<Seq>,
    agent: AgentId,
    bytes: Bytes,
}

#[derive(Debug)]
pub(super) struct Reader {
    mode: Mode,
    /// Durable events up to here need not be queued: they were, or were read from the journal.
    taken: Seq,
    queue: VecDeque<Pending>,
    pub(super) queue_bytes: usize,
    queued: u64,
    /// Agents whose running text is to be told instead of their live events, each after the frame
    /// with this number: what happened before it is told before it.
    due: BTreeMap<AgentId, u64>,
    /// Nothing follows what is queued.
    over: Over,
    waker: Option<Waker>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Over {
    No,
    AgentGone,
    /// The last event of the server was handed out.
    ServerStopped,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Reads the journal; nothing is queued for it.
    Replaying {
        /// Something was published since its last page was asked for.
        news: bool,
    },
    Live,
}

impl Reader {
    pub(super) fn replaying() -> Self {
        Self::new(Mode::Replaying { news: false })
    }

    /// One that hears all that is published after `taken`.
    pub(super) fn live(scope: &Scope, taken: Seq, running: &AllRunning) -> Self {
        let mut reader = Self::new(Mode::Live);
        reader.go_live(scope, taken, running);
        reader
    }

    fn new(mode: Mode) -> Self {
        Self {
            mode,
            taken: 0,
            queue: VecDeque::new(),
            queue_bytes: 0,
            queued: 0,
            due: BTreeMap::new(),
            over: Over::No,
            waker: None,
        }
    }

    /// In the middle of a turn the text so far comes first.
    fn go_live(&mut self, scope: &Scope, taken: Seq, running: &AllRunning) {
        self.mode = Mode::Live;
        self.taken = taken;
        self.due = match scope {
            Scope::Agent(agent) if running.contains_key(agent) => [(agent.clone(), 0)].into(),
            Scope::Agent(_) => BTreeMap::new(),
            Scope::Everything => running.keys().map(|agent| (agent.clone(), 0)).collect(),
        };
    }

    /// Whether any live event reaches it before it reads on.
    pub(super) fn hears_live(&self, scope: &Scope) -> bool {
        let one_agent_at_most = *scope != Scope::Everything;
        let is_due = one_agent_at_most && !self.due.is_empty();
        self.mode == Mode::Live && self.over == Over::No && !is_due
    }

    /// Whether live events of this agent come one by one: not while a snapshot is due, nor while
    /// the journal is read. Then they need not even be written.
    pub(super) fn hears_live_of(&self, agent: &AgentId) -> bool {
        self.mode == Mode::Live && self.over == Over::No && !self.due.contains_key(agent)
    }

    /// Takes a live event of a running turn that is heard; returns who is to be woken.
    pub(super) fn push_live(&mut self, agent: &AgentId, frame: Bytes) -> Option<Waker> {
        if self.fits(&frame) {
            self.queue(None, agent, frame);
        } else {
            self.drop_live();
            self.due.insert(agent.clone(), self.queued);
        }
        self.waker.take()
    }

    /// Takes a durable event; returns who is to be woken.
    pub(super) fn push_durable(&mut self, scope: &Scope, event: &Durable<'_>) -> Option<Waker> {
        match &mut self.mode {
            Mode::Replaying { news } => *news = true,
            Mode::Live if event.seq <= self.taken || self.over != Over::No => return None,
            Mode::Live => self.take_durable(scope, event),
        }
        self.waker.take()
    }

    fn take_durable(&mut self, scope: &Scope, event: &Durable<'_>) {
        if event.frame.as_ref().is_some_and(|frame| !self.fits(frame)) {
            self.drop_live();
        }
        let Some(frame) = event.frame.as_ref().filter(|frame| self.fits(frame)) else {
            // It waits in the journal, with all others that this reader has not got yet.
            *self = Self { waker: self.waker.take(), ..Self::new(Mode::Replaying { news: true }) };
            return;
        };
        self.queue(Some(event.seq), event.agent, frame.clone());
        self.taken = event.seq;
        match event.ends {
            Ends::Nothing => {
                if let Some(after) = self.due.get_mut(event.agent) {
                    *after = self.queued;
                }
            }
            // The event has the text.
            Ends::Turn => drop(self.due.remove(event.agent)),
            Ends::Agent => {
                self.due.remove(event.agent);
                if *scope != Scope::Everything {
                    self.over = Over::AgentGone;
                }
            }
        }
    }

    fn fits(&self, frame: &Bytes) -> bool {
        self.queue_bytes + frame.len() <= STREAM_BUFFER_BYTES_MAX
    }

    fn queue(&mut self, seq: Option<Seq>, agent: &AgentId, bytes: Bytes) {
        self.queued += 1;
        self.queue_bytes += bytes.len();
        assert!(self.queue_bytes <= STREAM_BUFFER_BYTES_MAX, "only what fits is queued");
        self.queue.push_back(Pending { number: self.queued, seq, agent: agent.clone(), bytes });
    }

    /// Makes snapshots due in the place of the live events that wait.
    fn drop_live(&mut self) {
        let after = self.queued;
        let (due, bytes) = (&mut self.due, &mut self.queue_bytes);
        self.queue.retain(|pending| {
            if pending.seq.is_none() {
                *bytes -= pending.bytes.len();
                due.insert(pending.agent.clone(), after);
            }
            pending.seq.is_some()
        });
        // Whoever does not read may not do so for long.
        self.queue.shrink_to_fit();
    }

    pub(super) fn next(
        &mut self,
        scope: &Scope,
        progress: Progress,
        running: &AllRunning,
        hub: Heard<'_>,
        hands: Hands<'_>,
    ) -> Next {
        if let Mode::Replaying { news } = &mut self.mode {
            match progress.kept {
                Kept::Nothing if !*news => {}
                Kept::Over if !*news => return Next::End,
                Kept::More | Kept::Nothing | Kept::Over => {
                    *news = false;
                    return Next::Replay;
                }
            }
            if hub.is_behind(progress.delivered) {
                return Next::Wait;
            }
            self.go_live(scope, progress.delivered, running);
        }
        if let Some(snapshot) = self.next_snapshot(running) {
            return Next::Snapshot(snapshot);
        }
        if !self.queue.is_empty() {
            return Next::Frames(self.hand_out(hands));
        }
        match (self.over, hub.stopping) {
            (Over::AgentGone | Over::ServerStopped, _) => Next::End,
            (Over::No, Some(frame)) => {
                self.over = Over::ServerStopped;
                hands.frames.push(frame.clone());
                Next::Frames(None)
            }
            (Over::No, None) => Next::Wait,
        }
    }

    /// Hands out what is queued, as much as there may be at once; returns its last `seq`.
    fn hand_out(&mut self, hands: Hands<'_>) -> Option<Seq> {
        let Hands { frames, bytes_max } = hands;
        let (mut handed, mut seq) = (0, None);
        while let Some(front) = self.queue.front() {
            handed += front.bytes.len();
            // A snapshot may be due behind any of them.
            if !frames.is_empty() && (handed > bytes_max || !self.due.is_empty()) {
                break;
            }
            let pending = self.queue.pop_front().expect("it was looked at just now");
            self.queue_bytes -= pending.bytes.len();
            seq = pending.seq.or(seq);
            frames.push(pending.bytes);
        }
        seq
    }

    fn next_snapshot(&mut self, running: &AllRunning) -> Option<Snapshot> {
        let front = self.queue.front().map_or(u64::MAX, |pending| pending.number);
        loop {
            let ready = self.due.iter().find(|(_, after)| **after < front);
            let agent = ready.map(|(agent, _)| agent.clone())?;
            self.due.remove(&agent);
            // A turn that has ended meanwhile is told by its last event.
            if let Some(turn) = running.get(&agent) {
                let (request, text) = (turn.request.clone(), turn.text.clone());
                return Some(Snapshot { agent, request, text, chars: turn.chars });
            }
        }
    }

    pub(super) fn wake_with(&mut self, waker: &Waker) {
        match &mut self.waker {
            Some(known) => known.clone_from(waker),
            None => self.waker = Some(waker.clone()),
        }
    }

    pub(super) fn take_waker(&mut self) -> Option<Waker> {
        self.waker.take()
    }
}

/// What the hub has heard so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heard<'a> {
    /// The last event published by this process. Before the first one no turn runs.
    pub(super) published: Option<Seq>,
    /// The frame that ends every stream.
    pub(super) stopping: Option<&'a Bytes>,
}

impl Heard<'_> {
    /// Whether the journal was faster: then a turn may be over that still counts as running.
    fn is_behind(self, delivered: Seq) -> bool {
        self.stopping.is_none() && self.published.is_some_and(|published| published < delivered)
    }
}
