//! A walk through a directory tree, in the order of its paths, along directory handles.
//! Never follows a link, never holds more than one directory of the tree open besides its top, and
//! ends at its bounds.

use std::path::{Path, PathBuf};

use super::error::FileError;
use super::workplace::Site;
use crate::limits::{WALK_DEPTH_MAX, WALK_ENTRIES_MAX};
use crate::world::{Dir, Entry, Kind};

/// What the walk does after something was visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Goes into it, if it is a directory.
    Enter,
    Pass,
    Stop,
}

/// Something in the tree, by its path from the top.
#[derive(Debug)]
pub struct Found {
    pub path: PathBuf,
    pub kind: Kind,
}

/// What the walk had to leave out.
#[derive(Debug, Default)]
pub struct Walked {
    /// Directories that could not be opened.
    pub unreadable: Vec<PathBuf>,
    /// Directories that lie too deep.
    pub too_deep: Vec<PathBuf>,
    /// There was more than a walk looks at.
    pub is_cut: bool,
}

/// Where a walk begins.
#[derive(Clone, Copy)]
pub struct Top<'a> {
    pub dir: &'a dyn Dir,
    /// Its path, without links.
    pub resolved: &'a Path,
}

/// Visits everything below `top`, whose entries are given, a directory before what is in it. What is
/// closed to the agent is not there for it.
pub fn walk(
    site: &Site,
    top: Top<'_>,
    entries: Vec<Entry>,
    mut visit: impl FnMut(&Found) -> Result<Step, FileError>,
) -> Result<Walked, FileError> {
    let mut walked = Walked::default();
    let mut ahead: Vec<Found> = Vec::new();
    push(&mut ahead, Path::new(""), entries);
    let mut visited = 0;
    while let Some(found) = ahead.pop() {
        site.check_wanted()?;
        if site.is_closed(&top.resolved.join(&found.path)) {
            continue;
        }
        if visited == WALK_ENTRIES_MAX {
            walked.is_cut = true;
            break;
        }
        visited += 1;
        match (visit(&found)?, found.kind) {
            (Step::Stop, _) => break,
            (Step::Enter, Kind::Dir) => (),
            (Step::Enter | Step::Pass, _) => continue,
        }
        if found.path.components().count() >= WALK_DEPTH_MAX {
            walked.too_deep.push(found.path);
            continue;
        }
        match top.dir.dir(&found.path).and_then(|dir| dir.list()) {
            Ok(entries) => push(&mut ahead, &found.path, entries),
            Err(_) => walked.unreadable.push(found.path),
        }
    }
    Ok(walked)
}

/// Puts sorted entries on the stack such that the first comes off first.
fn push(ahead: &mut Vec<Found>, dir: &Path, entries: Vec<Entry>) {
    let found = |entry: Entry| Found { path: dir.join(entry.name), kind: entry.kind };
    ahead.extend(entries.into_iter().rev().map(found));
}
