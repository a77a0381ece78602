//! The task that writes: takes what waits, appends it off the async threads, and keeps account of
//! what could not be written until the file itself says so.
//! A failing disk costs entries and one warning; it never stops the task.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::append::{Blame, Trouble, append_all};
use super::carry::carry;
use super::discard::{Discard, discard};
use super::queue::{Carry, Counts, Dropped, Entry, Place, Waiting};
use super::text;
use crate::event::iso;
use crate::id::AgentId;
use crate::limits::{
    LOG_BATCH_ENTRIES_MAX, LOG_GATHER, LOG_LACKING_AT_ONCE_MAX, LOG_LACKING_FILES_MAX,
};
use crate::world::World;

pub(super) struct Writer {
    world: World,
    logs: PathBuf,
    waiting: mpsc::Receiver<Waiting>,
    dropped: Arc<Dropped>,
    /// Entries that files lack and do not say so yet.
    lacking: Counts,
    /// Places where something else lies; each is warned of once.
    refused: BTreeSet<Place>,
    disk: Health,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Health {
    Works,
    Fails,
}

/// The text for one file, with the number of entries that are lost if it cannot be written.
#[derive(Debug, Default)]
struct Part {
    text: String,
    entries: u64,
}

impl Writer {
    pub(super) fn new(
        world: World,
        logs: PathBuf,
        waiting: mpsc::Receiver<Waiting>,
        dropped: Arc<Dropped>,
    ) -> Self {
        Self {
            world,
            logs,
            waiting,
            dropped,
            lacking: Counts::default(),
            refused: BTreeSet::new(),
            disk: Health::Works,
        }
    }

    /// Writes until it is told to close, or nobody is left who could say anything.
    pub(super) async fn run(mut self, close: CancellationToken) {
        let mut batch = Vec::with_capacity(LOG_BATCH_ENTRIES_MAX);
        loop {
            let taken = tokio::select! {
                biased;
                () = close.cancelled(), if !self.waiting.is_closed() => {
                    self.waiting.close();
                    continue;
                }
                taken = self.waiting.recv_many(&mut batch, LOG_BATCH_ENTRIES_MAX) => taken,
            };
            self.gather(taken, &mut batch, &close).await;
            self.perform(&mut batch).await;
            if taken == 0 {
                break;
            }
        }
    }

    /// Lets a little more come together: every file that is written to is opened for it. Nobody
    /// waits at the end, and where much comes nobody waits at all.
    async fn gather(&mut self, taken: usize, batch: &mut Vec<Waiting>, close: &CancellationToken) {
        if taken == 0 || taken == LOG_BATCH_ENTRIES_MAX || self.waiting.is_closed() {
            return;
        }
        tokio::select! {
            biased;
            () = close.cancelled() => {}
            () = sleep(LOG_GATHER) => {}
        }
        while batch.len() < LOG_BATCH_ENTRIES_MAX {
            match self.waiting.try_recv() {
                Ok(entry) => batch.push(entry),
                Err(_nothing_waits) => break,
            }
        }
    }

    /// Writes what there is to be written, and carries files to other ids where that comes in between.
    async fn perform(&mut self, batch: &mut Vec<Waiting>) {
        let mut texts = Vec::with_capacity(batch.len());
        for waiting in batch.drain(..) {
            match waiting {
                Waiting::Text(entry) => texts.push(entry),
                Waiting::Carry(files) => {
                    self.write(&mut texts).await;
                    self.carry(files).await;
                }
                Waiting::Discard(what, agent, reply) => {
                    self.write(&mut texts).await;
                    let _ = reply.send(self.discard(what, agent).await);
                }
            }
        }
        self.write(&mut texts).await;
    }

    async fn carry(&mut self, Carry { from, to }: Carry) {
        for (place, lacking) in self.lacking.take_of(&from) {
            self.lacking.add(&Place { agent: to.clone(), ..place }, lacking);
        }
        let (fs, logs) = (Arc::clone(&self.world.fs), self.logs.clone());
        let (old, new) = (from.clone(), to.clone());
        let job = move || carry(fs.as_ref(), &logs, &old, &new);
        if let Err(error) = self.world.blocking.call(job).await {
            tracing::warn!(agent = %to, previously = %from, %error, "the logs stay under the id before");
        }
    }

    async fn discard(&mut self, what: Discard, agent: AgentId) -> u64 {
        if what == Discard::Remove {
            self.lacking.take_of(&agent);
        }
        let (fs, logs) = (Arc::clone(&self.world.fs), self.logs.clone());
        let job = {
            let agent = agent.clone();
            move || discard(fs.as_ref(), &logs, &agent, what)
        };
        self.world.blocking.call(job).await.unwrap_or_else(|error| {
            tracing::warn!(%agent, %error, "the logs of an agent that is gone stay");
            0
        })
    }

    /// Writes a batch, then what other files lack for as long as that works.
    async fn write(&mut self, batch: &mut Vec<Entry>) {
        loop {
            // What found no room came after all that waits: it is told once nothing does.
            let after =
                if self.waiting.is_empty() { self.dropped.take_all() } else { Counts::default() };
            let owed = self.lacking.by_place.len();
            let parts = self.parts(batch, after);
            if parts.is_empty() {
                return;
            }
            let (texts, entries): (Vec<_>, Vec<_>) =
                parts.into_iter().map(|(place, part)| ((place, part.text), part.entries)).unzip();
            let (fs, logs) = (Arc::clone(&self.world.fs), self.logs.clone());
            let job = move || (append_all(fs.as_ref(), &logs, &texts), texts);
            let (results, texts) = self.world.blocking.call(job).await;
            // The room of a batch is given back only now: what is being written counts as waiting.
            batch.clear();
            let places = texts.into_iter().map(|(place, _)| place);
            let disk = self.note(places.zip(entries).zip(results));
            let progress = self.lacking.by_place.len() < owed;
            if disk == Health::Fails || !progress || !self.waiting.is_empty() {
                return;
            }
        }
    }

    /// The texts of a batch by file, in their order, each lost entry told where it is missing.
    fn parts(&mut self, batch: &[Entry], after: Counts) -> BTreeMap<Place, Part> {
        let at = iso(self.world.clock.now());
        let mut parts: BTreeMap<Place, Part> = BTreeMap::new();
        let owing = self.lacking.by_place.keys().filter(|place| !self.refused.contains(place));
        let owing = owing.take(LOG_LACKING_AT_ONCE_MAX).cloned();
        let of_batch = batch.iter().map(|entry| entry.place.clone());
        for place in owing.chain(of_batch).collect::<BTreeSet<_>>() {
            let lacking = self.lacking.by_place.remove(&place).unwrap_or(0);
            parts.entry(place.clone()).or_default().lacks(&place, lacking, &at);
        }
        for entry in batch {
            let part = parts.get_mut(&entry.place).expect("every place of the batch has a part");
            part.lacks(&entry.place, entry.dropped_before, &at);
            part.text.push_str(&entry.text);
            part.entries += 1;
        }
        self.lacking.elsewhere += after.elsewhere;
        for (place, count) in after.by_place {
            match parts.get_mut(&place) {
                Some(part) => part.lacks(&place, count, &at),
                None => self.lacking.add(&place, count),
            }
        }
        parts
    }

    /// Keeps account of what was written and what was not; returns how the disk fared.
    fn note(
        &mut self,
        results: impl Iterator<Item = ((Place, u64), Result<(), Trouble>)>,
    ) -> Health {
        let mut disk = Health::Works;
        for ((place, entries), result) in results {
            match result {
                Ok(()) => {
                    self.refused.remove(&place);
                }
                Err(trouble) => {
                    if trouble.blame == Blame::Disk {
                        disk = Health::Fails;
                    }
                    self.warn(&place, &trouble);
                    self.lacking.add(&place, entries);
                }
            }
        }
        let owing = self.lacking.by_place.keys().any(|place| !self.refused.contains(place));
        if self.disk == Health::Fails && disk == Health::Works && !owing {
            let unnamed = std::mem::take(&mut self.lacking.elsewhere);
            tracing::info!(
                unnamed,
                "the logs of agents are written again; they say what they lack"
            );
            self.disk = Health::Works;
        }
        disk
    }

    /// Says what is wrong, but says it once: of the disk until it works again, of a file until it
    /// can be written.
    fn warn(&mut self, place: &Place, trouble: &Trouble) {
        let path = self.logs.join(place.agent.as_str()).join(place.file.name());
        let (path, error) = (path.display(), &trouble.error);
        match trouble.blame {
            Blame::Disk if self.disk == Health::Works => {
                tracing::warn!(%path, %error, "the logs of agents cannot be written; agents go on");
                self.disk = Health::Fails;
            }
            Blame::File
                if self.refused.len() < LOG_LACKING_FILES_MAX
                    && self.refused.insert(place.clone()) =>
            {
                tracing::warn!(%path, %error, "this log cannot be written; its agent goes on");
            }
            Blame::Disk | Blame::File => {}
        }
    }
}

impl Part {
    fn lacks(&mut self, place: &Place, entries: u64, at: &str) {
        if entries > 0 {
            self.text.push_str(&text::lacking(place.file, at, entries));
            self.entries += entries;
        }
    }
}
