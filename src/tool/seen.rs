//! What an agent has read of which file, so that it does not overwrite what somebody else wrote
//! since. Kept in memory, for a bounded number of files: an agent that comes back from disk has read
//! nothing yet. It never looks at a file itself.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher};
use std::path::Path;
use std::sync::Arc;

use arc_swap::ArcSwap;
use jiff::Timestamp;

use crate::limits::FILES_SEEN_MAX;
use crate::world::Stat;

/// What stands for the content of a file at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    len: u64,
    modified: Timestamp,
    hash: u64,
}

impl Stamp {
    /// Of a file with this content.
    pub fn of(stat: &Stat, content: &[u8]) -> Self {
        // Without a key of its own, this hasher gives the same number for the same bytes as long as
        // the process lives, which is as long as a stamp does.
        let mut hasher = DefaultHasher::new();
        hasher.write(content);
        Self { len: content.len() as u64, modified: stat.modified, hash: hasher.finish() }
    }

    pub fn modified(&self) -> Timestamp {
        self.modified
    }

    /// A file that was only touched, or changed and changed back, is the same to its reader.
    fn is_same_content(&self, other: &Self) -> bool {
        (self.len, self.hash) == (other.len, other.hash)
    }
}

/// The file is not what the agent read, by this time of modification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it was changed at {modified:.3}, after you read it: read it again first")]
pub struct Stale {
    pub modified: Timestamp,
}

/// The files one agent has read. Calls that run at the same time share it.
#[derive(Debug, Default)]
pub struct Seen {
    book: ArcSwap<Book>,
}

#[derive(Clone, Debug, Default)]
struct Book {
    stamps: BTreeMap<Arc<Path>, (u64, Stamp)>,
    /// How many were noted so far: the lowest number is the oldest.
    noted: u64,
}

impl Seen {
    /// The agent knows the file at this path, without links, as `stamp`: it read or wrote it.
    pub fn note(&self, resolved: &Path, stamp: Stamp) {
        let path: Arc<Path> = resolved.into();
        self.book.rcu(|book| {
            let mut book = Book::clone(book);
            book.noted += 1;
            book.stamps.insert(Arc::clone(&path), (book.noted, stamp));
            if book.stamps.len() > FILES_SEEN_MAX {
                let oldest = book.stamps.iter().min_by_key(|(_, (noted, _))| *noted);
                let oldest = oldest.map(|(path, _)| Arc::clone(path));
                book.stamps.remove(&oldest.expect("there are too many"));
            }
            book
        });
    }

    /// Whether the file is still what the agent read; one that it never read may be anything.
    pub fn check(&self, resolved: &Path, now: &Stamp) -> Result<(), Stale> {
        match self.book.load().stamps.get(resolved) {
            Some((_, then)) if !then.is_same_content(now) => Err(Stale { modified: now.modified }),
            Some(_) | None => Ok(()),
        }
    }

    /// Whether the agent knows the file as it is now.
    pub fn knows(&self, resolved: &Path, now: &Stamp) -> bool {
        let book = self.book.load();
        book.stamps.get(resolved).is_some_and(|(_, then)| then.is_same_content(now))
    }

    /// The file has another path now, by the agent's own doing.
    pub fn rename(&self, from: &Path, to: &Path) {
        let to: Arc<Path> = to.into();
        self.book.rcu(|book| {
            let mut book = Book::clone(book);
            match book.stamps.remove(from) {
                Some(stamp) => drop(book.stamps.insert(Arc::clone(&to), stamp)),
                None => drop(book.stamps.remove(&to)),
            }
            book
        });
    }

    /// What is at this path now is not what the agent read there, by its own doing.
    pub fn forget(&self, resolved: &Path) {
        self.book.rcu(|book| {
            let mut book = Book::clone(book);
            book.stamps.remove(resolved);
            book
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::Kind;

    fn stamp(content: &str, second: i64) -> Stamp {
        let modified = Timestamp::from_second(second).unwrap();
        let stat = Stat { kind: Kind::File, len: content.len() as u64, mode: 0o644, modified };
        Stamp::of(&stat, content.as_bytes())
    }

    #[test]
    fn a_file_that_changed_since_it_was_read_is_stale() {
        let seen = Seen::default();
        let path = Path::new("/project/a");
        assert_eq!(seen.check(path, &stamp("unread", 1)), Ok(()));
        seen.note(path, stamp("one", 1));
        assert_eq!(seen.check(path, &stamp("one", 1)), Ok(()));
        let stale = Stale { modified: Timestamp::from_second(2).unwrap() };
        assert_eq!(seen.check(path, &stamp("two", 2)), Err(stale), "same length, other bytes");
        assert_eq!(
            stale.to_string(),
            "it was changed at 1970-01-01T00:00:02.000Z, after you read it: read it again first"
        );
        seen.note(path, stamp("two", 2));
        assert_eq!(seen.check(path, &stamp("two", 2)), Ok(()), "what it wrote itself is known");
        seen.forget(path);
        assert_eq!(seen.check(path, &stamp("three", 3)), Ok(()));
    }

    #[test]
    fn a_change_at_the_same_time_is_seen_and_a_mere_touch_is_none() {
        let seen = Seen::default();
        let path = Path::new("/project/a");
        seen.note(path, stamp("one", 1));
        assert!(seen.check(path, &stamp("eno", 1)).is_err());
        assert_eq!(seen.check(path, &stamp("one", 9)), Ok(()));
    }

    #[test]
    fn the_file_read_longest_ago_is_forgotten_first() {
        let seen = Seen::default();
        let path = |index: usize| format!("/project/{index}");
        for index in 0..FILES_SEEN_MAX {
            seen.note(Path::new(&path(index)), stamp("old", 1));
        }
        seen.note(Path::new(&path(0)), stamp("old", 1));
        seen.note(Path::new("/project/new"), stamp("old", 1));
        let is_stale = |path: &str| seen.check(Path::new(path), &stamp("new", 2)).is_err();
        assert!(!is_stale(&path(1)), "the second was the oldest");
        assert!(is_stale(&path(0)) && is_stale(&path(2)) && is_stale("/project/new"));
        assert_eq!(seen.book.load().stamps.len(), FILES_SEEN_MAX);
    }
}
