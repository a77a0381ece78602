//! A live session as a scenario: `serve --record FILE`.
//!
//! It is recorded at the seams and at the door, never inside a turn. What happens becomes notes, in the
//! order in which it happens: `door` is told of calls, streams and events, `ear` of what models are
//! shown and answer, `servers` of what is said with MCP servers; `programs` and `files` are the seams of a
//! world with somebody who looks on. Telling a note never waits: it goes into a bounded queue, and where
//! that is full the recording ends, since one with a gap could not be replayed.
//!
//! One task takes the notes. `story` (pure) makes of them what a scenario consists of: which file was
//! there before and which one a program wrote, which call was made while another was open, who confirmed
//! what. `hidden` takes secrets out and puts the scenario's places in the stead of this machine's;
//! `form` and `text` write it down. `writer` replaces the file now and then, atomically, so that a kill
//! leaves the last state of it, which is always a whole scenario.
//!
//! A replay keeps the order of what happened rather than its times: a step waits for the step before it, for
//! the end of the call and for the event after which it was made, and only then for as long as it came after
//! that; the answer of a model waits for the end and the event that it came after, too.

mod door; // calls and streams
mod ear; // models
mod files; // a disk with somebody who looks on
mod form; // the parts of a scenario
mod hidden; // secrets and places
mod keys; // what looks like a secret
mod note; // what is told
mod programs; // programs with somebody who looks on
mod servers; // MCP servers
mod story; // notes to a scenario
pub mod text; // a scenario as TOML
mod writer; // the task that writes

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use arc_swap::ArcSwap;
use jiff::Timestamp;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

pub use door::{CallSeen, StreamSeen};
pub use note::{Earlier, LeftOut, RefusedRequest, Shown};

use self::hidden::Hidden;
use self::note::{Note, Number, What};
use self::story::Story;
use self::writer::Writer;
use crate::config::{Config, ProviderConfig, directories};
use crate::id::AgentId;
use crate::limits::{
    RECORD_CLOSE_MAX, RECORD_EARLIER_BYTES_MAX, RECORD_FILES_BYTES_MAX, RECORD_QUEUE_BYTES_MAX,
    RECORD_QUEUE_NOTES_MAX, RECORD_ROOTS_MAX,
};
use crate::provider::{Ear, Models, Secrets};
use crate::world::{Access, World};

#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error("{} is there already: a recording replaces nothing", path.display())]
    Exists { path: PathBuf },
    #[error("cannot record to {}", path.display())]
    Write {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

/// What is known of a server before its first request.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Its flags that mean something in a scenario.
    pub flags: Vec<&'static str>,
    pub config: Config,
    /// A provider that is used though nobody configured it.
    pub found: Option<(String, ProviderConfig)>,
    /// Our own directory.
    pub home: PathBuf,
    /// The server's working directory, without links.
    pub cwd: PathBuf,
}

impl Setting {
    /// The directories are our own and the working one.
    pub fn of(
        flags: Vec<&'static str>,
        config: &Config,
        models: &Models,
        (home, cwd): (&Path, &Path),
    ) -> Self {
        let (home, cwd) = (home.to_owned(), cwd.to_owned());
        Self { flags, config: config.clone(), found: models.found().cloned(), home, cwd }
    }
}

/// Takes notes. Cloning shares it.
#[derive(Clone)]
pub struct Recorder {
    shared: Arc<Shared>,
}

struct Shared {
    path: PathBuf,
    /// The machine as it is, without those who look on.
    world: World,
    began: Instant,
    began_at: Timestamp,
    notes: mpsc::Sender<Waiting>,
    room: Arc<Semaphore>,
    /// Where agents work. Elsewhere only what is read matters: what is listed there is looked at by the
    /// server, which keeps programs within bounds.
    roots: ArcSwap<Vec<PathBuf>>,
    /// Bytes of files that may still be kept.
    files_room: AtomicUsize,
    /// And of the conversations of agents that were there before.
    earlier_room: AtomicUsize,
    numbers: AtomicU64,
    /// Something found no room: what follows would not fit to what was before.
    is_cut: AtomicBool,
    close: CancellationToken,
    closed: CancellationToken,
}

/// A note and the room it takes until it is written.
#[derive(Debug)]
struct Waiting {
    note: Note,
    room: OwnedSemaphorePermit,
}

/// A recorder that has nowhere to write to yet.
#[derive(Debug)]
pub struct Prepared {
    pub recorder: Recorder,
    waiting: mpsc::Receiver<Waiting>,
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("path", &self.shared.path).finish_non_exhaustive()
    }
}

impl Prepared {
    /// Makes the file, refusing to replace one, and begins to write.
    pub fn begin(self, setting: Setting, secrets: &Secrets) -> Result<(), RecordError> {
        let Self { recorder, waiting } = self;
        let shared = &recorder.shared;
        make(shared)?;
        let hidden = Hidden::new(&shared.world, secrets, &setting);
        let story = Story::new(hidden, setting, shared.began_at);
        let writer = Writer::new(Arc::clone(shared), waiting, story);
        // However the task ends, nobody waits for it in vain.
        let told = shared.closed.clone().drop_guard();
        tokio::spawn(async move {
            let _told = told;
            writer.run().await;
        });
        Ok(())
    }
}

/// Takes the name. A directory that is not there, or not ours, is told of at the start.
fn make(shared: &Shared) -> Result<(), RecordError> {
    let path = shared.path.clone();
    let made = place(&path).and_then(|(dir, name)| {
        let dir = shared.world.fs.dir(dir)?;
        // Nobody else has this name; one that was killed may have left it.
        let _ = dir.remove_file(Path::new(&temporary(name)));
        dir.open(name, Access::CreateNew { mode: 0o600 }).map(drop)
    });
    made.map_err(|source| match source.kind() {
        io::ErrorKind::AlreadyExists => RecordError::Exists { path },
        _ => RecordError::Write { path, source },
    })
}

/// A file's directory and its name there.
fn place(path: &Path) -> io::Result<(&Path, &Path)> {
    match (path.parent(), path.file_name()) {
        (Some(dir), Some(name)) => Ok((dir, Path::new(name))),
        _ => Err(io::ErrorKind::IsADirectory.into()),
    }
}

/// What a recording is called until it takes the place of the one before.
fn temporary(name: &Path) -> String {
    format!(".{}.part", name.display())
}

impl Recorder {
    /// Takes notes for the file at `path`, which is absolute, from now on.
    pub fn prepare(world: &World, path: PathBuf) -> Prepared {
        let (notes, waiting) = mpsc::channel(RECORD_QUEUE_NOTES_MAX);
        let shared = Shared {
            path,
            world: world.clone(),
            began: Instant::now(),
            began_at: world.clock.now(),
            notes,
            room: Arc::new(Semaphore::new(RECORD_QUEUE_BYTES_MAX)),
            roots: ArcSwap::default(),
            files_room: AtomicUsize::new(RECORD_FILES_BYTES_MAX),
            earlier_room: AtomicUsize::new(RECORD_EARLIER_BYTES_MAX),
            numbers: AtomicU64::new(0),
            is_cut: AtomicBool::new(false),
            close: CancellationToken::new(),
            closed: CancellationToken::new(),
        };
        Prepared { recorder: Self { shared: Arc::new(shared) }, waiting }
    }

    /// The same world, with this recorder looking on. What lies in `home` and `logs` is the server's
    /// own.
    pub fn watch(&self, world: World, home: &Path, logs: &Path) -> World {
        let cwd = world.environment.current_dir().and_then(|cwd| world.fs.canonical(&cwd));
        for dir in cwd.iter().flat_map(|cwd| directories(world.fs.as_ref(), cwd)) {
            self.works_in(dir);
        }
        World {
            fs: files::watched(self, Arc::clone(&world.fs), home, logs),
            programs: programs::watched(self, &world),
            ..world
        }
    }

    /// Who hears models.
    pub fn ear(&self) -> Arc<dyn Ear> {
        Arc::new(self.clone())
    }

    /// What the last server left open is closed: what happens after this event is this one's.
    pub fn begins(&self, newest: u64) {
        self.note(What::Begins(newest));
    }

    /// What an agent of an earlier server would come back as; it is in the recording once it does.
    pub fn earlier(&self, agent: &AgentId, earlier: Option<Earlier>) {
        if let Some(earlier) = &earlier {
            self.works_in(&earlier.session.working_directory);
        }
        let earlier = earlier.and_then(|earlier| {
            let bytes = earlier.bytes()?;
            takes(&self.shared.earlier_room, bytes).then(|| (Box::new(earlier), bytes))
        });
        self.note(What::Earlier(agent.clone(), earlier));
    }

    /// The server is asked to stop.
    pub fn stops(&self) {
        self.note(What::Stops);
    }

    /// Writes what waits, within bounds.
    pub async fn close(&self) {
        self.shared.close.cancel();
        if timeout(RECORD_CLOSE_MAX, self.closed()).await.is_err() {
            tracing::warn!("the recording lacks its end: the disk takes too long");
        }
    }

    /// Waits until the last of it is written, however long the disk takes.
    pub async fn closed(&self) {
        self.shared.closed.cancelled().await;
    }

    /// Some agent works in a directory, given by its path in that of the server.
    fn works_in(&self, path: &Path) {
        let world = &self.shared.world;
        let path = world.environment.current_dir().map(|cwd| cwd.join(path));
        let Ok(path) = path.and_then(|path| world.fs.canonical(&path)) else { return };
        self.shared.roots.rcu(|roots| {
            let new =
                (!roots.contains(&path) && roots.len() < RECORD_ROOTS_MAX).then(|| path.clone());
            roots.iter().cloned().chain(new).collect::<Vec<_>>()
        });
    }

    /// Whether notes are still taken.
    pub fn is_on(&self) -> bool {
        !self.shared.is_cut.load(Ordering::Relaxed)
    }

    /// Waits until nothing is on its way to the story any more.
    pub async fn taken(&self) {
        let all = u32::try_from(RECORD_QUEUE_BYTES_MAX).expect("it is a few megabytes");
        // Whoever holds all of the room holds it alone.
        let _ = self.shared.room.acquire_many(all).await;
    }

    fn number(&self) -> Number {
        self.shared.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Takes a note. It neither waits nor fails.
    fn note(&self, what: What) {
        if !self.is_on() {
            return;
        }
        let note = Note { at: self.shared.began.elapsed(), what };
        let bytes = u32::try_from(note.bytes()).unwrap_or(u32::MAX);
        let room = Arc::clone(&self.shared.room).try_acquire_many_owned(bytes);
        let taken = room.is_ok_and(|room| {
            use mpsc::error::TrySendError;
            match self.shared.notes.try_send(Waiting { note, room }) {
                // Whoever has closed needs nothing more.
                Ok(()) | Err(TrySendError::Closed(_)) => true,
                Err(TrySendError::Full(_)) => false,
            }
        });
        if !taken && !self.shared.is_cut.swap(true, Ordering::Relaxed) {
            tracing::warn!("the recording ends here: the disk is slower than what happens");
        }
    }

    /// Takes room for the content of a file, if there is some left.
    fn keeps(&self, bytes: usize) -> bool {
        takes(&self.shared.files_room, bytes)
    }
}

/// Takes so many bytes from a room, or none where there are not so many left.
fn takes(room: &AtomicUsize, bytes: usize) -> bool {
    let left = |left: usize| left.checked_sub(bytes);
    room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left).is_ok()
}
