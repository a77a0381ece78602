//! The locks of SQLite: who holds which level of which database. Apart from a file's exclusive lock,
//! as on the real disk, where they are of another kind and do not see each other.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    None,
    Shared,
    Reserved,
    Pending,
    Exclusive,
}

/// One holder of locks: a number for the open file, and the process's generation, whose end is the
/// end of its locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Holder {
    pub(super) generation: u64,
    pub(super) number: u64,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Busy;

#[derive(Debug, Default)]
pub(super) struct Levels {
    held: BTreeMap<PathBuf, BTreeMap<Holder, Level>>,
}

impl Levels {
    /// Raises `holder` to `wanted`, or as far towards it as SQLite wants it to stay when others are
    /// in the way: pending, which lets no new reader in while the last ones leave.
    pub(super) fn lock(&mut self, path: &Path, holder: Holder, wanted: Level) -> Result<(), Busy> {
        let holders = self.held.entry(path.to_owned()).or_default();
        holders.retain(|other, _| other.generation == holder.generation);
        let others = holders.iter().filter(|(other, _)| **other != holder);
        let highest = others.map(|(_, level)| *level).max().unwrap_or(Level::None);
        let own = holders.get(&holder).copied().unwrap_or(Level::None);
        let (reached, result) = match wanted {
            Level::None | Level::Shared if highest >= Level::Pending => (own, Err(Busy)),
            Level::Reserved | Level::Pending | Level::Exclusive if highest >= Level::Reserved => {
                (own, Err(Busy))
            }
            Level::Exclusive if highest >= Level::Shared => (Level::Pending, Err(Busy)),
            Level::None | Level::Shared | Level::Reserved | Level::Pending | Level::Exclusive => {
                (wanted, Ok(()))
            }
        };
        holders.insert(holder, reached.max(own));
        result
    }

    /// Lowers `holder` to `level`.
    pub(super) fn unlock(&mut self, path: &Path, holder: Holder, level: Level) {
        let Some(holders) = self.held.get_mut(path) else {
            return;
        };
        match level {
            Level::None => {
                holders.remove(&holder);
            }
            Level::Shared | Level::Reserved | Level::Pending | Level::Exclusive => {
                holders.entry(holder).and_modify(|own| *own = (*own).min(level));
            }
        }
        if holders.is_empty() {
            self.held.remove(path);
        }
    }

    /// Whether anybody in that process means to write.
    pub(super) fn is_reserved(&self, path: &Path, generation: u64) -> bool {
        let holders = self.held.get(path).into_iter().flatten();
        let mut levels = holders.filter(|(holder, _)| holder.generation == generation);
        levels.any(|(_, level)| *level >= Level::Reserved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_writer_waits_for_readers_and_lets_no_new_one_in() {
        let path = Path::new("/db");
        let [a, b, c] = [1, 2, 3].map(|number| Holder { generation: 0, number });
        let mut levels = Levels::default();
        assert_eq!(levels.lock(path, a, Level::Shared), Ok(()));
        assert_eq!(levels.lock(path, b, Level::Shared), Ok(()));
        assert_eq!(levels.lock(path, a, Level::Reserved), Ok(()));
        assert_eq!(levels.lock(path, b, Level::Reserved), Err(Busy));
        assert!(levels.is_reserved(path, 0));
        assert_eq!(levels.lock(path, a, Level::Exclusive), Err(Busy));
        assert_eq!(levels.lock(path, c, Level::Shared), Err(Busy));
        levels.unlock(path, b, Level::None);
        assert_eq!(levels.lock(path, a, Level::Exclusive), Ok(()));
        levels.unlock(path, a, Level::Shared);
        assert_eq!(levels.lock(path, c, Level::Shared), Ok(()));
        assert!(!levels.is_reserved(path, 0));
    }

    #[test]
    fn locks_end_with_their_process() {
        let path = Path::new("/db");
        let mut levels = Levels::default();
        let before = Holder { generation: 0, number: 1 };
        assert_eq!(levels.lock(path, before, Level::Shared), Ok(()));
        assert_eq!(levels.lock(path, before, Level::Exclusive), Ok(()));
        assert!(!levels.is_reserved(path, 1));
        let after = Holder { generation: 1, number: 2 };
        assert_eq!(levels.lock(path, after, Level::Shared), Ok(()));
    }
}
