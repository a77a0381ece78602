//! Open files and directories of a simulated disk, with the answers of the real one.
//! A handle belongs to the process that opened it: it fails once that is gone, and with it its lock.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nexus3::world::{Access, Dir, Entry, File, Kind, LinkRefused, Stat};

use super::Disk;
use super::content::Content;
use super::fault::{Errno, Fault};
use super::names::{READ, WRITE, components};
use super::operation::OperationKind;
use super::state::{Body, Entries, HandleId, Node, NodeId, State};

/// What every process of this disk takes from the modes it asks for.
const UMASK: u32 = 0o022;

/// What `stat` says of every directory, as ext4 does of a small one.
const DIR_BYTES: u64 = 4096;

pub(super) struct Handle {
    disk: Disk,
    node: NodeId,
    id: HandleId,
    generation: u64,
    /// The path it was opened by, for observers.
    path: PathBuf,
}

impl Handle {
    /// Holds `node`, which was just found under the lock that `state` came from.
    pub(super) fn new(disk: &Disk, state: &mut State, node: NodeId, path: PathBuf) -> Self {
        let (id, generation) = (state.open(node), state.generation);
        Self { disk: disk.clone(), node, id, generation, path }
    }

    fn act<T>(
        &self,
        kind: OperationKind,
        act: impl FnOnce(&mut State) -> io::Result<T>,
    ) -> io::Result<T> {
        self.disk.observe(kind, || self.path.clone());
        self.disk.act(self.generation, kind, |state| {
            state.is_about(&self.path);
            act(state)
        })
    }

    /// Acts on something below this directory.
    fn act_at<T>(
        &self,
        kind: OperationKind,
        path: &Path,
        act: impl FnOnce(&mut State) -> io::Result<T>,
    ) -> io::Result<T> {
        self.disk.observe(kind, || self.below(path));
        self.disk.act(self.generation, kind, act)
    }

    fn below(&self, path: &Path) -> PathBuf {
        // Without the dots: `components` is what decides where a path leads.
        self.path.components().chain(path.components()).filter(|c| c.as_os_str() != ".").collect()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.disk.lock().close(self.node, self.id, self.generation);
    }
}

pub(super) struct Folder {
    pub(super) handle: Handle,
}

impl Folder {
    fn create(&self, state: &mut State, path: &Path, mode: u32) -> io::Result<NodeId> {
        if state.faults.strikes(Fault::ReadOnly) {
            return Err(io::ErrorKind::ReadOnlyFilesystem.into());
        }
        let place = state.place(self.handle.node, path)?;
        let body = Body::File { content: Content::default(), lock: None };
        state.make(place, mode & !UMASK, body)
    }

    /// Opens a file that is there, for reading or for both.
    fn existing(state: &mut State, node: NodeId, bits: u32) -> io::Result<NodeId> {
        match &state.node(node).body {
            Body::File { .. } => (),
            Body::Dir(_) => return Err(io::ErrorKind::IsADirectory.into()),
            Body::Link(_) => return Err(LinkRefused.into()),
        }
        state.allow(node, bits)?;
        if bits & WRITE != 0 && state.faults.strikes(Fault::ReadOnly) {
            return Err(io::ErrorKind::ReadOnlyFilesystem.into());
        }
        Ok(node)
    }
}

impl Dir for Folder {
    fn dir(&self, path: &Path) -> io::Result<Arc<dyn Dir>> {
        self.handle.act_at(OperationKind::OpenDir, path, |state| {
            let node = state.find(self.handle.node, &components(path)?)?;
            state.entries(node)?;
            state.allow(node, READ)?;
            let handle = Handle::new(&self.handle.disk, state, node, self.handle.below(path));
            Ok(Arc::new(Folder { handle }) as Arc<dyn Dir>)
        })
    }

    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn File>> {
        self.handle.act_at(OperationKind::Open, path, |state| {
            let found = match state.find(self.handle.node, &components(path)?) {
                Ok(node) => Some(node),
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(error) => return Err(error),
            };
            let node = match (access, found) {
                (Access::CreateNew { .. }, Some(_)) => {
                    return Err(io::ErrorKind::AlreadyExists.into());
                }
                (Access::Read | Access::Write, None) => {
                    return Err(io::ErrorKind::NotFound.into());
                }
                (Access::CreateNew { mode } | Access::Create { mode }, None) => {
                    self.create(state, path, mode)?
                }
                (Access::Read, Some(node)) => Self::existing(state, node, READ)?,
                (Access::Write | Access::Create { .. }, Some(node)) => {
                    Self::existing(state, node, READ | WRITE)?
                }
            };
            let handle = Handle::new(&self.handle.disk, state, node, self.handle.below(path));
            Ok(Arc::new(OpenFile { handle, access }) as Arc<dyn File>)
        })
    }

    fn stat(&self, path: &Path) -> io::Result<Stat> {
        self.handle.act_at(OperationKind::Stat, path, |state| {
            let node = state.find(self.handle.node, &components(path)?)?;
            Ok(stat(state.node(node)))
        })
    }

    fn list(&self) -> io::Result<Vec<Entry>> {
        self.handle.act(OperationKind::List, |state| {
            let entries = &state.entries(self.handle.node)?.now;
            let entry = |(name, node): (&std::ffi::OsString, &NodeId)| Entry {
                name: name.clone(),
                kind: kind(&state.node(*node).body),
            };
            Ok(entries.iter().map(entry).collect())
        })
    }

    fn read_link(&self, path: &Path) -> io::Result<PathBuf> {
        self.handle.act_at(OperationKind::ReadLink, path, |state| {
            let (_, node) = state.found(self.handle.node, path)?;
            match &state.node(node).body {
                Body::Link(target) => Ok(target.clone()),
                Body::File { .. } | Body::Dir(_) => Err(io::ErrorKind::InvalidInput.into()),
            }
        })
    }

    fn make_dir(&self, path: &Path, mode: u32) -> io::Result<()> {
        self.handle.act_at(OperationKind::MakeDir, path, |state| {
            let place = state.place(self.handle.node, path)?;
            state.make(place, mode & !UMASK, Body::Dir(Entries::default())).map(drop)
        })
    }

    fn make_link(&self, path: &Path, target: &Path) -> io::Result<()> {
        self.handle.act_at(OperationKind::MakeLink, path, |state| {
            let place = state.place(self.handle.node, path)?;
            if target.as_os_str().is_empty() {
                return Err(io::ErrorKind::NotFound.into());
            }
            state.make(place, 0o777, Body::Link(target.to_owned())).map(drop)
        })
    }

    fn set_mode(&self, path: &Path, mode: u32) -> io::Result<()> {
        self.handle.act_at(OperationKind::SetMode, path, |state| {
            let node = state.find(self.handle.node, &components(path)?)?;
            match &state.node(node).body {
                Body::File { .. } | Body::Dir(_) => (),
                Body::Link(_) => return Err(LinkRefused.into()),
            }
            state.node_mut(node).now.mode = mode & 0o7777;
            Ok(())
        })
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.handle.disk.observe(OperationKind::Rename, || self.handle.below(from));
        self.handle.act_at(OperationKind::RenameTo, to, |state| {
            let from = state.place(self.handle.node, from)?;
            let to = state.place(self.handle.node, to)?;
            state.rename(from, to)
        })
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.handle.act_at(OperationKind::RemoveFile, path, |state| {
            let (place, node) = state.found(self.handle.node, path)?;
            match &state.node(node).body {
                Body::File { .. } | Body::Link(_) => state.unlink(place, node),
                Body::Dir(_) => Err(io::ErrorKind::IsADirectory.into()),
            }
        })
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.handle.act_at(OperationKind::RemoveDir, path, |state| {
            let (place, node) = state.found(self.handle.node, path)?;
            match &state.node(node).body {
                Body::Dir(entries) if entries.now.is_empty() => state.unlink(place, node),
                Body::Dir(_) => Err(io::ErrorKind::DirectoryNotEmpty.into()),
                Body::File { .. } | Body::Link(_) => Err(io::ErrorKind::NotADirectory.into()),
            }
        })
    }

    fn sync(&self) -> io::Result<()> {
        self.handle.act(OperationKind::SyncDir, |state| state.sync_dir(self.handle.node))
    }
}

pub(super) struct OpenFile {
    pub(super) handle: Handle,
    pub(super) access: Access,
}

impl OpenFile {
    fn writable(&self) -> bool {
        match self.access {
            Access::Read => false,
            Access::Write | Access::Create { .. } | Access::CreateNew { .. } => true,
        }
    }
}

impl File for OpenFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.handle.act(OperationKind::Read, |state| {
            // Past what memory can hold there is nothing to read.
            let offset = usize::try_from(offset).unwrap_or(usize::MAX);
            Ok(state.content(self.handle.node).read(bytes, offset))
        })
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        if bytes.is_empty() {
            // The real disk is not even asked.
            return Ok(());
        }
        self.handle.act(OperationKind::Write, |state| {
            if !self.writable() {
                return Err(Errno::BadHandle.into());
            }
            state.write(self.handle.node, bytes, offset)
        })
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.handle.act(OperationKind::SetLen, |state| {
            if !self.writable() {
                return Err(io::ErrorKind::InvalidInput.into());
            }
            state.set_len(self.handle.node, len)
        })
    }

    fn stat(&self) -> io::Result<Stat> {
        self.handle.act(OperationKind::Stat, |state| Ok(stat(state.node(self.handle.node))))
    }

    fn sync(&self) -> io::Result<()> {
        self.handle.act(OperationKind::Sync, |state| state.sync_file(self.handle.node))
    }

    fn try_lock(&self) -> io::Result<()> {
        self.handle.act(OperationKind::Lock, |state| {
            let Body::File { lock, .. } = &mut state.node_mut(self.handle.node).body else {
                unreachable!("only a regular file is opened as one");
            };
            if lock.is_some_and(|holder| holder != self.handle.id) {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            *lock = Some(self.handle.id);
            Ok(())
        })
    }
}

fn kind(body: &Body) -> Kind {
    match body {
        Body::File { .. } => Kind::File,
        Body::Dir(_) => Kind::Dir,
        Body::Link(_) => Kind::Link,
    }
}

fn stat(node: &Node) -> Stat {
    let len = match &node.body {
        Body::File { content, .. } => content.now().len() as u64,
        Body::Dir(_) => DIR_BYTES,
        Body::Link(target) => target.as_os_str().len() as u64,
    };
    Stat { kind: kind(&node.body), len, mode: node.now.mode, modified: node.now.modified }
}
