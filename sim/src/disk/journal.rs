//! Changes of names that are not yet durable, in the order in which they were made.
//! Pure: `state` applies what comes out of it.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};

use super::crash::{Chance, CrashMode, below};
use super::state::NodeId;

/// All that one operation does to names; durable whole or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Renaming {
    pub(super) entries: Vec<Entry>,
}

/// What a name in a directory leads to from now on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) dir: NodeId,
    pub(super) name: OsString,
    pub(super) to: Option<NodeId>,
}

#[derive(Debug, Default)]
pub(super) struct Journal {
    pending: Vec<Renaming>,
}

impl Journal {
    pub(super) fn push(&mut self, renaming: Renaming) {
        self.pending.push(renaming);
    }

    /// Every file or directory a pending change could still bring to light.
    pub(super) fn nodes(&self) -> impl Iterator<Item = NodeId> {
        self.pending.iter().flat_map(|renaming| &renaming.entries).filter_map(|entry| entry.to)
    }

    /// Drops what is pending about one name: its owner says what it leads to, now and durably.
    pub(super) fn forget(&mut self, dir: NodeId, name: &OsStr) {
        for renaming in &mut self.pending {
            renaming.entries.retain(|entry| entry.dir != dir || entry.name != name);
        }
        self.pending.retain(|renaming| !renaming.entries.is_empty());
    }

    /// Drops what is about directories that are gone for good.
    pub(super) fn retain(&mut self, dirs: &BTreeSet<NodeId>) {
        for renaming in &mut self.pending {
            renaming.entries.retain(|entry| dirs.contains(&entry.dir));
        }
        self.pending.retain(|renaming| !renaming.entries.is_empty());
    }

    /// Takes out what a sync of `dir` makes durable: the changes in it, and what has to come before
    /// them. A rename from another directory is one change in both, so what happened earlier in
    /// that other directory goes with it; without that a name could come back that was moved away.
    pub(super) fn take(&mut self, dir: NodeId) -> Vec<Renaming> {
        let mut touched = BTreeSet::from([dir]);
        let mut taken = Vec::new();
        let mut left = Vec::new();
        for renaming in self.pending.drain(..).rev() {
            if renaming.entries.iter().any(|entry| touched.contains(&entry.dir)) {
                touched.extend(renaming.entries.iter().map(|entry| entry.dir));
                taken.push(renaming);
            } else {
                left.push(renaming);
            }
        }
        left.reverse();
        taken.reverse();
        self.pending = left;
        taken
    }

    /// What the power cut lets through.
    pub(super) fn crash(&mut self, chance: &mut Chance<'_>, mode: CrashMode) -> Vec<Renaming> {
        let mut pending = std::mem::take(&mut self.pending);
        match mode {
            CrashMode::LoseAll => pending.clear(),
            CrashMode::KeepAll => (),
            CrashMode::Torn => {
                let count = below(chance, pending.len() as u64 + 1);
                pending.truncate(usize::try_from(count).expect("it is at most a length"));
            }
        }
        pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(dir: NodeId, name: &str, to: Option<NodeId>) -> Entry {
        Entry { dir, name: name.into(), to }
    }

    fn made(dir: NodeId, name: &str, to: NodeId) -> Renaming {
        Renaming { entries: vec![entry(dir, name, Some(to))] }
    }

    fn moved(from: NodeId, to: NodeId, name: &str, node: NodeId) -> Renaming {
        Renaming { entries: vec![entry(from, name, None), entry(to, name, Some(node))] }
    }

    fn journal(pending: &[Renaming]) -> Journal {
        Journal { pending: pending.to_vec() }
    }

    #[test]
    fn a_sync_takes_a_directorys_changes_and_what_they_rest_on() {
        let all = [made(1, "x", 10), made(3, "z", 30), moved(1, 2, "x", 10), made(1, "y", 11)];
        let mut some = journal(&all);
        assert_eq!(some.take(2), [all[0].clone(), all[2].clone()]);
        assert_eq!(some.pending, [all[1].clone(), all[3].clone()]);
        assert_eq!(some.take(2), []);
    }

    #[test]
    fn a_crash_keeps_a_prefix() {
        let all = [made(1, "x", 10), made(3, "z", 30), moved(1, 2, "x", 10)];
        let kept = |draw: u64, mode| {
            let mut journal = journal(&all);
            let kept = journal.crash(&mut || draw, mode);
            assert_eq!(journal.pending, [], "the rest is gone");
            kept
        };
        assert_eq!(kept(0, CrashMode::LoseAll), []);
        assert_eq!(kept(0, CrashMode::KeepAll), all);
        for count in 0..=3 {
            assert_eq!(kept(count as u64, CrashMode::Torn), all[..count]);
        }
    }
}
