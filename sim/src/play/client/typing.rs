//! A person of a scenario at a terminal: the real terminal, core, drive and client alike, with keys that
//! steps type and a screen that they look at. What is finished on the screen stands in the transcript.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nexus3::cli::office;
use nexus3::client::NexusClient;
use nexus3::id::AgentId;
use nexus3::terminal::core::{Attach, Core, Feed, Input};
use nexus3::terminal::drive::{Face, Terminal};
use nexus3::terminal::line::Line;
use nexus3::terminal::screen::Foot;
use nexus3::world::{BoxFuture, Chance, Net, Use, World};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::tapped::Tapped;
use super::{Client, Done, Elapsed, Job};
use crate::disk::{Disk, Item};
use crate::machine::{Acting, HOME, Machine, PROJECT, Raised, VirtualClock};
use crate::play::transcript::Transcript;
use crate::scenario::Typing;

/// How long somebody looks for what does not come.
const LOOK_MAX: Duration = Duration::from_mins(5);
const KEYS_MAX: usize = 1024;
const COLUMNS: u16 = 80;
const ROWS: u16 = 24;

/// A terminal that is open.
#[derive(Clone, Debug)]
pub struct Booth {
    keys: mpsc::Sender<Input>,
    screen: Arc<Screen>,
}

/// What somebody sees.
#[derive(Debug, Default)]
struct Screen {
    /// Held for one look at a time; nothing is awaited under it.
    shown: Mutex<Shown>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Shown {
    /// Since the last step looked.
    printed: String,
    foot: String,
}

impl Screen {
    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Who sits there, and where what is seen is written down.
#[derive(Clone)]
pub struct Seat {
    pub name: String,
    pub now: Elapsed,
    pub transcript: Transcript,
}

impl Client {
    /// Opens a terminal, where one is asked for.
    pub(super) fn sit_down(
        &self,
        world: &World,
        job: &Job,
        typing: &Typing,
        booth: &mut Option<Booth>,
        streams: &mut JoinSet<()>,
    ) {
        if let Some(agent) = typing.agent.as_deref().and_then(|id| AgentId::parse(id).ok()) {
            let (inner, observed) = (Arc::clone(&self.net), self.observed.clone());
            let net = Arc::new(Tapped { inner, observed });
            let client = NexusClient::new(net, job.server, job.token.clone());
            let (opened, sits) = Booth::open(world, self.seat(), client, agent);
            streams.spawn(sits);
            *booth = Some(opened);
        }
    }

    pub(super) fn seat(&self) -> Seat {
        let (name, now) = (self.name.clone(), Arc::clone(&self.now));
        Seat { name, now, transcript: self.transcript.clone() }
    }
}

impl Booth {
    /// Opens a terminal on an agent; it runs until the work that is returned is dropped.
    pub fn open(
        world: &World,
        seat: Seat,
        client: NexusClient,
        agent: AgentId,
    ) -> (Self, impl Future<Output = ()> + Send + use<>) {
        let (keys, typed) = mpsc::channel(KEYS_MAX);
        let screen = Arc::new(Screen::default());
        let booth = Self { keys, screen: Arc::clone(&screen) };
        let drawing = Arc::new(Counted { name: seat.name.clone(), drawn: AtomicU64::new(0) });
        let client = client.named(nexus3::terminal::CLIENT).drawing_from(drawing);
        let office = office(world, HOME.into(), client.clone(), || COLUMNS);
        let sits = async move {
            let mut face = Looking { seat, typed, screen };
            let core = Core::new(COLUMNS, ROWS, Feed::Full);
            let terminal = Terminal::new(core, client, office, &mut face);
            let left = terminal.run(agent, Attach::IfThere).await;
            left.expect("this screen takes whatever is shown");
            face.seat.note("leaves its terminal");
        };
        (booth, sits)
    }

    /// Types, and looks until the screen is as it should be.
    pub async fn play(self, seat: Seat, typing: Typing) -> Done {
        if let Some(text) = &typing.types {
            seat.note(&format!("types {text:?}"));
        }
        if let Some(key) = &typing.key {
            seat.note(&format!("presses {key}"));
        }
        for key in typing.keys() {
            // A terminal that was left takes no keys.
            if self.keys.send(Input::Key(key)).await.is_err() {
                return Done::Unanswered;
            }
        }
        let Some(wanted) = &typing.sees else {
            return Done::Streaming;
        };
        if timeout(LOOK_MAX, self.sees(wanted)).await.is_ok() {
            return Done::Streaming;
        }
        let foot = self.screen.shown().foot.clone();
        seat.note(&format!("✗ does not see {wanted:?}, but {foot:?}"));
        Done::Unanswered
    }

    async fn sees(&self, wanted: &str) {
        loop {
            let changed = self.screen.changed.notified();
            {
                let mut shown = self.screen.shown();
                if shown.printed.contains(wanted) || shown.foot.contains(wanted) {
                    // What was seen is not seen again by the next step.
                    shown.printed.clear();
                    return;
                }
            }
            changed.await;
        }
    }
}

impl Seat {
    fn note(&self, what: &str) {
        self.transcript.note((self.now)(), &self.name, what);
    }
}

struct Looking {
    seat: Seat,
    typed: mpsc::Receiver<Input>,
    screen: Arc<Screen>,
}

impl Face for Looking {
    fn next(&mut self) -> BoxFuture<'_, Option<Input>> {
        Box::pin(self.typed.recv())
    }

    fn show(&mut self, finished: &[Line], foot: &Foot) -> io::Result<()> {
        let mut shown = self.screen.shown();
        for line in finished.iter().map(Line::text).filter(|line| !line.is_empty()) {
            self.seat.note(&format!("│ {line}"));
            shown.printed.push_str(&line);
            shown.printed.push('\n');
        }
        shown.foot = foot.text();
        drop(shown);
        self.screen.changed.notify_waiters();
        Ok(())
    }

    fn clear(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A machine of the person's own, where what was typed is kept.
pub fn machine(net: Arc<dyn Net>, now: Elapsed) -> World {
    let clock = VirtualClock::new(move || now());
    let disk = {
        let clock = clock.clone();
        Disk::new(move || nexus3::world::Clock::now(&clock))
    };
    for (path, mode) in [(PROJECT, 0o755), (HOME, 0o700)] {
        disk.put(path.as_ref(), Item::Dir { mode }).expect("an empty disk takes a directory");
    }
    let programs = Acting::new(Arc::new(disk.clone()), |_, _| None);
    let machine = Machine {
        net,
        clock,
        disk,
        programs: Arc::new(programs),
        signals: Arc::new(Raised::default()),
        vars: BTreeMap::new(),
    };
    machine.world(0)
}

/// Names for messages that are the same with every seed: the person's, and a number.
struct Counted {
    name: String,
    drawn: AtomicU64,
}

impl Chance for Counted {
    fn fill(&self, _: Use, bytes: &mut [u8]) {
        let number = self.drawn.fetch_add(1, Ordering::Relaxed) + 1;
        let named = self.name.bytes().chain(std::iter::repeat(0));
        bytes.iter_mut().zip(named).for_each(|(byte, name)| *byte = name);
        if let Some(last) = bytes.last_mut() {
            *last = u8::try_from(number % 256).unwrap_or(0);
        }
    }
}
