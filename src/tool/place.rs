//! Where a path leads, and whether it may: the one place that decides about paths.
//! A path is resolved with all its links, decided on as what it is resolved to, and then opened from
//! a handle of its root without following any link. Whatever is swapped in between is met there, and
//! the path is decided on again. Nothing here opens a path that was not decided on.

use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::error::{FileError, Given};
use crate::limits::{LINKS_FOLLOWED_MAX, PATH_BYTES_MAX, PATH_DECISIONS_MAX};
use crate::policy::{Level, blocked, normal};
use crate::world::{Dir, Fs, Kind, LinkRefused};

/// The paths of one agent.
pub struct Paths<'a> {
    pub fs: &'a dyn Fs,
    pub rights: &'a Rights,
    /// What `~` is.
    pub user_home: Option<&'a Path>,
}

/// Where an agent may do what. All paths are absolute and without links.
#[derive(Clone, Debug)]
pub struct Rights {
    /// Where relative paths begin, and what nothing may leave.
    pub cwd: PathBuf,
    /// Where something may be changed, all in the working directory.
    pub write_roots: Vec<PathBuf>,
    pub level: Level,
    /// What is for nobody of a lower level than all.
    pub closed: Arc<[PathBuf]>,
}

impl Rights {
    pub(super) fn is_closed(&self, resolved: &Path) -> bool {
        blocked(resolved, self.level, &self.closed)
    }

    /// Whether something that is closed lies in it: who moves the one moves the other.
    pub(super) fn has_closed_within(&self, resolved: &Path) -> bool {
        let mut within = self.closed.iter().filter(|closed| closed.starts_with(resolved));
        within.any(|closed| self.is_closed(closed))
    }
}

/// A name in a directory that is held open, after the decision that it may be used. Whatever is done
/// to the name through the handle stays in that directory.
pub struct Spot {
    pub parent: Arc<dyn Dir>,
    /// `.` for the working directory itself.
    pub name: OsString,
    /// The whole path, without links.
    pub resolved: PathBuf,
}

impl Spot {
    pub fn name(&self) -> &Path {
        Path::new(&self.name)
    }
}

/// What happens where the directories of a new file are not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parents {
    MustExist,
    Create,
}

/// What a call wants with a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Read,
    Write,
}

enum Resolved {
    There(PathBuf),
    /// The path goes on after something that exists.
    Missing {
        existing: PathBuf,
        rest: PathBuf,
    },
}

impl Paths<'_> {
    /// Does `act` at something that exists. Where it meets a link, or nothing, something changed
    /// after the decision, and both are done again: `act` must have had no effect then.
    pub fn reading<T>(
        &self,
        given: &Given,
        mut act: impl FnMut(&Spot) -> io::Result<T>,
    ) -> Result<T, FileError> {
        settled(given, || match self.resolve(given, Side::Read)? {
            Resolved::There(resolved) => Ok(self.spot(resolved).and_then(|spot| act(&spot))),
            Resolved::Missing { .. } => Err(FileError::Missing { given: given.clone() }),
        })
    }

    /// Does `act` at a name that may be new, under the terms of [`Paths::reading`].
    pub fn writing<T>(
        &self,
        given: &Given,
        parents: Parents,
        mut act: impl FnMut(&Spot) -> io::Result<T>,
    ) -> Result<T, FileError> {
        settled(given, || {
            let resolved = match self.resolve(given, Side::Write)? {
                Resolved::There(resolved) => Ok(resolved),
                Resolved::Missing { existing, rest } => {
                    self.make_way(given, parents, &existing, &rest)?
                }
            };
            Ok(resolved.and_then(|resolved| self.spot(resolved)).and_then(|spot| act(&spot)))
        })
    }

    /// The handle of the working directory, reached from the root of the disk without a link: were
    /// one put in its place, it would lead elsewhere.
    pub fn root(&self) -> io::Result<Arc<dyn Dir>> {
        let top = Path::new("/");
        let below = self.rights.cwd.strip_prefix(top).map_err(|_| io::ErrorKind::InvalidInput)?;
        self.fs.dir(top)?.dir(below)
    }

    /// The way from the working directory to what was decided on.
    pub fn inside<'p>(&self, resolved: &'p Path) -> &'p Path {
        resolved.strip_prefix(&self.rights.cwd).expect("it was decided that this lies inside")
    }

    /// The decision about a path without links.
    fn decide(&self, given: &Given, side: Side, resolved: &Path) -> Result<(), FileError> {
        if !resolved.starts_with(&self.rights.cwd) {
            return Err(FileError::Outside { given: given.clone() });
        }
        if self.rights.is_closed(resolved) {
            return Err(FileError::Closed { given: given.clone() });
        }
        match side {
            Side::Read => Ok(()),
            Side::Write
                if self.rights.write_roots.iter().any(|root| resolved.starts_with(root)) =>
            {
                Ok(())
            }
            Side::Write => Err(FileError::NotWritable { given: given.clone() }),
        }
    }

    /// Follows the links of a path as far as it exists. An error says nothing about what is outside,
    /// not even whether it exists.
    fn resolve(&self, given: &Given, side: Side) -> Result<Resolved, FileError> {
        let mut path = self.absolute(given)?;
        for _ in 0..LINKS_FOLLOWED_MAX {
            let error = match self.fs.canonical(&path) {
                Ok(resolved) => {
                    self.decide(given, side, &resolved)?;
                    return Ok(Resolved::There(resolved));
                }
                Err(error) => error,
            };
            let (existing, rest) = self.existing(&path);
            self.decide(given, side, &normal(&existing, &rest))?;
            match self.link_target(&existing, &rest) {
                // It leads to nothing, or to nothing that can be reached; where to is decided on.
                Some(target) => path = target,
                None if error.kind() == io::ErrorKind::NotFound => {
                    return Ok(Resolved::Missing { existing, rest });
                }
                None => return Err(FileError::of(given, &error)),
            }
        }
        Err(FileError::Circle { given: given.clone() })
    }

    fn absolute(&self, given: &Given) -> Result<PathBuf, FileError> {
        let refused = |why| FileError::NoPath { given: given.clone(), why };
        let text = given.text();
        if text.is_empty() {
            return Err(refused("is empty"));
        }
        if text.contains('\0') {
            return Err(refused("holds a NUL character"));
        }
        if text.len() > PATH_BYTES_MAX {
            return Err(refused("is too long"));
        }
        match text.strip_prefix('~') {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => {
                let home = self.user_home.ok_or(refused("needs a home, and there is none"))?;
                Ok(self.rights.cwd.join(home).join(rest.trim_start_matches('/')))
            }
            Some(_) | None => Ok(self.rights.cwd.join(text)),
        }
    }

    /// The longest beginning of a path that leads somewhere, resolved, and the rest of it.
    fn existing(&self, path: &Path) -> (PathBuf, PathBuf) {
        let longest = path.ancestors().find_map(|ancestor| {
            let resolved = self.fs.canonical(ancestor).ok()?;
            let rest = path.strip_prefix(ancestor).expect("it is an ancestor");
            Some((resolved, rest.to_owned()))
        });
        longest.unwrap_or_else(|| (PathBuf::from("/"), normal(Path::new(""), path)))
    }

    /// Where the first name of `rest` leads if it is a link inside the working directory, with what
    /// follows it. Links elsewhere are not looked at.
    fn link_target(&self, existing: &Path, rest: &Path) -> Option<PathBuf> {
        let inside = existing.strip_prefix(&self.rights.cwd).ok()?;
        let mut steps = rest.components();
        let Component::Normal(first) = steps.next()? else { return None };
        let dir = self.root().ok()?.dir(inside).ok()?;
        if dir.stat(Path::new(first)).ok()?.kind != Kind::Link {
            return None;
        }
        let target = dir.read_link(Path::new(first)).ok()?;
        Some(existing.join(target).join(steps.as_path()))
    }

    /// The path of something new, once the directories on the way to it are there.
    fn make_way(
        &self,
        given: &Given,
        parents: Parents,
        existing: &Path,
        rest: &Path,
    ) -> Result<io::Result<PathBuf>, FileError> {
        if rest.components().any(|step| step == Component::ParentDir) {
            return Err(FileError::Missing { given: given.clone() });
        }
        let new_parents = rest.parent().unwrap_or(Path::new(""));
        let made = match parents {
            _ if new_parents == Path::new("") => Ok(()),
            Parents::MustExist => return Err(FileError::NoParent { given: given.clone() }),
            Parents::Create => self.make_dirs(existing, new_parents),
        };
        Ok(made.map(|()| existing.join(rest)))
    }

    fn make_dirs(&self, existing: &Path, new: &Path) -> io::Result<()> {
        // Above the working directory nothing is made: it is gone itself.
        let inside =
            existing.strip_prefix(&self.rights.cwd).map_err(|_| io::ErrorKind::NotFound)?;
        let mut dir = self.root()?.dir(inside)?;
        for name in new.components() {
            let name = Path::new(name.as_os_str());
            match dir.make_dir(name, 0o777) {
                Ok(()) => dir.sync()?,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => (),
                Err(error) => return Err(error),
            }
            dir = dir.dir(name)?;
        }
        Ok(())
    }

    /// Holds the directory of a path that was decided on.
    fn spot(&self, resolved: PathBuf) -> io::Result<Spot> {
        let root = self.root()?;
        let inside = self.inside(&resolved);
        let (parent, name) = match (inside.parent(), inside.file_name()) {
            (Some(parent), Some(name)) => (root.dir(parent)?, name.to_owned()),
            (None, _) | (_, None) => (root, ".".into()),
        };
        Ok(Spot { parent, name, resolved })
    }
}

/// Decides and acts until nothing changes in between, which somebody could prevent for ever.
fn settled<T>(
    given: &Given,
    mut decide_and_act: impl FnMut() -> Result<io::Result<T>, FileError>,
) -> Result<T, FileError> {
    let mut unsettled = FileError::Unsettled { given: given.clone() };
    for _ in 0..PATH_DECISIONS_MAX {
        match decide_and_act()? {
            Ok(value) => return Ok(value),
            Err(error) => {
                let changed = LinkRefused::is(&error) || error.kind() == io::ErrorKind::NotFound;
                unsettled = FileError::of(given, &error);
                if !changed {
                    break;
                }
            }
        }
    }
    Err(unsettled)
}

impl std::fmt::Debug for Paths<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Paths").field("rights", &self.rights).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Spot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Spot").field(&self.resolved).finish()
    }
}
