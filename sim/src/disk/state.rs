//! All that is on a disk, and whether it has power. Knows numbered files and directories; names and
//! paths are the business of `names`. Every method is called under the disk's one lock.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::content::Content;
use super::crash::{Chance, CrashMode, below};
use super::fault::{Errno, Fault, Faults, Gone};
use super::journal::{Journal, Renaming};

pub(super) type NodeId = u64;
pub(super) type HandleId = u64;

pub(super) const ROOT: NodeId = 0;

/// Beyond it a write is a mistake of the test: all of it would be held in memory.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// Removed files are swept when there are twice as many as after the last time, and this many.
const SWEEP_NODES_MIN: usize = 256;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) mode: u32,
    pub(super) modified: Timestamp,
}

#[derive(Debug)]
pub(super) struct Node {
    pub(super) now: Facts,
    pub(super) durable: Facts,
    pub(super) body: Body,
    handles: usize,
}

#[derive(Debug)]
pub(super) enum Body {
    File { content: Content, lock: Option<HandleId> },
    Dir(Entries),
    Link(PathBuf),
}

#[derive(Debug, Default)]
pub(super) struct Entries {
    pub(super) now: BTreeMap<OsString, NodeId>,
    pub(super) durable: BTreeMap<OsString, NodeId>,
    /// The directory it is in; the root is in itself, and a removed one in none.
    pub(super) parent: Option<NodeId>,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) nodes: BTreeMap<NodeId, Node>,
    next_node: NodeId,
    next_handle: HandleId,
    pub(super) journal: Journal,
    pub(super) faults: Faults,
    /// The time of the operation at hand.
    pub(super) time: Timestamp,
    /// Counts the processes this disk outlived: a handle belongs to one of them.
    pub(super) generation: u64,
    pub(super) off: bool,
    pub(super) operations: u64,
    pub(super) cut_at: Option<u64>,
    /// Durable points so far, and those at which the power goes.
    pub(super) points: u64,
    pub(super) cuts: BTreeSet<u64>,
    /// What lies below is no durable point.
    pub(super) unimportant: Option<PathBuf>,
    /// Whether the operation at hand can be one.
    is_important: bool,
    nodes_after_sweep: usize,
}

impl State {
    pub(super) fn new(time: Timestamp) -> Self {
        let root = Entries { parent: Some(ROOT), ..Entries::default() };
        let facts = Facts { mode: 0o755, modified: time };
        let root = Node { now: facts.clone(), durable: facts, body: Body::Dir(root), handles: 0 };
        Self {
            nodes: BTreeMap::from([(ROOT, root)]),
            next_node: ROOT + 1,
            next_handle: 0,
            journal: Journal::default(),
            faults: Faults::default(),
            time,
            generation: 0,
            off: false,
            operations: 0,
            cut_at: None,
            points: 0,
            cuts: BTreeSet::new(),
            unimportant: None,
            is_important: true,
            nodes_after_sweep: 0,
        }
    }

    pub(super) fn node(&self, id: NodeId) -> &Node {
        self.nodes.get(&id).expect("what has a name or a handle is kept")
    }

    pub(super) fn node_mut(&mut self, id: NodeId) -> &mut Node {
        self.nodes.get_mut(&id).expect("what has a name or a handle is kept")
    }

    pub(super) fn add(&mut self, mode: u32, body: Body) -> NodeId {
        let facts = Facts { mode, modified: self.time };
        let id = self.next_node;
        self.next_node += 1;
        self.nodes.insert(id, Node { now: facts.clone(), durable: facts, body, handles: 0 });
        id
    }

    pub(super) fn open(&mut self, id: NodeId) -> HandleId {
        self.node_mut(id).handles += 1;
        self.number()
    }

    /// A number that no other handle has.
    pub(super) fn number(&mut self) -> HandleId {
        self.next_handle += 1;
        self.next_handle
    }

    pub(super) fn close(&mut self, id: NodeId, handle: HandleId, generation: u64) {
        if generation != self.generation {
            return;
        }
        let node = self.node_mut(id);
        node.handles -= 1;
        match &mut node.body {
            Body::File { lock, .. } if *lock == Some(handle) => *lock = None,
            Body::File { .. } | Body::Dir(_) | Body::Link(_) => (),
        }
        if self.nodes.len() > SWEEP_NODES_MIN.max(2 * self.nodes_after_sweep) {
            self.sweep();
        }
    }

    pub(super) fn handles(&self) -> usize {
        self.nodes.values().map(|node| node.handles).sum()
    }

    pub(super) fn content(&self, id: NodeId) -> &Content {
        match &self.node(id).body {
            Body::File { content, .. } => content,
            Body::Dir(_) | Body::Link(_) => unreachable!("only a regular file is opened as one"),
        }
    }

    fn content_mut(&mut self, id: NodeId) -> &mut Content {
        match &mut self.node_mut(id).body {
            Body::File { content, .. } => content,
            Body::Dir(_) | Body::Link(_) => unreachable!("only a regular file is opened as one"),
        }
    }

    /// The content, which changes at the time of the operation.
    fn modify(&mut self, id: NodeId) -> &mut Content {
        let time = self.time;
        self.node_mut(id).now.modified = time;
        self.content_mut(id)
    }

    pub(super) fn write(&mut self, id: NodeId, bytes: &[u8], offset: u64) -> io::Result<()> {
        let offset = position(offset, bytes.len())?;
        let allocated = self.content(id).allocated();
        let (taken, failure) =
            if offset + bytes.len() > allocated && self.faults.strikes(Fault::Full) {
                (allocated.saturating_sub(offset), Some(io::ErrorKind::StorageFull.into()))
            } else if self.faults.strikes(Fault::TornWrite) {
                (bytes.len() / 2, Some(Errno::Io.into()))
            } else {
                (bytes.len(), None)
            };
        if taken > 0 {
            self.modify(id).write(&bytes[..taken], offset);
        }
        failure.map_or_else(|| self.count(), Err)
    }

    pub(super) fn set_len(&mut self, id: NodeId, len: u64) -> io::Result<()> {
        let len = position(len, 0)?;
        // Growing takes no room: what was never written has no block.
        self.modify(id).set_len(len);
        self.count()
    }

    pub(super) fn sync_file(&mut self, id: NodeId) -> io::Result<()> {
        if self.faults.strikes(Fault::FsyncError) {
            self.content_mut(id).forget_unsynced();
            return Err(Errno::Io.into());
        }
        self.count()?;
        if self.faults.strikes(Fault::FsyncLies) {
            return Ok(());
        }
        self.content_mut(id).sync();
        let node = self.node_mut(id);
        node.durable = node.now.clone();
        Ok(())
    }

    pub(super) fn sync_dir(&mut self, id: NodeId) -> io::Result<()> {
        if self.faults.strikes(Fault::FsyncError) {
            self.journal.take(id);
            return Err(Errno::Io.into());
        }
        self.count()?;
        if self.faults.strikes(Fault::FsyncLies) {
            return Ok(());
        }
        for renaming in self.journal.take(id) {
            self.settle(renaming);
        }
        let node = self.node_mut(id);
        node.durable = node.now.clone();
        Ok(())
    }

    /// Counts a write or sync, and cuts the power where the owner asked for it: a write is then in
    /// the cache, a sync has done nothing, and neither is answered.
    fn count(&mut self) -> io::Result<()> {
        self.operations += 1;
        if self.cut_at == Some(self.operations) {
            self.off = true;
            self.cut_at = None;
            return Err(Gone.into());
        }
        if self.is_important {
            self.points += 1;
            if self.cuts.remove(&self.points) {
                self.off = true;
                return Err(Gone.into());
            }
        }
        Ok(())
    }

    /// Notes what the operation at hand is about.
    pub(super) fn is_about(&mut self, path: &Path) {
        let unimportant = self.unimportant.as_ref();
        self.is_important = !unimportant.is_some_and(|unimportant| path.starts_with(unimportant));
    }

    pub(super) fn entries_mut(&mut self, id: NodeId) -> &mut Entries {
        match &mut self.node_mut(id).body {
            Body::Dir(entries) => entries,
            Body::File { .. } | Body::Link(_) => unreachable!("names are in directories only"),
        }
    }

    fn settle(&mut self, renaming: Renaming) {
        for entry in renaming.entries {
            let durable = &mut self.entries_mut(entry.dir).durable;
            match entry.to {
                Some(node) => durable.insert(entry.name, node),
                None => durable.remove(&entry.name),
            };
        }
    }

    /// The process with its handles and locks is gone; what it wrote is still in the cache.
    pub(super) fn kill(&mut self) {
        self.generation += 1;
        for node in self.nodes.values_mut() {
            node.handles = 0;
            if let Body::File { lock, .. } = &mut node.body {
                *lock = None;
            }
        }
        self.sweep();
    }

    pub(super) fn crash(&mut self, chance: &mut Chance<'_>, mode: CrashMode) {
        for renaming in self.journal.crash(chance, mode) {
            self.settle(renaming);
        }
        for node in self.nodes.values_mut() {
            let kept = match mode {
                CrashMode::LoseAll => false,
                CrashMode::KeepAll => true,
                // Only where there is something to decide, so that a run's draws stay few.
                CrashMode::Torn => node.now != node.durable && below(chance, 2) == 0,
            };
            if kept {
                node.durable = node.now.clone();
            }
            node.now = node.durable.clone();
            match &mut node.body {
                Body::File { content, .. } => content.crash(chance, mode),
                Body::Dir(entries) => {
                    entries.now.clone_from(&entries.durable);
                    entries.parent = None;
                }
                Body::Link(_) => (),
            }
        }
        self.adopt();
        self.kill();
    }

    /// Tells every directory again where it is.
    fn adopt(&mut self) {
        self.entries_mut(ROOT).parent = Some(ROOT);
        let mut open = vec![ROOT];
        while let Some(dir) = open.pop() {
            for child in self.entries_mut(dir).now.values().copied().collect::<Vec<_>>() {
                if let Body::Dir(entries) = &mut self.node_mut(child).body {
                    entries.parent = Some(dir);
                    open.push(child);
                }
            }
        }
    }

    /// Forgets what no name, handle or pending change leads to.
    fn sweep(&mut self) {
        let mut kept = BTreeSet::new();
        let mut open = vec![ROOT];
        open.extend(self.journal.nodes());
        open.extend(self.nodes.iter().filter(|(_, node)| node.handles > 0).map(|(id, _)| *id));
        while let Some(id) = open.pop() {
            if !kept.insert(id) {
                continue;
            }
            if let Body::Dir(entries) = &self.node(id).body {
                open.extend(entries.now.values().chain(entries.durable.values()));
            }
        }
        self.nodes.retain(|id, _| kept.contains(id));
        self.journal.retain(&kept);
        self.nodes_after_sweep = self.nodes.len();
    }
}

/// An offset in memory; the end of `len` bytes there is within bounds.
fn position(offset: u64, len: usize) -> io::Result<usize> {
    match offset.checked_add(len as u64) {
        Some(end) if end <= FILE_BYTES_MAX => {
            Ok(usize::try_from(offset).expect("the bound fits in memory"))
        }
        Some(_) | None => Err(io::ErrorKind::FileTooLarge.into()),
    }
}
