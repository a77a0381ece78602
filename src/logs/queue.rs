//! What waits to be written: bounded in entries and bytes. What does not fit is dropped and counted
//! per file, and the count travels with the next entry of that file that does fit.
//! Its calls never wait and never fail.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use super::discard::Discard;
use crate::id::AgentId;
use crate::limits::{LOG_LACKING_FILES_MAX, LOG_QUEUE_BYTES_MAX, LOG_QUEUE_ENTRIES_MAX};

/// One file of one agent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) agent: AgentId,
    pub(super) file: LogFile,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LogFile {
    Context,
    Verbose,
    Raw,
}

impl LogFile {
    pub(super) const ALL: [Self; 3] = [Self::Context, Self::Verbose, Self::Raw];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Context => "context.md",
            Self::Verbose => "verbose.md",
            Self::Raw => "raw.jsonl",
        }
    }
}

/// What the writer has to do, in this order.
#[derive(Debug)]
pub(super) enum Waiting {
    Text(Entry),
    /// The files of an agent are those of another id from now on.
    Carry(Carry),
    /// The files of an id are of nobody's any more, and whoever asks is told how many bytes they have.
    Discard(Discard, AgentId, oneshot::Sender<u64>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Carry {
    pub(super) from: AgentId,
    pub(super) to: AgentId,
}

/// A text for a file.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) place: Place,
    pub(super) text: String,
    /// Entries of the same file that were dropped between the one before and this.
    pub(super) dropped_before: u64,
    /// Given back once the text is written.
    _room: OwnedSemaphorePermit,
}

/// The end that takes entries.
#[derive(Debug)]
pub(super) struct Queue {
    entries: mpsc::Sender<Waiting>,
    room: Arc<Semaphore>,
    dropped: Arc<Dropped>,
}

impl Queue {
    pub(super) fn new() -> (Self, mpsc::Receiver<Waiting>, Arc<Dropped>) {
        let (entries, waiting) = mpsc::channel(LOG_QUEUE_ENTRIES_MAX);
        let dropped = Arc::new(Dropped::default());
        let room = Arc::new(Semaphore::new(LOG_QUEUE_BYTES_MAX));
        (Self { entries, room, dropped: Arc::clone(&dropped) }, waiting, dropped)
    }

    pub(super) fn push(&self, place: Place, text: String) {
        let bytes = u32::try_from(text.len()).unwrap_or(u32::MAX);
        let Ok(room) = Arc::clone(&self.room).try_acquire_many_owned(bytes) else {
            return self.dropped.add(&place, 1);
        };
        let dropped_before = self.dropped.take(&place);
        let entry = Entry { place, text, dropped_before, _room: room };
        match self.entries.try_send(Waiting::Text(entry)) {
            Err(TrySendError::Full(Waiting::Text(entry))) => {
                self.dropped.add(&entry.place, entry.dropped_before + 1);
            }
            // The logs are closed: nobody will read a count either.
            Ok(()) | Err(TrySendError::Closed(_) | TrySendError::Full(_)) => {}
        }
    }

    /// Unlike all others, whoever asks this waits for its turn and for the disk.
    pub(super) async fn ask(&self, what: Discard, agent: &AgentId) -> u64 {
        let (reply, bytes) = oneshot::channel();
        let asked = self.entries.send(Waiting::Discard(what, agent.clone(), reply)).await;
        if asked.is_err() {
            return 0;
        }
        bytes.await.unwrap_or(0)
    }

    /// Has all that was said of `from` so far stand in the files of `to`.
    pub(super) fn carry(&self, from: &AgentId, to: &AgentId) {
        let carry = Carry { from: from.clone(), to: to.clone() };
        if let Err(TrySendError::Full(_)) = self.entries.try_send(Waiting::Carry(carry)) {
            tracing::warn!(agent = %to, previously = %from, "the logs stay under the id before");
        }
    }
}

/// How many entries of which file found no room. A map that is replaced, not locked: changing it
/// costs as much as there are files in it, but only what does not fit pays for that.
#[derive(Debug, Default)]
pub(super) struct Dropped {
    counts: ArcSwap<Counts>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) by_place: BTreeMap<Place, u64>,
    /// Of files beyond the number that are remembered by name.
    pub(super) elsewhere: u64,
}

impl Counts {
    /// Forgets the counts of one agent's files, and returns them.
    pub(super) fn take_of(&mut self, agent: &AgentId) -> Vec<(Place, u64)> {
        self.by_place.extract_if(.., |place, _| place.agent == *agent).collect()
    }

    pub(super) fn add(&mut self, place: &Place, entries: u64) {
        let known = self.by_place.len();
        match self.by_place.get_mut(place) {
            Some(count) => *count += entries,
            None if known < LOG_LACKING_FILES_MAX => {
                self.by_place.insert(place.clone(), entries);
            }
            None => self.elsewhere += entries,
        }
    }
}

impl Dropped {
    /// Returns all counts and begins anew.
    pub(super) fn take_all(&self) -> Counts {
        if **self.counts.load() == Counts::default() {
            return Counts::default();
        }
        Arc::unwrap_or_clone(self.counts.swap(Arc::default()))
    }

    fn add(&self, place: &Place, entries: u64) {
        self.counts.rcu(|counts| {
            let mut counts = Counts::clone(counts);
            counts.add(place, entries);
            counts
        });
    }

    fn take(&self, place: &Place) -> u64 {
        if !self.counts.load().by_place.contains_key(place) {
            return 0;
        }
        let before = self.counts.rcu(|counts| {
            let mut counts = Counts::clone(counts);
            counts.by_place.remove(place);
            counts
        });
        before.by_place.get(place).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(agent: &str) -> Place {
        Place { agent: AgentId::parse(agent).unwrap(), file: LogFile::Context }
    }

    #[test]
    fn what_does_not_fit_is_counted_for_its_file_and_told_with_the_next_that_does() {
        let (queue, mut waiting, dropped) = Queue::new();
        for agent in ["a", "b"] {
            queue.push(place(agent), "x".repeat(LOG_QUEUE_BYTES_MAX / 2));
        }
        queue.push(place("a"), "y".to_owned());
        queue.push(place("a"), "y".to_owned());
        queue.push(place("b"), "y".to_owned());
        let mut next = || match waiting.try_recv().unwrap() {
            Waiting::Text(entry) => entry,
            Waiting::Carry(_) | Waiting::Discard(..) => panic!("nobody asked for it"),
        };
        drop(next());
        queue.push(place("a"), "z".to_owned());
        assert_eq!(next().place, place("b"));
        let entry = next();
        assert_eq!((entry.text.as_str(), entry.dropped_before), ("z", 2));
        assert_eq!(dropped.take_all().by_place, [(place("b"), 1)].into());
        assert_eq!(dropped.take_all(), Counts::default());
    }

    #[test]
    fn a_full_number_of_entries_drops_as_full_bytes_do() {
        let (queue, _waiting, dropped) = Queue::new();
        for _ in 0..LOG_QUEUE_ENTRIES_MAX + 3 {
            queue.push(place("a"), "x".to_owned());
        }
        assert_eq!(dropped.take_all().by_place, [(place("a"), 3)].into());
    }

    #[test]
    fn the_files_remembered_by_name_are_bounded() {
        let mut counts = Counts::default();
        for number in 0..LOG_LACKING_FILES_MAX as u64 + 2 {
            counts.add(&place(&format!("a{number}")), 1);
        }
        counts.add(&place("a0"), 1);
        assert_eq!((counts.by_place.len(), counts.elsewhere), (LOG_LACKING_FILES_MAX, 2));
        assert_eq!(counts.by_place[&place("a0")], 2);
    }
}
