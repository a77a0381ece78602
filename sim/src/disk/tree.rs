//! The whole disk at once, for its owner: what is on it at the start, what a run left, and a number
//! that stands for all of it. Past all faults, power cuts and observers, and never counted.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::Disk;
use super::content::Content;
use super::names::components;
use super::state::{Body, Entries, NodeId, ROOT, State};
use crate::digest::Digest;

/// Which of the two disks is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// As it reads.
    Now,
    /// As a power cut that loses all it can would leave it.
    Durable,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    File { content: Vec<u8>, mode: u32 },
    Dir { mode: u32 },
    Link { target: PathBuf },
}

impl Disk {
    /// Puts something on the disk as if it had always been there: durable, with the directories on
    /// the way, in place of a file or link of that name. `path` is absolute; an existing directory
    /// gets the mode of a new one and keeps what is in it, and is no place for anything else.
    pub fn put(&self, path: &Path, item: Item) -> io::Result<()> {
        let time = (self.shared.clock)();
        let mut state = self.lock();
        state.time = time;
        let names = components(path.strip_prefix("/").map_err(|_| io::ErrorKind::InvalidInput)?)?;
        let Some((name, parents)) = names.split_last() else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let mut dir = ROOT;
        for parent in parents {
            dir = state.settle_dir(dir, parent)?;
        }
        match item {
            Item::Dir { mode } => {
                let dir = state.settle_dir(dir, name)?;
                let node = state.node_mut(dir);
                node.now.mode = mode;
                node.durable.mode = mode;
            }
            Item::File { content, mode } => {
                let body = Body::File { content: Content::settled(content), lock: None };
                state.settle_new(dir, name, mode, body)?;
            }
            Item::Link { target } => state.settle_new(dir, name, 0o777, Body::Link(target))?,
        }
        Ok(())
    }

    /// Takes something off the disk as if it had never been there, with all below it.
    pub fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.lock();
        let path = path.strip_prefix("/").map_err(|_| io::ErrorKind::InvalidInput)?;
        let (place, node) = state.found(ROOT, path)?;
        if let Body::Dir(entries) = &mut state.node_mut(node).body {
            entries.parent = None;
        }
        let entries = state.entries_mut(place.dir);
        entries.now.remove(&place.name);
        entries.durable.remove(&place.name);
        state.journal.forget(place.dir, &place.name);
        Ok(())
    }

    /// Everything on the disk by its path, without the root.
    pub fn tree(&self, view: View) -> BTreeMap<PathBuf, Item> {
        let state = self.lock();
        let mut tree = BTreeMap::new();
        let mut open = vec![(PathBuf::from("/"), ROOT)];
        while let Some((path, dir)) = open.pop() {
            for (name, id) in entries_of(&state, dir, view) {
                let path = path.join(name);
                let item = item(&state, *id, view);
                if let Item::Dir { .. } = item {
                    open.push((path.clone(), *id));
                }
                tree.insert(path, item);
            }
        }
        tree
    }

    /// Shows the content of every file as it reads now, and where every link leads. Nothing is copied:
    /// a database is large, and those who look do so often.
    pub fn look_into_files(&self, mut look: impl FnMut(&Path, &[u8])) {
        let state = self.lock();
        let mut open = vec![(PathBuf::from("/"), ROOT)];
        while let Some((path, dir)) = open.pop() {
            for (name, id) in entries_of(&state, dir, View::Now) {
                let path = path.join(name);
                match &state.node(*id).body {
                    Body::Dir(_) => open.push((path, *id)),
                    Body::File { content, .. } => look(&path, content.now()),
                    Body::Link(target) => look(&path, target.as_os_str().as_bytes()),
                }
            }
        }
    }

    /// A number that stands for [`Disk::tree`]: equal for equal trees, in every process and on every
    /// machine. Times of modification have no part in it.
    pub fn digest(&self, view: View) -> u64 {
        let mut digest = Digest::default();
        for (path, item) in self.tree(view) {
            digest.add(path.as_os_str().as_bytes());
            let (tag, mode, bytes) = match &item {
                Item::File { content, mode } => (0, *mode, content.as_slice()),
                Item::Dir { mode } => (1, *mode, &[][..]),
                Item::Link { target } => (2, 0o777, target.as_os_str().as_bytes()),
            };
            digest.add(&[tag]);
            digest.add(&mode.to_le_bytes());
            digest.add(bytes);
        }
        digest.number()
    }
}

impl State {
    /// The directory of that name, made where there is none, durable with its name.
    fn settle_dir(&mut self, dir: NodeId, name: &OsStr) -> io::Result<NodeId> {
        if let Some(found) = self.entries(dir)?.now.get(name).copied() {
            self.entries(found)?;
            self.settle_name(dir, name, found);
            return Ok(found);
        }
        let body = Body::Dir(Entries { parent: Some(dir), ..Entries::default() });
        let new = self.add(0o755, body);
        self.settle_name(dir, name, new);
        Ok(new)
    }

    fn settle_new(&mut self, dir: NodeId, name: &OsStr, mode: u32, body: Body) -> io::Result<()> {
        if let Some(found) = self.entries(dir)?.now.get(name)
            && let Body::Dir(_) = self.node(*found).body
        {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let new = self.add(mode, body);
        self.settle_name(dir, name, new);
        Ok(())
    }

    fn settle_name(&mut self, dir: NodeId, name: &OsStr, node: NodeId) {
        let entries = self.entries_mut(dir);
        entries.now.insert(name.to_owned(), node);
        entries.durable.insert(name.to_owned(), node);
        self.journal.forget(dir, name);
    }
}

fn entries_of(state: &State, dir: NodeId, view: View) -> &BTreeMap<std::ffi::OsString, NodeId> {
    let entries = state.entries(dir).expect("only directories are opened");
    match view {
        View::Now => &entries.now,
        View::Durable => &entries.durable,
    }
}

fn item(state: &State, id: NodeId, view: View) -> Item {
    let node = state.node(id);
    let mode = match view {
        View::Now => node.now.mode,
        View::Durable => node.durable.mode,
    };
    match &node.body {
        Body::File { content, .. } => {
            let content = match view {
                View::Now => content.now(),
                View::Durable => content.durable(),
            };
            Item::File { content: content.to_vec(), mode }
        }
        Body::Dir(_) => Item::Dir { mode },
        Body::Link(target) => Item::Link { target: target.clone() },
    }
}
