//! A simulated machine that outlives its servers, and short words for what is written in tests.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nexus3::code::{Code, ErrorObject};
use nexus3::event::{Audience, Committed, Event, Seq, What};
use nexus3::id::{AgentId, RequestId};
use nexus3::message::{Message, ToolCall, ToolMeta};
use nexus3::store::{
    AgentNumber, AgentRecord, Kept, Opened, Options, Recipe, Store, StoreError, Sync, Write,
};
use nexus3::world::World;
use nexus3_sim::disk::{CrashMode, Disk, Fault, Item, Switch, View};
use nexus3_sim::machine::{Acting, Machine, Raised, SplitMix, VirtualClock};
use nexus3_sim::pipes::Pipes;

pub const DATABASE: &str = "/home/nexus3.db";

/// SQLite's generator belongs to the whole process, so tests that use it take turns.
static TURN: Mutex<()> = Mutex::new(());

/// A machine with a disk and a clock.
pub struct Host {
    pub disk: Disk,
    pub clock: VirtualClock,
    counted: Arc<AtomicUsize>,
    _alone: Option<MutexGuard<'static, ()>>,
}

impl Host {
    pub fn new() -> Self {
        let alone = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        Self { _alone: Some(alone), ..Self::another() }
    }

    /// One more in the same test.
    pub fn another() -> Self {
        let clock = VirtualClock::new(|| Duration::ZERO);
        let disk = {
            let clock = clock.clone();
            Disk::new(move || nexus3::world::Clock::now(&clock))
        };
        disk.put(Path::new("/home"), Item::Dir { mode: 0o700 }).expect("there is nothing yet");
        Self { disk, clock, counted: Arc::default(), _alone: None }
    }

    pub fn world(&self) -> World {
        let machine = Machine {
            net: Arc::new(Pipes::new()),
            clock: self.clock.clone(),
            disk: self.disk.clone(),
            programs: Arc::new(Acting::new(Arc::new(self.disk.clone()), |_, _| None)),
            signals: Arc::new(Raised::default()),
            vars: [].into(),
        };
        machine.world(1)
    }

    /// Runs one process on the machine to its end, or to wherever it is when `life` returns.
    pub fn live<T>(&self, life: impl AsyncFnOnce(World) -> T) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime is made");
        runtime.block_on(life(self.world()))
    }

    /// The power is cut; what was dropped before that may have been written, not what is after.
    pub fn crash(&self, mode: CrashMode, seed: u64) {
        self.disk.power_off();
        let mut draws = SplitMix::named(seed, "crash");
        self.disk.crash(&mut || draws.draw(), mode);
        self.disk.power_on();
    }

    /// Has a fault strike once, from the `point`-th operation from now on.
    pub fn strike_at(&self, fault: Fault, point: usize) {
        let (disk, counted) = (self.disk.clone(), Arc::clone(&self.counted));
        counted.store(0, Ordering::Relaxed);
        self.disk.on_operation(move |_| {
            if counted.fetch_add(1, Ordering::Relaxed) + 1 == point {
                disk.set_fault(fault, Switch::Once);
            }
        });
    }

    /// Ends that; returns how many operations there were.
    pub fn strike_no_more(&self, fault: Fault) -> usize {
        self.disk.on_operation(|_| ());
        self.disk.set_fault(fault, Switch::Off);
        self.counted.load(Ordering::Relaxed)
    }

    /// Opens, lets `life` use the store, and closes.
    pub fn serve<T>(&self, life: impl AsyncFnOnce(Opened, Arc<Heard>) -> T) -> T {
        self.live(async |world| {
            let heard = Heard::new();
            let opened = open(&world, options(), &heard).await.expect("it opens");
            let store = opened.store.clone();
            let value = life(opened, heard).await;
            store.close().await;
            value
        })
    }

    pub fn file(&self, path: &str) -> Option<Vec<u8>> {
        match self.disk.tree(View::Now).remove(Path::new(path)) {
            Some(Item::File { content, .. }) => Some(content),
            Some(Item::Dir { .. } | Item::Link { .. }) | None => None,
        }
    }
}

pub async fn open(
    world: &World,
    options: Options,
    heard: &Arc<Heard>,
) -> Result<Opened, StoreError> {
    Store::open(world, options, Arc::clone(heard) as Arc<dyn Audience>).await
}

pub fn options() -> Options {
    Options {
        path: PathBuf::from(DATABASE),
        sync: Sync::Full,
        kept: Kept { per_agent: 10_000, days: 30 },
        interrupted: interrupted(),
    }
}

pub fn interrupted() -> ErrorObject {
    ErrorObject::new(Code::Outside, "the server stopped")
        .with(serde_json::json!({"kind": "interrupted"}))
}

/// What was published, in its order.
#[derive(Debug, Default)]
pub struct Heard {
    /// Held to add or to copy.
    events: Mutex<Vec<Committed>>,
}

impl Heard {
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    pub fn events(&self) -> Vec<Committed> {
        self.events.lock().expect("nothing panics under it").clone()
    }

    pub fn seqs(&self) -> Vec<Seq> {
        self.events().iter().map(|committed| committed.seq).collect()
    }
}

impl Audience for Heard {
    fn publish(&self, events: &[Committed]) {
        self.events.lock().expect("nothing panics under it").extend_from_slice(events);
    }
}

pub fn agent_id(id: &str) -> AgentId {
    AgentId::parse(id).expect("it is an agent's id")
}

pub fn request_id(id: &str) -> RequestId {
    RequestId::parse(id).expect("it is a request's id")
}

pub fn record(id: &str, parent: Option<&str>) -> AgentRecord {
    AgentRecord {
        id: agent_id(id),
        parent: parent.map(agent_id),
        depth: parent.map_or(0, |_| 1),
        created_at: "2025-01-01T00:00:00.000Z".into(),
        recipe: Recipe {
            preset: "sandboxed".into(),
            cwd: "/project".into(),
            root: None,
            write_paths: vec!["/project/out".into()],
            disabled_tools: vec!["bash".into()],
            enabled_tools: vec!["echo".into()],
            session_allowances: None,
            ceiling: None,
            model: "m".into(),
            system_prompt: "be good".into(),
            system_prompt_path: None,
        },
    }
}

pub fn created(number: AgentNumber, id: &str) -> Write {
    Write::AgentCreated { number, record: Box::new(record(id, None)) }
}

pub fn child(number: AgentNumber, id: &str, parent: &str) -> Write {
    Write::AgentCreated { number, record: Box::new(record(id, Some(parent))) }
}

pub fn event(agent: &str, position: usize) -> Write {
    event_at(agent, position, "2025-01-01T00:00:00Z")
}

pub fn event_at(agent: &str, position: usize, at: &str) -> Write {
    let at = at.parse().expect("it is a time");
    Write::Event(Event::new(&agent_id(agent), at, What::TurnQueued { position }))
}

pub fn user(text: &str) -> Arc<Message> {
    Arc::new(Message::User { content: text.into(), meta: None })
}

pub fn calls(ids: &[&str]) -> Arc<Message> {
    let call = |id: &&str| ToolCall {
        id: (*id).to_owned(),
        name: "echo".into(),
        arguments: serde_json::json!({}),
    };
    let tool_calls = ids.iter().map(call).collect();
    Arc::new(Message::Assistant { content: String::new(), tool_calls, meta: None })
}

pub fn result(id: &str, content: &str) -> Arc<Message> {
    let (content, tool_call_id) = (content.to_owned(), id.to_owned());
    Arc::new(Message::Tool { content, tool_call_id, meta: None })
}

pub fn failed_result(id: &str, content: &str) -> Arc<Message> {
    let (content, tool_call_id) = (content.to_owned(), id.to_owned());
    Arc::new(Message::Tool { content, tool_call_id, meta: Some(ToolMeta { error: true }) })
}

pub fn put(agent: AgentNumber, index: u64, message: Arc<Message>) -> Write {
    Write::Message { agent, index, message }
}

pub fn queued(agent: AgentNumber, id: &str) -> Write {
    Write::RequestQueued { agent, id: request_id(id), content: format!("content of {id}").into() }
}

pub fn started(agent: AgentNumber, id: &str) -> Write {
    Write::RequestStarted { agent, id: request_id(id) }
}

pub fn completed(agent: AgentNumber, id: &str) -> Write {
    Write::RequestEnded {
        agent,
        id: request_id(id),
        status: "completed",
        outcome: format!("{{\"completed\":\"{id}\"}}"),
    }
}

pub fn tool_started(agent: AgentNumber, request: &str, tool_id: &str) -> Write {
    let (request, tool_id) = (request_id(request), tool_id.to_owned());
    Write::ToolStarted { agent, request, tool_id, name: "echo".into() }
}
