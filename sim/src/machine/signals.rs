//! Signals to a simulated process, raised by the scenario.

use std::sync::atomic::{AtomicUsize, Ordering};

use nexus3::world::{BoxFuture, Signals};
use tokio::sync::Notify;

#[derive(Debug, Default)]
pub struct Raised {
    pending: AtomicUsize,
    news: Notify,
}

impl Raised {
    pub fn raise(&self) {
        self.pending.fetch_add(1, Ordering::AcqRel);
        self.news.notify_waiters();
    }

    fn take(&self) -> bool {
        let one_less = |pending: usize| pending.checked_sub(1);
        self.pending.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_less).is_ok()
    }
}

impl Signals for Raised {
    fn stop(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            loop {
                // Registered before the look, so that a signal in between is not missed.
                let news = self.news.notified();
                if self.take() {
                    return;
                }
                news.await;
            }
        })
    }
}
