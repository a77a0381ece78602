//! Names on a disk: finding what a path leads to, and making, renaming and removing. The answers are
//! those of Linux to a user who owns every file and is not root.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use nexus3::world::LinkRefused;

use super::fault::{Errno, Fault};
use super::journal::{Entry, Renaming};
use super::state::{Body, Entries, NodeId, ROOT, State};

/// What the owner of a file or directory may do.
pub(super) const READ: u32 = 0o400;
pub(super) const WRITE: u32 = 0o200;
pub(super) const SEARCH: u32 = 0o100;

const NAME_BYTES_MAX: usize = 255;
const LINKS_FOLLOWED_MAX: usize = 40;

/// A name in a directory, which may lead to nothing.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) dir: NodeId,
    pub(super) name: OsString,
}

/// The names on a relative path; none for the directory itself.
pub(super) fn components(path: &Path) -> io::Result<Vec<&OsStr>> {
    let mut names = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => names.push(plain(name)?),
            Component::CurDir => (),
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                return Err(io::ErrorKind::InvalidInput.into());
            }
        }
    }
    Ok(names)
}

fn plain(name: &OsStr) -> io::Result<&OsStr> {
    if name.as_bytes().contains(&0) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    if name.len() > NAME_BYTES_MAX {
        return Err(io::ErrorKind::InvalidFilename.into());
    }
    Ok(name)
}

impl State {
    /// The entries of a directory, or why it is none.
    pub(super) fn entries(&self, id: NodeId) -> io::Result<&Entries> {
        match &self.node(id).body {
            Body::Dir(entries) => Ok(entries),
            Body::File { .. } => Err(io::ErrorKind::NotADirectory.into()),
            Body::Link(_) => Err(LinkRefused.into()),
        }
    }

    pub(super) fn allow(&self, id: NodeId, bits: u32) -> io::Result<()> {
        if self.node(id).now.mode & bits == bits {
            Ok(())
        } else {
            Err(io::ErrorKind::PermissionDenied.into())
        }
    }

    pub(super) fn child(&self, dir: NodeId, name: &OsStr) -> io::Result<Option<NodeId>> {
        let entries = self.entries(dir)?;
        self.allow(dir, SEARCH)?;
        Ok(entries.now.get(name).copied())
    }

    /// What `names` lead to below `base`; a link on the way is refused, one at the end returned.
    pub(super) fn find(&self, base: NodeId, names: &[&OsStr]) -> io::Result<NodeId> {
        names.iter().try_fold(base, |dir, name| {
            self.child(dir, name)?.ok_or_else(|| io::ErrorKind::NotFound.into())
        })
    }

    /// The name at the end of `path`, in a directory that exists.
    pub(super) fn place(&self, base: NodeId, path: &Path) -> io::Result<Place> {
        let names = components(path)?;
        let (name, parents) = names.split_last().ok_or(io::ErrorKind::InvalidInput)?;
        let dir = self.find(base, parents)?;
        self.entries(dir)?;
        Ok(Place { dir, name: (*name).to_owned() })
    }

    /// What is at the end of `path`, a link itself included.
    pub(super) fn found(&self, base: NodeId, path: &Path) -> io::Result<(Place, NodeId)> {
        let place = self.place(base, path)?;
        let node = self.child(place.dir, &place.name)?.ok_or(io::ErrorKind::NotFound)?;
        Ok((place, node))
    }

    /// Follows an absolute path with all its links, and returns where it ends and how that is named.
    pub(super) fn resolve(&self, path: &Path) -> io::Result<(NodeId, PathBuf)> {
        if !path.is_absolute() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut way: Vec<(OsString, NodeId)> = Vec::new();
        let mut ahead = reversed(path);
        let mut links = 0;
        while let Some(step) = ahead.pop() {
            let here = way.last().map_or(ROOT, |(_, node)| *node);
            match Path::new(&step).components().next() {
                Some(Component::RootDir) => way.clear(),
                Some(Component::ParentDir) => {
                    self.entries(here)?;
                    way.pop();
                }
                Some(Component::Normal(name)) => {
                    let node = self.child(here, plain(name)?)?.ok_or(io::ErrorKind::NotFound)?;
                    if let Body::Link(target) = &self.node(node).body {
                        links += 1;
                        if links > LINKS_FOLLOWED_MAX {
                            return Err(Errno::Loop.into());
                        }
                        ahead.extend(reversed(target));
                    } else {
                        way.push((step, node));
                    }
                }
                Some(Component::CurDir | Component::Prefix(_)) | None => (),
            }
        }
        let end = way.last().map_or(ROOT, |(_, node)| *node);
        let names = way.iter().map(|(name, _)| name.as_os_str());
        Ok((end, std::iter::once(OsStr::new("/")).chain(names).collect()))
    }

    /// Makes something new at a place; `AlreadyExists` where there is anything.
    pub(super) fn make(&mut self, place: Place, mode: u32, body: Body) -> io::Result<NodeId> {
        if self.child(place.dir, &place.name)?.is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        if self.entries(place.dir)?.parent.is_none() {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.allow(place.dir, WRITE | SEARCH)?;
        if self.faults.strikes(Fault::Full) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let node = self.add(mode, body);
        if let Body::Dir(entries) = &mut self.node_mut(node).body {
            entries.parent = Some(place.dir);
        }
        self.enter(vec![Entry { dir: place.dir, name: place.name, to: Some(node) }]);
        Ok(node)
    }

    pub(super) fn rename(&mut self, from: Place, to: Place) -> io::Result<()> {
        let node = self.child(from.dir, &from.name)?.ok_or(io::ErrorKind::NotFound)?;
        let replaced = self.child(to.dir, &to.name)?;
        if self.is_within(to.dir, node) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        if let Some(replaced) = replaced {
            if self.is_within(from.dir, replaced) {
                return Err(io::ErrorKind::DirectoryNotEmpty.into());
            }
            if replaced == node {
                return Ok(());
            }
            self.may_replace(node, replaced)?;
        }
        if self.entries(to.dir)?.parent.is_none() {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.allow(from.dir, WRITE | SEARCH)?;
        self.allow(to.dir, WRITE | SEARCH)?;
        if let Some(replaced) = replaced {
            self.orphan(replaced);
        }
        if let Body::Dir(entries) = &mut self.node_mut(node).body {
            entries.parent = Some(to.dir);
        }
        self.enter(vec![
            Entry { dir: from.dir, name: from.name, to: None },
            Entry { dir: to.dir, name: to.name, to: Some(node) },
        ]);
        Ok(())
    }

    fn may_replace(&self, node: NodeId, replaced: NodeId) -> io::Result<()> {
        let is_dir = matches!(self.node(node).body, Body::Dir(_));
        match &self.node(replaced).body {
            Body::Dir(_) if !is_dir => Err(io::ErrorKind::IsADirectory.into()),
            Body::Dir(entries) if !entries.now.is_empty() => {
                Err(io::ErrorKind::DirectoryNotEmpty.into())
            }
            Body::File { .. } | Body::Link(_) if is_dir => Err(io::ErrorKind::NotADirectory.into()),
            Body::Dir(_) | Body::File { .. } | Body::Link(_) => Ok(()),
        }
    }

    /// Takes a name away from what it leads to, which stays as long as a handle does.
    pub(super) fn unlink(&mut self, place: Place, node: NodeId) -> io::Result<()> {
        self.allow(place.dir, WRITE | SEARCH)?;
        self.orphan(node);
        self.enter(vec![Entry { dir: place.dir, name: place.name, to: None }]);
        Ok(())
    }

    fn orphan(&mut self, node: NodeId) {
        if let Body::Dir(entries) = &mut self.node_mut(node).body {
            entries.parent = None;
        }
    }

    fn enter(&mut self, entries: Vec<Entry>) {
        let time = self.time;
        for entry in &entries {
            self.node_mut(entry.dir).now.modified = time;
            let names = &mut self.entries_mut(entry.dir).now;
            match entry.to {
                Some(node) => names.insert(entry.name.clone(), node),
                None => names.remove(&entry.name),
            };
        }
        self.journal.push(Renaming { entries });
    }

    /// Whether `node` is `ancestor` or below it.
    fn is_within(&self, node: NodeId, ancestor: NodeId) -> bool {
        let mut here = Some(node);
        while let Some(id) = here {
            if id == ancestor {
                return true;
            }
            here = match &self.node(id).body {
                Body::Dir(entries) if id != ROOT => entries.parent,
                Body::Dir(_) | Body::File { .. } | Body::Link(_) => None,
            };
        }
        false
    }
}

/// The components of a path, the next one last.
fn reversed(path: &Path) -> Vec<OsString> {
    let mut steps: Vec<OsString> =
        path.components().map(|component| component.as_os_str().to_owned()).collect();
    steps.reverse();
    steps
}
