//! Who hears of what happens: durable events after their commit, live ones as they come.
//! Nobody who publishes waits for a reader. A reader that falls behind gets a snapshot in the place
//! of live events, and durable ones from the journal; see `reader`.

mod journal;
mod pace;
mod reader;
mod readers;
mod subscription;
mod text;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Waker;

use bytes::Bytes;
use jiff::Timestamp;

pub use journal::{Journal, JournalError, KeptEvent, Page, Scope};
use reader::{AllRunning, Durable, Ends, Hands, Heard, Next, Progress, Reader, Running};
use readers::Readers;
pub use subscription::Subscription;
use text::Text;

use crate::event::{Audience, Committed, Event, Seq, What, iso};
use crate::id::{AgentId, RequestId};
use crate::limits::{STREAM_BUFFER_BYTES_MAX, STREAMS_MAX, STREAMS_PER_AGENT_MAX};
use crate::sse;
use crate::world::Clock;

pub struct Hub {
    clock: Arc<dyn Clock>,
    /// Who listens to what, what waits for them, and the text of running turns. Held to look
    /// something up, to append a chunk, to write and queue one frame; nothing is awaited, woken or
    /// read from the journal under it, and no other lock is taken.
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Texts are as long as agents let their turns' texts become.
    running: AllRunning,
    /// By what they are about and by a number of their own; no scope is empty.
    readers: BTreeMap<Scope, Readers>,
    /// How many of each scope an agent opened, which decides nothing.
    powerless: BTreeMap<Scope, usize>,
    /// Readers whose agent got another id, with what they are about now.
    moved: BTreeMap<u64, Scope>,
    open: usize,
    ever_opened: u64,
    published: Option<Seq>,
    stopping: Option<Bytes>,
}

/// Where a stream begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    Now,
    /// With every kept event after this one.
    After(Seq),
    /// With every kept event after this one, and that is all: what it is about is gone.
    KeptOnly(Seq),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubscribeError {
    #[error("{agent} has {STREAMS_PER_AGENT_MAX} event streams already; try again later")]
    TooManyOfAgent { agent: AgentId },
    #[error("there are {STREAMS_MAX} event streams already; try again later")]
    TooMany,
    #[error("the server is shutting down")]
    Stopping,
}

impl std::fmt::Debug for Hub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hub")
    }
}

impl Hub {
    pub fn new(clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self { clock, state: Mutex::default() })
    }

    /// Opens a stream. Its place is given back when it is dropped.
    pub fn subscribe(
        self: &Arc<Self>,
        journal: Arc<dyn Journal>,
        scope: Scope,
        start: Start,
    ) -> Result<Subscription, SubscribeError> {
        let committed = journal.last_seq();
        let (number, after) = self.state().open(&scope, start, committed)?;
        Ok(Subscription::new(Arc::clone(self), journal, (scope, number), start, after))
    }

    /// Whether a stream could be opened now; it may be too late when it is.
    pub fn has_room(&self, scope: &Scope) -> Result<(), SubscribeError> {
        self.state().has_room(scope)
    }

    /// How many hear what happens to this agent.
    pub fn listeners(&self, agent: &AgentId) -> usize {
        let state = self.state();
        let of = |scope: &Scope| state.readers.get(scope).map_or(0, Readers::len);
        of(&Scope::Agent(agent.clone())) + of(&Scope::Everything)
    }

    /// How many hear what happens to this agent and can answer its confirmations, which agents cannot.
    pub fn confirmers(&self, agent: &AgentId) -> usize {
        let listeners = self.listeners(agent);
        let state = self.state();
        let powerless = state.powerless.get(&Scope::Agent(agent.clone()));
        listeners.saturating_sub(powerless.copied().unwrap_or(0))
    }

    fn count_powerless(&self, scope: &Scope) {
        *self.state().powerless.entry(scope.clone()).or_default() += 1;
    }

    fn discount_powerless(&self, scope: &Scope, number: u64) {
        let mut state = self.state();
        let scope = state.moved.get(&number).unwrap_or(scope).clone();
        if let Some(count) = state.powerless.get_mut(&scope) {
            *count -= 1;
            if *count == 0 {
                state.powerless.remove(&scope);
            }
        }
    }

    /// Tells a live event of a running turn. One that comes after the end of its turn, or before its
    /// beginning was published, is dropped.
    pub fn live(&self, agent: &AgentId, request: &RequestId, at: Timestamp, what: &What) {
        let mut woken = Vec::new();
        let outcome = self.state().live(agent, request, at, what, &mut woken);
        wake(woken);
        // Not under the lock: others can go on without this agent.
        assert!(outcome.is_ok(), "a chunk follows the text before it: {agent} {request} {what:?}");
    }

    /// Ends every stream, once it has delivered what waits for it; opens no further ones.
    pub fn stop(&self) {
        let what = What::ServerStopping {};
        let name = what.name();
        let at = iso(self.clock.now());
        let event = Event { what, agent_id: None, at, request_id: None, seq: None };
        let mut state = self.state();
        state.stopping.get_or_insert_with(|| sse::frame(None, name, &event.json()));
        let readers = state.readers.values_mut().flat_map(Readers::iter_mut);
        let woken = readers.filter_map(Reader::take_waker).collect();
        drop(state);
        wake(woken);
    }

    fn next(
        &self,
        (scope, number): (&Scope, u64),
        progress: Progress,
        waker: Option<&Waker>,
        hands: Hands<'_>,
    ) -> Next {
        let mut state = self.state();
        let State { running, readers, moved, published, stopping, .. } = &mut *state;
        if let Some(now) = moved.remove(&number) {
            return Next::Moved(now);
        }
        let heard = Heard { published: *published, stopping: stopping.as_ref() };
        let of_scope = readers.get_mut(scope);
        let next = of_scope.and_then(|readers| {
            readers.with(scope, number, |reader| {
                let next = reader.next(scope, progress, running, heard, hands);
                if let (Next::Wait, Some(waker)) = (&next, waker) {
                    reader.wake_with(waker);
                }
                next
            })
        });
        next.expect("a stream is in the table until it is dropped")
    }

    fn close(&self, scope: &Scope, number: u64) {
        // The reader may hold the last handle of a task: it is dropped without the lock.
        let _reader = self.state().close(scope, number);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing under this lock panics")
    }
}

impl Audience for Hub {
    fn publish(&self, events: &[Committed]) {
        let mut woken = Vec::new();
        let mut state = self.state();
        for event in events {
            state.publish(event, &mut woken);
        }
        drop(state);
        wake(woken);
    }
}

/// Wakes readers, without the lock: whom they wake may want it.
fn wake(woken: Vec<Waker>) {
    woken.into_iter().for_each(Waker::wake);
}

/// A chunk does not begin where the text ends.
#[derive(Debug)]
struct Misplaced;

impl State {
    fn has_room(&self, scope: &Scope) -> Result<(), SubscribeError> {
        if self.stopping.is_some() {
            return Err(SubscribeError::Stopping);
        }
        if let Scope::Agent(agent) = scope {
            let open = self.readers.get(scope).map_or(0, Readers::len);
            if open >= STREAMS_PER_AGENT_MAX {
                return Err(SubscribeError::TooManyOfAgent { agent: agent.clone() });
            }
        }
        if self.open < STREAMS_MAX { Ok(()) } else { Err(SubscribeError::TooMany) }
    }

    /// Takes a place; returns its number and the event after which the stream begins.
    fn open(
        &mut self,
        scope: &Scope,
        start: Start,
        committed: Seq,
    ) -> Result<(u64, Seq), SubscribeError> {
        self.has_room(scope)?;
        let (reader, after) = match start {
            // What was committed and will be published in a moment belongs to what happens now.
            Start::Now => {
                let reader = Reader::live(scope, self.published.unwrap_or(0), &self.running);
                (reader, self.published.unwrap_or(committed))
            }
            Start::After(seq) | Start::KeptOnly(seq) => (Reader::replaying(), seq),
        };
        self.open += 1;
        self.ever_opened += 1;
        self.readers.entry(scope.clone()).or_default().insert(scope, self.ever_opened, reader);
        Ok((self.ever_opened, after))
    }

    fn close(&mut self, scope: &Scope, number: u64) -> Option<Reader> {
        let moved = self.moved.remove(&number);
        let scope = moved.as_ref().unwrap_or(scope);
        let readers = self.readers.get_mut(scope)?;
        let reader = readers.remove(number);
        if readers.is_empty() {
            self.readers.remove(scope);
        }
        self.open -= 1;
        reader
    }

    /// Nothing is written, and nothing allocated but for the text, where nobody listens.
    fn live(
        &mut self,
        agent: &AgentId,
        request: &RequestId,
        at: Timestamp,
        what: &What,
        woken: &mut Vec<Waker>,
    ) -> Result<(), Misplaced> {
        let running = self.running.get_mut(agent).filter(|turn| turn.request == *request);
        let Some(turn) = running else {
            return Ok(());
        };
        if let What::ContentChunk { text, offset } = what {
            if *offset != turn.chars {
                return Err(Misplaced);
            }
            turn.text.push(text);
            turn.chars += text.chars().count();
        }
        if self.readers.is_empty() || self.stopping.is_some() {
            return Ok(());
        }
        let mut frame = None;
        let write = || {
            let event = Event::new(agent, at, what.clone()).of(request);
            sse::frame(None, what.name(), &event.json())
        };
        for scope in [Scope::Agent(agent.clone()), Scope::Everything] {
            if let Some(readers) = self.readers.get_mut(&scope) {
                let frame = || frame.get_or_insert_with(write).clone();
                readers.push_live(&scope, agent, frame, woken);
            }
        }
        Ok(())
    }

    fn publish(&mut self, committed: &Committed, woken: &mut Vec<Waker>) {
        self.published = self.published.max(Some(committed.seq));
        let Some(agent) = &committed.event.agent_id else {
            return;
        };
        if let What::AgentUpdated { previous_agent_id: Some(previous), .. } = &committed.event.what
        {
            self.move_readers(previous, agent);
        }
        let ends = self.follow(agent, &committed.event);
        if self.readers.is_empty() || self.stopping.is_some() {
            return;
        }
        let scopes = [Scope::Agent(agent.clone()), Scope::Everything];
        if !scopes.iter().any(|scope| self.readers.contains_key(scope)) {
            return;
        }
        let frame = (committed.json.len() < STREAM_BUFFER_BYTES_MAX)
            .then(|| sse::frame(Some(committed.seq), committed.event.what.name(), &committed.json));
        let event = Durable { seq: committed.seq, agent, frame, ends };
        for scope in &scopes {
            if let Some(readers) = self.readers.get_mut(scope) {
                readers.push_durable(scope, &event, woken);
            }
        }
    }

    /// An agent got another id, between turns: who listens to it goes on under the new one.
    fn move_readers(&mut self, from: &AgentId, to: &AgentId) {
        let [from, to] = [from, to].map(|agent| Scope::Agent(agent.clone()));
        let Some(readers) = self.readers.remove(&from) else { return };
        self.moved.extend(readers.numbers().map(|number| (number, to.clone())));
        self.readers.entry(to.clone()).or_default().join(readers);
        if let Some(count) = self.powerless.remove(&from) {
            *self.powerless.entry(to).or_default() += count;
        }
    }

    /// Follows the running turn of an agent.
    fn follow(&mut self, agent: &AgentId, event: &Event) -> Ends {
        match (&event.what, &event.request_id) {
            (What::TurnStarted { .. }, Some(request)) => {
                let turn = Running { request: request.clone(), text: Text::default(), chars: 0 };
                self.running.insert(agent.clone(), turn);
                Ends::Nothing
            }
            (What::AgentDestroyed { .. }, _) => {
                self.running.remove(agent);
                Ends::Agent
            }
            // A send that never started has its last event while another turn runs.
            (what, Some(request)) if what.is_terminal() => {
                let ended = self.running.get(agent).is_some_and(|turn| turn.request == *request);
                if !ended {
                    return Ends::Nothing;
                }
                self.running.remove(agent);
                Ends::Turn
            }
            _ => Ends::Nothing,
        }
    }
}

#[cfg(test)]
#[path = "hub_tests.rs"]
mod tests;
