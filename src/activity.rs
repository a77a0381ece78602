//! Whether anybody uses the server: requests, event streams and turns, counted, and since when there
//! is none. It never decides what follows from that.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

#[derive(Debug)]
pub struct Activity {
    count: AtomicUsize,
    born: Instant,
    /// When the last use ended, in milliseconds since `born`.
    quiet_since_ms: AtomicU64,
    quiet: Notify,
}

/// A use of the server, until it is dropped.
#[derive(Debug)]
pub struct Busy(Arc<Activity>);

impl Activity {
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            count: AtomicUsize::new(0),
            born: Instant::now(),
            quiet_since_ms: AtomicU64::new(0),
            quiet: Notify::new(),
        })
    }

    pub fn begin(self: &Arc<Self>) -> Busy {
        self.count.fetch_add(1, Ordering::AcqRel);
        Busy(Arc::clone(self))
    }

    /// Returns once nobody has used the server for so long.
    pub async fn idle_for(&self, time: Duration) {
        loop {
            let quiet_since = Duration::from_millis(self.quiet_since_ms.load(Ordering::Acquire));
            let until = self.born + quiet_since + time;
            if self.count.load(Ordering::Acquire) > 0 {
                // An end that came in between has left its note.
                self.quiet.notified().await;
            } else if until <= Instant::now() {
                return;
            } else {
                sleep_until(until).await;
            }
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let Self(activity) = self;
        let since = u64::try_from(activity.born.elapsed().as_millis()).unwrap_or(u64::MAX);
        // The time before the count: whoever sees nobody sees since when.
        activity.quiet_since_ms.fetch_max(since, Ordering::AcqRel);
        if activity.count.fetch_sub(1, Ordering::AcqRel) == 1 {
            activity.quiet.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{advance, timeout};

    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    /// Whether the server has been idle for a minute by now.
    async fn is_idle(activity: &Activity) -> bool {
        timeout(Duration::ZERO, activity.idle_for(MINUTE)).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_runs_from_the_end_of_the_last_use() {
        let activity = Activity::new();
        advance(MINUTE / 2).await;
        let (first, second) = (activity.begin(), activity.begin());
        advance(MINUTE * 2).await;
        assert!(!is_idle(&activity).await);
        drop(first);
        advance(MINUTE * 2).await;
        assert!(!is_idle(&activity).await, "one is left");
        drop(second);
        advance(MINUTE / 2).await;
        assert!(!is_idle(&activity).await);
        advance(MINUTE / 2).await;
        assert!(is_idle(&activity).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_use_that_comes_and_goes_meanwhile_counts() {
        let activity = Activity::new();
        let waiting = tokio::spawn({
            let activity = Arc::clone(&activity);
            async move {
                activity.idle_for(MINUTE).await;
                Instant::now()
            }
        });
        advance(MINUTE / 2).await;
        drop(activity.begin());
        let last = Instant::now();
        assert_eq!(waiting.await.unwrap() - last, MINUTE);
    }
}
