//! Places on a disk: everywhere, or below some paths. Compared by components only; whoever asks has
//! resolved the links.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Where something may be. The empty list is nowhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Roots(Option<Vec<PathBuf>>);

impl Roots {
    pub fn anywhere() -> Self {
        Self(None)
    }

    pub fn nowhere() -> Self {
        Self(Some(Vec::new()))
    }

    /// Below any of these absolute paths, which are without links.
    pub fn below(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        let mut paths: Vec<PathBuf> = paths.into_iter().collect();
        // A path comes right before what lies in it, so that one look back finds what is said twice.
        paths.sort();
        let mut roots: Vec<PathBuf> = Vec::with_capacity(paths.len());
        for path in paths {
            if !roots.last().is_some_and(|root| path.starts_with(root)) {
                roots.push(path);
            }
        }
        Self(Some(roots))
    }

    /// The paths, sorted and none in another; `None` is everywhere.
    pub fn paths(&self) -> Option<&[PathBuf]> {
        self.0.as_deref()
    }

    pub fn covers(&self, path: &Path) -> bool {
        match &self.0 {
            None => true,
            Some(roots) => roots.iter().any(|root| path.starts_with(root)),
        }
    }

    /// What both cover.
    #[must_use]
    pub fn meet(&self, other: &Self) -> Self {
        let (Some(own), Some(theirs)) = (&self.0, &other.0) else {
            return if self.0.is_some() { self.clone() } else { other.clone() };
        };
        let covered = |roots: &Self, paths: &[PathBuf]| {
            paths.iter().filter(|path| roots.covers(path)).cloned().collect::<Vec<_>>()
        };
        Self::below(covered(other, own).into_iter().chain(covered(self, theirs)))
    }

    /// Whether the other covers all that this covers.
    pub fn is_within(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(own), Some(_)) => own.iter().all(|root| other.covers(root)),
        }
    }

    pub fn is_nowhere(&self) -> bool {
        self.0.as_ref().is_some_and(Vec::is_empty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn below(paths: &[&str]) -> Roots {
        Roots::below(paths.iter().map(PathBuf::from))
    }

    #[test]
    fn the_meeting_of_two_is_what_both_cover() {
        let met = |these: &[&str], those: &[&str]| below(these).meet(&below(those));
        assert_eq!(met(&["/a"], &["/a/b", "/c"]), below(&["/a/b"]));
        assert_eq!(met(&["/a/b"], &["/a"]), below(&["/a/b"]));
        assert_eq!(met(&["/a"], &["/ab"]), Roots::nowhere(), "names are compared whole");
        assert_eq!(met(&["/"], &["/a", "/b"]), below(&["/a", "/b"]));
        assert_eq!(met(&["/a"], &[]), Roots::nowhere());
        assert_eq!(Roots::anywhere().meet(&below(&["/a"])), below(&["/a"]));
        assert_eq!(below(&["/a"]).meet(&Roots::anywhere()), below(&["/a"]));
        assert_eq!(Roots::anywhere().meet(&Roots::anywhere()), Roots::anywhere());
    }

    #[test]
    fn nowhere_is_within_everything_and_everywhere_only_within_itself() {
        assert!(Roots::nowhere().is_within(&Roots::nowhere()));
        assert!(!Roots::anywhere().is_within(&below(&["/"])), "a list is always a restriction");
        assert!(below(&["/a/b"]).is_within(&below(&["/a"])));
        assert!(!below(&["/a", "/c"]).is_within(&below(&["/a"])));
        assert_eq!(below(&["/a", "/a/b", "/a-b", "/a"]), below(&["/a", "/a-b"]));
    }
}
