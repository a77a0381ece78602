//! What tests of the hub share: a journal in memory, agents that do things in their order, and a
//! client that checks every frame it gets.

use std::collections::{BTreeMap, BTreeSet};
use std::task::Poll;

use futures_util::FutureExt;
use jiff::Timestamp;

use super::super::*;
use crate::event::Ended;
use crate::id::RequestId;
use crate::message::Usage;
use crate::sse::SseParser;
use crate::world::BoxFuture;

pub fn agent(name: &str) -> AgentId {
    AgentId::parse(name).unwrap()
}

pub fn stream_of(name: &str) -> Scope {
    Scope::Agent(agent(name))
}

struct StoppedClock;

impl Clock for StoppedClock {
    fn now(&self) -> Timestamp {
        "2026-01-01T00:00:00Z".parse().unwrap()
    }
}

/// Keeps events in memory. A page is made when it is asked for and comes at the second poll, so
/// that much can happen in between.
#[derive(Default)]
pub struct MemoryJournal {
    pub kept: Mutex<Vec<Committed>>,
    /// Events up to this one are kept no more.
    pub forgotten: Mutex<Seq>,
    pub page_events_max: usize,
    pub broken: bool,
}

impl Journal for MemoryJournal {
    fn page<'a>(&'a self, of: &'a Scope, after: Seq) -> BoxFuture<'a, Result<Page, JournalError>> {
        let kept = self.kept.lock().unwrap();
        let forgotten = *self.forgotten.lock().unwrap();
        let asked = kept.iter().filter(|event| event.seq > after && is_of(of, &event.event));
        let lost: Vec<Seq> =
            asked.clone().map(|event| event.seq).filter(|seq| *seq <= forgotten).collect();
        let gap = lost.first().copied().zip(lost.last().copied());
        let left = asked.filter(|event| event.seq > forgotten);
        let more = left.clone().count() > self.page_events_max;
        let events = left.take(self.page_events_max).map(|event| KeptEvent {
            seq: event.seq,
            name: event.event.what.name().to_owned(),
            json: Arc::clone(&event.json),
        });
        let page = Page { events: events.collect(), gap, more };
        let mut page = Some(if self.broken {
            Err(JournalError { source: "no disk".into() })
        } else {
            Ok(page)
        });
        let mut asked_once = false;
        Box::pin(std::future::poll_fn(move |cx| {
            if std::mem::replace(&mut asked_once, true) {
                return Poll::Ready(page.take().unwrap());
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        }))
    }

    fn last_seq(&self) -> Seq {
        self.kept.lock().unwrap().last().map_or(0, |event| event.seq)
    }
}

fn is_of(scope: &Scope, event: &Event) -> bool {
    match scope {
        Scope::Agent(agent) => event.agent_id.as_ref() == Some(agent),
        Scope::Everything => true,
    }
}

/// A hub with its journal, and agents that follow the rules: an agent goes on only once what it
/// committed was published.
pub struct Stage {
    pub hub: Arc<Hub>,
    pub journal: Arc<MemoryJournal>,
    unpublished: Vec<Committed>,
    /// The turn of each agent and its text.
    pub turns: BTreeMap<AgentId, (RequestId, String)>,
    chars: BTreeMap<AgentId, usize>,
    requests: u32,
}

impl Stage {
    pub fn new() -> Self {
        Self::with(MemoryJournal { page_events_max: 3, ..MemoryJournal::default() })
    }

    pub fn with(journal: MemoryJournal) -> Self {
        Self {
            hub: Hub::new(Arc::new(StoppedClock)),
            journal: Arc::new(journal),
            unpublished: Vec::new(),
            turns: BTreeMap::new(),
            chars: BTreeMap::new(),
            requests: 0,
        }
    }

    pub fn subscribe(&self, scope: Scope, start: Start) -> Result<Subscription, SubscribeError> {
        self.hub.subscribe(Arc::clone(&self.journal) as Arc<dyn Journal>, scope, start)
    }

    pub fn client(&self, scope: Scope, start: Start) -> Client {
        Client::new(self, scope, start)
    }

    /// Commits an event, which is not yet published.
    pub fn commit(&mut self, agent: &AgentId, request: Option<&RequestId>, what: What) -> Seq {
        let mut event = Event::new(agent, StoppedClock.now(), what);
        event.request_id = request.cloned();
        let mut kept = self.journal.kept.lock().unwrap();
        // Numbers may be left out: a commit that failed has used some.
        let seq = kept.last().map_or(0, |event| event.seq) + 2;
        event.seq = Some(seq);
        let committed = Committed { seq, json: event.json().into(), event };
        kept.push(committed.clone());
        self.unpublished.push(committed);
        seq
    }

    pub fn publish(&mut self) {
        self.hub.publish(&std::mem::take(&mut self.unpublished));
    }

    /// Waits, as an agent does, until what it committed was published.
    fn go_on(&mut self, agent: &AgentId) {
        if self.unpublished.iter().any(|event| event.event.agent_id.as_ref() == Some(agent)) {
            self.publish();
        }
    }

    pub fn start(&mut self, name: &str, content: &str) {
        let agent = agent(name);
        self.go_on(&agent);
        self.requests += 1;
        let request = RequestId::parse(&format!("r{}", self.requests)).unwrap();
        let (content, source) = (content.into(), "test".to_owned());
        let what = What::TurnStarted { content, source, source_agent_id: None };
        self.commit(&agent, Some(&request), what);
        self.chars.insert(agent.clone(), 0);
        self.turns.insert(agent, (request, String::new()));
    }

    pub fn chunk(&mut self, name: &str, text: &str) {
        let agent = agent(name);
        self.go_on(&agent);
        let (request, so_far) = self.turns.get_mut(&agent).expect("a turn runs");
        let chars = self.chars.get_mut(&agent).unwrap();
        let what = What::ContentChunk { text: text.to_owned(), offset: *chars };
        *chars += text.chars().count();
        so_far.push_str(text);
        self.hub.live(&agent, request, StoppedClock.now(), &what);
    }

    /// A chunk whose text is not remembered here.
    pub fn chunk_unchecked(&self, name: &str, text: &str, offset: usize) {
        let agent = agent(name);
        let what = What::ContentChunk { text: text.to_owned(), offset };
        let (request, _) = &self.turns[&agent];
        self.hub.live(&agent, request, StoppedClock.now(), &what);
    }

    pub fn think(&mut self, name: &str) {
        let agent = agent(name);
        self.go_on(&agent);
        let (request, _) = &self.turns[&agent];
        self.hub.live(&agent, request, StoppedClock.now(), &What::ThinkingStarted {});
    }

    /// A durable event in the middle of a turn.
    pub fn tool(&mut self, name: &str, output: &str) {
        let agent = agent(name);
        self.go_on(&agent);
        let (request, _) = self.turns[&agent].clone();
        let what = What::ToolCompleted {
            tool_id: "t".to_owned(),
            name: "echo".to_owned(),
            params: "{}".to_owned(),
            success: true,
            error: None,
            output: output.to_owned(),
        };
        self.commit(&agent, Some(&request), what);
    }

    pub fn end(&mut self, name: &str) {
        let agent = agent(name);
        self.go_on(&agent);
        let (request, content) = self.turns.remove(&agent).expect("a turn runs");
        let what = What::TurnCompleted {
            content: content.into(),
            halted: false,
            finish_reason: "stop".to_owned(),
            usage: Usage::default(),
        };
        self.commit(&agent, Some(&request), what);
    }

    /// A send that never starts is cancelled.
    pub fn cancel_waiting(&mut self, name: &str) {
        let agent = agent(name);
        self.go_on(&agent);
        let request = RequestId::parse("waiting").unwrap();
        let ended = Ended { reason: "cancelled".to_owned(), error: None, partial: String::new() };
        self.commit(&agent, Some(&request), What::TurnCancelled(ended));
    }

    pub fn destroy(&mut self, name: &str) -> Seq {
        let agent = agent(name);
        self.go_on(&agent);
        self.commit(&agent, None, What::AgentDestroyed { parent_agent_id: None })
    }

    /// Gives an agent another id, under which what is kept of it is found from now on.
    pub fn rename(&mut self, from: &str, to: &str) -> Seq {
        let (from, to) = (agent(from), agent(to));
        self.go_on(&from);
        for kept in self.journal.kept.lock().unwrap().iter_mut() {
            if kept.event.agent_id.as_ref() == Some(&from) {
                kept.event.agent_id = Some(to.clone());
            }
        }
        let previous_agent_id = Some(from);
        let changed = serde_json::Map::new();
        let what = What::AgentUpdated { parent_agent_id: None, changed, previous_agent_id };
        self.commit(&to, None, what)
    }

    pub fn forget_until(&self, seq: Seq) {
        *self.journal.forgotten.lock().unwrap() = seq;
    }

    /// The numbers of what is kept of a scope after a place.
    pub fn kept(&self, scope: &Scope, after: Seq) -> Vec<Seq> {
        let kept = self.journal.kept.lock().unwrap();
        let of = kept.iter().filter(|event| event.seq > after && is_of(scope, &event.event));
        of.map(|event| event.seq).collect()
    }

    pub fn buffered(&self) -> Vec<usize> {
        let mut state = self.hub.state();
        let readers = state.readers.values_mut().flat_map(Readers::iter_mut);
        readers.map(|reader| reader.queue_bytes).collect()
    }
}

/// A client that splices the running text by offset and fails on anything out of place.
pub struct Client {
    scope: Scope,
    stream: Subscription,
    /// The last durable event it got.
    pub cursor: Seq,
    /// The numbers of all durable events it got, over all its connections.
    pub seen: Vec<Seq>,
    /// What it knows of running turns on this connection.
    pub texts: BTreeMap<AgentId, (RequestId, String)>,
    /// How many characters each of these texts has.
    chars: BTreeMap<AgentId, usize>,
    ended: BTreeSet<RequestId>,
    pub is_over: bool,
}

impl Client {
    fn new(stage: &Stage, scope: Scope, start: Start) -> Self {
        let cursor = match start {
            Start::Now => 0,
            Start::After(seq) | Start::KeptOnly(seq) => seq,
        };
        Self {
            stream: stage.subscribe(scope.clone(), start).unwrap(),
            scope,
            cursor,
            seen: Vec::new(),
            texts: BTreeMap::new(),
            chars: BTreeMap::new(),
            ended: BTreeSet::new(),
            is_over: false,
        }
    }

    /// Comes back with its cursor.
    pub fn reconnect(&mut self, stage: &Stage) {
        self.stream = stage.subscribe(self.scope.clone(), Start::After(self.cursor)).unwrap();
        self.texts.clear();
    }

    /// What is there at once; `None` where it would have to wait.
    pub fn read(&mut self) -> Option<Event> {
        let frame = self.stream.next().now_or_never()?;
        let Some(frame) = frame else {
            self.is_over = true;
            return None;
        };
        let event = parse(&frame);
        self.check(&event);
        Some(event)
    }

    /// Reads until it has to wait for something to happen; returns the types of the events.
    pub fn read_all(&mut self) -> Vec<&'static str> {
        let mut names = Vec::new();
        // A page of the journal comes at the second poll.
        let mut waits = 0;
        while waits < 2 && !self.is_over {
            match self.read() {
                Some(event) => {
                    waits = 0;
                    names.push(event.what.name());
                }
                None => waits += 1,
            }
        }
        names
    }

    /// Reads and looks at nothing.
    pub fn skip_all(&mut self) {
        while let Some(Some(_)) = self.stream.next().now_or_never() {}
    }

    fn check(&mut self, event: &Event) {
        if let Some(seq) = event.seq {
            assert!(event.what.is_durable() && seq > self.cursor, "{event:?}");
            self.cursor = seq;
            self.seen.push(seq);
        }
        let Some(agent) = event.agent_id.clone() else { return };
        let request = event.request_id.clone();
        match &event.what {
            What::TurnStarted { .. } => {
                self.chars.insert(agent.clone(), 0);
                self.texts.insert(agent, (request.unwrap(), String::new()));
            }
            What::TurnSnapshot { text, offset } => {
                let request = request.unwrap();
                assert!(!self.ended.contains(&request), "no text after the end of its turn");
                assert_eq!(text.chars().count(), *offset);
                if let Some((known, so_far)) = self.texts.get(&agent) {
                    assert_eq!(*known, request, "a turn's snapshot comes after its start");
                    assert!(text.starts_with(so_far.as_str()), "a snapshot takes nothing back");
                }
                self.chars.insert(agent.clone(), *offset);
                self.texts.insert(agent, (request, text.clone()));
            }
            What::ContentChunk { text, offset } => {
                let (known, so_far) = self.texts.get_mut(&agent).expect("a chunk of a known turn");
                let chars = self.chars.get_mut(&agent).unwrap();
                assert_eq!((Some(&*known), *chars), (request.as_ref(), *offset));
                *chars += text.chars().count();
                so_far.push_str(text);
            }
            what if what.is_terminal() => {
                self.ended.insert(request.clone().unwrap());
                let known = self
                    .texts
                    .get(&agent)
                    .is_some_and(|(known, _)| Some(known) == request.as_ref());
                if let (true, What::TurnCompleted { content, .. }) = (known, what) {
                    let (_, so_far) = &self.texts[&agent];
                    assert!(content.starts_with(so_far.as_str()), "the text so far was right");
                }
                if known {
                    self.texts.remove(&agent);
                }
            }
            _ => {}
        }
    }
}

pub fn parse(frame: &[u8]) -> Event {
    let mut records = Vec::new();
    SseParser::new(usize::MAX).push(frame, &mut records).unwrap();
    let [record] = &records[..] else { panic!("{} is one record", String::from_utf8_lossy(frame)) };
    let event: Event = serde_json::from_str(&record.data).unwrap();
    assert_eq!(record.event.as_deref(), Some(event.what.name()));
    let id = event.seq.map_or(String::new(), |seq| format!("id: {seq}\n"));
    assert!(frame.starts_with(format!("{id}event: ").as_bytes()), "durable events have an id");
    event
}
