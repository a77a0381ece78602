//! A disk in memory on which what is written and what would survive a power cut are two things.
//! It answers as the real one does (`conform` holds both to the same suites), forgets what was not
//! synced when its owner cuts the power, and misbehaves when told to. It never draws a random number
//! or reads a clock on its own: the owner gives both, so the same calls leave the same disk.
//!
//! A crash of the machine, in this order: [`Disk::power_off`], so that no destructor can sync what
//! the dead process had not; drop the server; [`Disk::crash`]; [`Disk::power_on`]; start it again.
//! Where only the process dies, [`Disk::kill`] takes the place of `crash`.
//!
//! What is never synced is kept as a list of changes until a crash, however long that takes.

mod operation; // what is done to a disk
mod handle; // open files and directories
mod names; // what a path leads to
mod state; // all that is on a disk
mod content; // the bytes of one file
mod journal; // changes of names that are not durable
mod crash; // what a power cut does
mod fault; // what goes wrong with the power on
mod tree; // the whole disk at once, past all faults
mod database; // SQLite's files, without its types
mod levels; // SQLite's locks
#[expect(unsafe_code, reason = "SQLite calls its file system through C functions and pointers")]
mod vfs; // SQLite's door to all of the above

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use nexus3::world::{Access, Dir, File, Fs};

pub use crash::{Chance, CrashMode};
pub use fault::{Fault, Gone, Switch};
pub use operation::{Operation, OperationKind};
pub use tree::{Item, View};
pub use vfs::Databases;

use content::Content;
use fault::Errno;
use handle::{Folder, Handle, OpenFile};
use names::READ;
use state::{Body, State};

/// A simulated disk. Cloning shares it.
#[derive(Clone)]
pub struct Disk {
    shared: Arc<Shared>,
}

type Observer = Arc<dyn Fn(&Operation<'_>) + Send + Sync>;

struct Shared {
    clock: Box<dyn Fn() -> Timestamp + Send + Sync>,
    /// All that is on the disk. Neither the clock nor an observer is called while it is held.
    state: Mutex<State>,
    /// Taken for as long as it takes to clone what is in it.
    observer: Mutex<Option<Observer>>,
    /// The same for whoever only looks.
    watcher: Mutex<Option<Observer>>,
}

impl Disk {
    /// An empty disk with power. `clock` gives the times of modification and must not use the disk.
    pub fn new(clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        let state = Mutex::new(State::new(clock()));
        let shared = Shared {
            clock: Box::new(clock),
            state,
            observer: Mutex::new(None),
            watcher: Mutex::new(None),
        };
        Self { shared: Arc::new(shared) }
    }

    /// From now on every operation fails with [`Gone`] and nothing becomes durable.
    pub fn power_off(&self) {
        let mut state = self.lock();
        state.off = true;
        state.cut_at = None;
    }

    /// Cuts the power at the `operations`-th write or sync from now, 1 being the next: a write is
    /// then in the cache, a sync has done nothing, and neither is answered. 0 asks for no cut.
    pub fn power_off_in(&self, operations: u64) {
        let mut state = self.lock();
        state.cut_at = (operations > 0).then(|| state.operations + operations);
    }

    /// Gives power back. Handles from before a crash or kill stay dead.
    pub fn power_on(&self) {
        self.lock().off = false;
    }

    pub fn is_off(&self) -> bool {
        self.lock().off
    }

    /// Takes from the disk what a power cut would, and every handle and lock with it. The power is
    /// off afterwards.
    pub fn crash(&self, chance: &mut Chance<'_>, mode: CrashMode) {
        let mut state = self.lock();
        state.off = true;
        state.cut_at = None;
        state.crash(chance, mode);
    }

    /// The process that used the disk is gone, with every handle and lock; the system is not, so
    /// what was written stays written, durable or not.
    pub fn kill(&self) {
        self.lock().kill();
    }

    pub fn set_fault(&self, fault: Fault, switch: Switch) {
        self.lock().faults.set(fault, switch);
    }

    /// The faults that struck once since the last time.
    pub fn take_struck(&self) -> BTreeSet<Fault> {
        std::mem::take(&mut self.lock().faults.struck)
    }

    /// How many writes and syncs took place, of files and directories.
    pub fn operations(&self) -> u64 {
        self.lock().operations
    }

    /// How many durable points there were: the writes and syncs that [`Disk::operations`] counts,
    /// without those of what is unimportant. Each is a moment at which a crash leaves another disk.
    pub fn points(&self) -> u64 {
        self.lock().points
    }

    /// Nothing below `path` is a durable point: what it holds may be lost.
    pub fn set_unimportant(&self, path: &Path) {
        self.lock().unimportant = Some(path.to_owned());
    }

    /// Cuts the power at the durable point of that number, 1 being the disk's first, in the way of
    /// [`Disk::power_off_in`].
    pub fn power_off_at_point(&self, point: u64) {
        self.lock().cuts.insert(point);
    }

    /// Takes back what [`Disk::power_off_at_point`] asked for.
    pub fn spare_point(&self, point: u64) {
        self.lock().cuts.remove(&point);
    }

    /// How many handles are open.
    pub fn handles(&self) -> usize {
        self.lock().handles()
    }

    /// Has `observer` called before each operation, also one that will fail. It may use the disk,
    /// which calls it again, and set a fault for the operation it was called for.
    pub fn on_operation(&self, observer: impl Fn(&Operation<'_>) + Send + Sync + 'static) {
        *self.shared.observer.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(Arc::new(observer));
    }

    /// Has `watcher` called before each operation as well. It does nothing to the disk, and nobody
    /// takes its place.
    pub fn watch(&self, watcher: impl Fn(&Operation<'_>) + Send + Sync + 'static) {
        *self.shared.watcher.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(Arc::new(watcher));
    }

    /// Opens a new file that has no name and is gone with its handle.
    fn nameless(&self) -> io::Result<Arc<dyn File>> {
        self.act(self.generation(), OperationKind::Open, |state| {
            let node = state.add(0o600, Body::File { content: Content::default(), lock: None });
            let handle = Handle::new(self, state, node, PathBuf::new());
            Ok(Arc::new(OpenFile { handle, access: Access::Write }) as Arc<dyn File>)
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic under the lock is a broken invariant and fails the run; handles that are dropped
        // on the way out should not make an abort of it.
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn generation(&self) -> u64 {
        self.lock().generation
    }

    fn observe(&self, kind: OperationKind, path: impl FnOnce() -> PathBuf) {
        let taken = |who: &Mutex<Option<Observer>>| {
            who.lock().unwrap_or_else(PoisonError::into_inner).clone()
        };
        let both = [taken(&self.shared.watcher), taken(&self.shared.observer)];
        if both.iter().all(Option::is_none) {
            return;
        }
        let path = path();
        for observer in both.into_iter().flatten() {
            observer(&Operation { kind, path: &path });
        }
    }

    /// Does something for a process of `generation`, unless the disk is off or a fault strikes.
    fn act<T>(
        &self,
        generation: u64,
        kind: OperationKind,
        act: impl FnOnce(&mut State) -> io::Result<T>,
    ) -> io::Result<T> {
        let time = (self.shared.clock)();
        let mut state = self.lock();
        if state.off || state.generation != generation {
            return Err(Gone.into());
        }
        state.time = time;
        if state.faults.strikes(Fault::IoError) {
            return Err(Errno::Io.into());
        }
        if kind.changes() && state.faults.strikes(Fault::ReadOnly) {
            return Err(io::ErrorKind::ReadOnlyFilesystem.into());
        }
        act(&mut state)
    }
}

impl Fs for Disk {
    fn dir(&self, path: &Path) -> io::Result<Arc<dyn Dir>> {
        self.observe(OperationKind::OpenDir, || path.to_owned());
        self.act(self.generation(), OperationKind::OpenDir, |state| {
            let (node, path) = state.resolve(path)?;
            state.entries(node)?;
            state.allow(node, READ)?;
            let handle = Handle::new(self, state, node, path);
            Ok(Arc::new(Folder { handle }) as Arc<dyn Dir>)
        })
    }

    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        self.observe(OperationKind::Stat, || path.to_owned());
        self.act(self.generation(), OperationKind::Stat, |state| {
            state.resolve(path).map(|(_, canonical)| canonical)
        })
    }
}

impl std::fmt::Debug for Disk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Disk")
    }
}
