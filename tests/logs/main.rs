//! The logs of agents on a real disk and on one that fails: who is in which file, what a full or
//! stuck disk costs, what is refused, and that no secret gets into them.

#![expect(
    clippy::disallowed_methods,
    reason = "tests look at the files they are about, on the machine they run on"
)]

mod bounds; // stuck disks
mod files; // what is where
mod healing; // failing disks
mod links; // what lies in the way
mod secrets; // a whole server and its traffic

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use nexus3::event::{Committed, Event, What};
use nexus3::id::{AgentId, RequestId};
use nexus3::message::Message;
use nexus3::world::{World, real};
use nexus3_sim::disk::{Disk, Item, View};
use nexus3_sim::machine::{Inline, VirtualClock};
use tracing::level_filters::LevelFilter;
use tracing::subscriber::DefaultGuard;

/// Where the logs are on a simulated disk.
const LOGS: &str = "/home/logs";

fn id(agent: &str) -> AgentId {
    AgentId::parse(agent).expect("it is well formed")
}

fn said(content: &str) -> Message {
    Message::User { content: content.into(), meta: None }
}

/// An event of `agent` as it comes out of a commit.
fn committed(agent: &str, request: Option<&str>, what: What) -> Committed {
    let mut event = Event::new(&id(agent), Timestamp::UNIX_EPOCH, what);
    event.request_id = request.map(|id| RequestId::parse(id).expect("it is well formed"));
    event.seq = Some(7);
    Committed { seq: 7, json: event.json().into(), event }
}

/// This machine, but for a clock that stands still.
fn real_world() -> World {
    let clock = Arc::new(VirtualClock::new(|| std::time::Duration::ZERO));
    World { clock, ..real::world().expect("a test runs in a runtime") }
}

/// A machine with a simulated disk.
fn simulated() -> (World, Disk) {
    let disk = Disk::new(|| Timestamp::UNIX_EPOCH);
    disk.put(Path::new("/home"), Item::Dir { mode: 0o700 }).expect("there is nothing yet");
    let world = World { fs: Arc::new(disk.clone()), blocking: Arc::new(Inline), ..real_world() };
    (world, disk)
}

/// A log on a simulated disk; empty where there is none.
fn log_on(disk: &Disk, name: &str) -> String {
    match disk.tree(View::Now).remove(&PathBuf::from(LOGS).join(name)) {
        Some(Item::File { content, .. }) => String::from_utf8(content).expect("it is text"),
        Some(Item::Dir { .. } | Item::Link { .. }) | None => String::new(),
    }
}

/// The texts under the headings of a transcript and the notes, without their times.
fn entries(log: &str) -> Vec<String> {
    let entries = log.split("## ").skip(1);
    let untimed = entries.map(|entry| entry.split_once(' ').expect("a time comes first").1);
    untimed.map(|entry| entry.trim_end().replace("\n\n", ": ")).collect()
}

/// What this thread's code says to the server's log at `warn` and above.
struct Said {
    text: Arc<Mutex<Vec<u8>>>,
    _guard: DefaultGuard,
}

#[derive(Clone)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("nobody panicked").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Said {
    fn listen() -> Self {
        let text = Arc::<Mutex<Vec<u8>>>::default();
        let sink = Sink(Arc::clone(&text));
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(LevelFilter::WARN)
            .with_ansi(false)
            .with_writer(move || sink.clone())
            .finish();
        Self { text, _guard: tracing::subscriber::set_default(subscriber) }
    }

    fn lines(&self) -> usize {
        let text = self.text.lock().expect("nobody panicked");
        String::from_utf8_lossy(&text).lines().count()
    }
}
