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
use crate::policy::{Level, PathRule, Rights, Side, normal};
use crate::world::{Dir, Fs, Kind, LinkRefused};

/// The paths of one agent's call.
pub struct Paths<'a> {
    pub fs: &'a dyn Fs,
    pub rights: &'a Rights,
    /// The tool that is called: some have rights of their own.
    pub tool: &'a str,
    /// What `~` is.
    pub user_home: Option<&'a Path>,
    /// What may be changed beyond the agent's rights because somebody confirmed it, by paths without
    /// links: a path that leads elsewhere by now is not among them.
    pub confirmed: &'a [PathBuf],
}

/// A name in a directory that is held open, after the decision that it may be used. Whatever is done
/// to the name through the handle stays in that directory.
pub struct Spot {
    pub parent: Arc<dyn Dir>,
    /// `.` for the root of the disk itself.
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
        settled(given, || match self.permitted(given, Side::Read)? {
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
            let resolved = match self.permitted(given, Side::Write)? {
                Resolved::There(resolved) => Ok(resolved),
                Resolved::Missing { existing, rest } => {
                    self.make_way(given, parents, &existing, &rest)?
                }
            };
            Ok(resolved.and_then(|resolved| self.spot(resolved)).and_then(|spot| act(&spot)))
        })
    }

    /// What the rules say to a path as it leads now, and where that is, without using it. An error that
    /// is no refusal is what whoever uses it will meet.
    pub fn examine(&self, given: &Given, side: Side) -> Result<(PathRule, PathBuf), FileError> {
        let (rule, resolved) = self.resolve(given, side)?;
        let leads_to = match resolved {
            Resolved::There(resolved) => resolved,
            Resolved::Missing { existing, rest } => normal(&existing, &rest),
        };
        Ok((rule, leads_to))
    }

    /// A directory that was decided on, reached from the root of the disk without a link: were one put
    /// in its place, it would lead elsewhere.
    pub fn dir(&self, resolved: &Path) -> io::Result<Arc<dyn Dir>> {
        self.top()?.dir(way_to(resolved)?)
    }

    /// The root of the disk.
    pub fn top(&self) -> io::Result<Arc<dyn Dir>> {
        self.fs.dir(Path::new("/"))
    }

    /// The decision about a path without links.
    fn decide(&self, given: &Given, side: Side, resolved: &Path) -> Result<PathRule, FileError> {
        let given = || given.clone();
        match self.rights.path(self.tool, side, resolved) {
            PathRule::Confirm if self.confirmed.iter().any(|path| path == resolved) => {
                Ok(PathRule::Free)
            }
            rule @ (PathRule::Free | PathRule::Allowance | PathRule::Confirm) => Ok(rule),
            PathRule::Blocked => Err(FileError::Closed { given: given() }),
            PathRule::Outside => Err(match self.rights.level {
                Level::Sandboxed => FileError::Outside { given: given() },
                Level::Yolo | Level::Trusted => FileError::NotOpen { given: given() },
            }),
            PathRule::NotWritable => Err(FileError::NotWritable { given: given() }),
        }
    }

    /// Where a path leads, if it may be used now.
    fn permitted(&self, given: &Given, side: Side) -> Result<Resolved, FileError> {
        match self.resolve(given, side)? {
            (PathRule::Confirm, _) => Err(FileError::Unconfirmed { given: given.clone() }),
            (_, resolved) => Ok(resolved),
        }
    }

    /// Follows the links of a path as far as it exists. An error says nothing about what is outside,
    /// not even whether it exists.
    fn resolve(&self, given: &Given, side: Side) -> Result<(PathRule, Resolved), FileError> {
        let mut path = self.absolute(given)?;
        self.check_turns(given, &path)?;
        for _ in 0..LINKS_FOLLOWED_MAX {
            let error = match self.fs.canonical(&path) {
                Ok(resolved) => {
                    let rule = self.decide(given, side, &resolved)?;
                    return Ok((rule, Resolved::There(resolved)));
                }
                Err(error) => error,
            };
            let (existing, rest) = self.existing(&path);
            let rule = self.decide(given, side, &normal(&existing, &rest))?;
            match self.link_target(&existing, &rest) {
                // It leads to nothing, or to nothing that can be reached; where to is decided on.
                Some(target) => path = target,
                None if error.kind() == io::ErrorKind::NotFound => {
                    return Ok((rule, Resolved::Missing { existing, rest }));
                }
                None => return Err(FileError::of(given, &error)),
            }
        }
        Err(FileError::Circle { given: given.clone() })
    }

    /// Refuses a path that turns back in a directory which may not be read: whether it leads on from
    /// there would tell what is in it.
    fn check_turns(&self, given: &Given, path: &Path) -> Result<(), FileError> {
        let mut before = PathBuf::new();
        let mut is_named = false;
        for step in path.components() {
            // What is reached by turning back is there, whoever asks.
            if step == Component::ParentDir && is_named {
                let (existing, rest) = self.existing(&before);
                self.decide(given, Side::Read, &normal(&existing, &rest))?;
            }
            is_named = matches!(step, Component::Normal(_));
            before.push(step);
        }
        Ok(())
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

    /// Where the first name of `rest` leads if it is a link in a directory that the agent may use, with
    /// what follows it. Links elsewhere are not looked at.
    fn link_target(&self, existing: &Path, rest: &Path) -> Option<PathBuf> {
        let mut steps = rest.components();
        let Component::Normal(first) = steps.next()? else { return None };
        if self.rights.path(self.tool, Side::Read, existing) != PathRule::Free {
            return None;
        }
        let dir = self.dir(existing).ok()?;
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
        let mut dir = self.dir(existing)?;
        let mut path = existing.to_owned();
        for name in new.components() {
            let name = Path::new(name.as_os_str());
            path.push(name);
            // Each is a change of its own: on the way to where it may write, an agent may not.
            match self.rights.path(self.tool, Side::Write, &path) {
                PathRule::Free | PathRule::Allowance => (),
                // Whoever confirmed what lies in it saw that it is not there.
                PathRule::Confirm if self.confirmed.iter().any(|it| it.starts_with(&path)) => (),
                _ => return Err(io::ErrorKind::NotFound.into()),
            }
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
        let (parent, name) = match (resolved.parent(), resolved.file_name()) {
            (Some(parent), Some(name)) => (self.dir(parent)?, name.to_owned()),
            (None, _) | (_, None) => (self.top()?, ".".into()),
        };
        Ok(Spot { parent, name, resolved })
    }
}

/// The way from the root of the disk.
pub(super) fn way_to(resolved: &Path) -> io::Result<&Path> {
    resolved.strip_prefix("/").map_err(|_| io::ErrorKind::InvalidInput.into())
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
