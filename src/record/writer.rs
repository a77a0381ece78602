//! The task that writes: takes notes into the story, and replaces the file by what the story has come
//! to, at most so often. While the disk fails the file stays as it is, and the story goes on in memory,
//! within its bound: once there is room again all of it is written.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::story::{State, Story};
use super::{Shared, Waiting, place, temporary};
use crate::limits::{
    RECORD_BYTES_MAX, RECORD_NOTES_AT_ONCE_MAX, RECORD_WRITE_EVERY, RECORD_WRITE_REST,
};

pub(super) struct Writer {
    shared: Arc<Shared>,
    waiting: mpsc::Receiver<Waiting>,
    /// None while it is being written.
    story: Option<Story>,
    /// How it went the last time.
    health: Health,
}

/// Whether the disk took it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Health {
    Works,
    Fails,
}

impl Writer {
    pub(super) fn new(shared: Arc<Shared>, waiting: mpsc::Receiver<Waiting>, story: Story) -> Self {
        Self { shared, waiting, story: Some(story), health: Health::Works }
    }

    /// Writes until it is told to close.
    pub(super) async fn run(mut self) {
        let mut notes = Vec::with_capacity(RECORD_NOTES_AT_ONCE_MAX);
        self.write(State::GoesOn).await;
        let mut next = Instant::now();
        let mut is_written = self.health == Health::Works;
        loop {
            let close = self.shared.close.clone();
            tokio::select! {
                biased;
                () = close.cancelled(), if !self.waiting.is_closed() => self.waiting.close(),
                () = sleep_until(next), if !is_written => {
                    let begun = Instant::now();
                    self.write(State::GoesOn).await;
                    is_written = self.health == Health::Works;
                    // The longer it takes, the seldomer it is done.
                    let rest = begun.elapsed().saturating_mul(RECORD_WRITE_REST);
                    next = Instant::now() + RECORD_WRITE_EVERY.max(rest);
                }
                taken = self.waiting.recv_many(&mut notes, RECORD_NOTES_AT_ONCE_MAX) => {
                    if taken == 0 || self.take(&mut notes) == State::Cut {
                        break;
                    }
                    is_written = false;
                }
            }
        }
        let state =
            if self.shared.is_cut.load(Ordering::Relaxed) { State::Cut } else { State::Whole };
        self.write(state).await;
        // Nobody has to wait for room any more, and nothing is taken.
        self.shared.is_cut.store(true, Ordering::Relaxed);
    }

    fn take(&mut self, notes: &mut Vec<Waiting>) -> State {
        let story = self.story.as_mut().expect("it is only away while it is written");
        // Their room is held until the bound was looked at: whoever waits for it sees what came of that.
        let mut rooms = Vec::with_capacity(notes.len());
        for Waiting { note, room } in notes.drain(..) {
            let unneeded = story.on(note);
            self.shared.files_room.fetch_add(unneeded, Ordering::Relaxed);
            rooms.push(room);
        }
        if story.bytes > RECORD_BYTES_MAX {
            self.shared.is_cut.store(true, Ordering::Relaxed);
            tracing::warn!("the recording ends here: it holds {RECORD_BYTES_MAX} bytes");
        }
        drop(rooms);
        let is_cut = self.shared.is_cut.load(Ordering::Relaxed) && self.waiting.is_empty();
        if is_cut { State::Cut } else { State::GoesOn }
    }

    /// Replaces the file, off the async threads.
    async fn write(&mut self, state: State) {
        let story = self.story.take().expect("it is written once at a time");
        let shared = Arc::clone(&self.shared);
        let job = move || {
            let text = story.text(state);
            let written = place(&shared.path).and_then(|(dir, name)| {
                shared.world.fs.dir(dir)?.replace(name, text.as_bytes(), 0o600, &temporary(name))
            });
            (story, written)
        };
        let (story, written) = self.shared.world.blocking.call(job).await;
        self.story = Some(story);
        let path = self.shared.path.display();
        match (written, self.health) {
            // A change is said once.
            (Ok(()), Health::Works) | (Err(_), Health::Fails) => {}
            (Ok(()), Health::Fails) => {
                tracing::info!(%path, "the recording could be written again");
                self.health = Health::Works;
            }
            (Err(error), Health::Works) => {
                tracing::warn!(%path, %error, "the recording cannot be written now");
                self.health = Health::Fails;
            }
        }
        if state != State::GoesOn && self.health == Health::Fails {
            tracing::warn!(%path, "the recording lacks its end: it cannot be written");
        }
    }
}
