//! How often a reader looks for what waits for it. What comes now and then is handed on at once; of
//! a flood many frames go into one write, for a write costs more than hundreds of frames.
//! It never holds anything back for longer than one pause.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::time::{Instant, Sleep, sleep_until};

use crate::limits::{STREAM_HURRIED_LOOKS_MAX, STREAM_PAUSE};

#[derive(Debug)]
pub(super) struct Pace {
    /// When the last look ended that found something.
    found_at: Option<Instant>,
    /// Looks in a row that found something within a pause of the one before.
    hurried: u32,
    /// The look at hand has found something.
    found: bool,
    pause: Option<Pin<Box<Sleep>>>,
}

/// What a reader does once nothing waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    /// It is woken by the next event.
    UntilWoken,
    /// It looks again after a pause.
    Pause,
}

impl Pace {
    pub(super) fn new() -> Self {
        Self { found_at: None, hurried: 0, found: false, pause: None }
    }

    /// Ready when it is time to look.
    pub(super) fn poll_time(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(pause) = &mut self.pause {
            ready!(pause.as_mut().poll(cx));
            self.pause = None;
        }
        Poll::Ready(())
    }

    pub(super) fn found(&mut self) {
        self.found = true;
    }

    /// How it would rest now if nothing waited for it.
    pub(super) fn rest(&self) -> Rest {
        let flooded = self.found && self.hurried >= STREAM_HURRIED_LOOKS_MAX;
        if flooded { Rest::Pause } else { Rest::UntilWoken }
    }

    /// Nothing waits any more.
    pub(super) fn rested(&mut self) {
        let now = Instant::now();
        let soon = self.found_at.is_some_and(|at| now < at + STREAM_PAUSE);
        match self.rest() {
            Rest::Pause => self.pause = Some(Box::pin(sleep_until(now + STREAM_PAUSE))),
            Rest::UntilWoken if !soon => self.hurried = 0,
            // A look that finds nothing says nothing before the time of a pause is over.
            Rest::UntilWoken => self.hurried += u32::from(self.found),
        }
        if std::mem::take(&mut self.found) {
            self.found_at = Some(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    /// Looks, finds something and then nothing more.
    fn look(pace: &mut Pace) -> Rest {
        pace.found();
        let rest = pace.rest();
        pace.rested();
        rest
    }

    fn is_time(pace: &mut Pace) -> bool {
        std::future::poll_fn(|cx| pace.poll_time(cx)).now_or_never().is_some()
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_is_looked_at_after_a_pause_and_what_is_calm_at_once() {
        let mut pace = Pace::new();
        for _ in 0..=STREAM_HURRIED_LOOKS_MAX {
            assert_eq!(look(&mut pace), Rest::UntilWoken);
            // The connection looks again before it lets go; that is not calm.
            pace.rested();
        }
        for _ in 0..3 {
            assert_eq!(look(&mut pace), Rest::Pause);
            assert!(!is_time(&mut pace));
            tokio::time::sleep(STREAM_PAUSE).await;
            assert!(is_time(&mut pace));
        }
        // Nothing came during a pause.
        assert_eq!(pace.rest(), Rest::UntilWoken);
        pace.rested();
        assert_eq!(look(&mut pace), Rest::UntilWoken);
        assert!(is_time(&mut pace));
    }

    #[tokio::test(start_paused = true)]
    async fn what_comes_once_a_pause_is_never_held_back() {
        let mut pace = Pace::new();
        for _ in 0..10 * STREAM_HURRIED_LOOKS_MAX {
            assert_eq!(look(&mut pace), Rest::UntilWoken);
            tokio::time::sleep(STREAM_PAUSE).await;
        }
    }
}
