//! SIGTERM and SIGINT of this process. Once opened, neither ends the process by itself any more,
//! for as long as it lives: whoever opens this has to ask for them. SIGHUP does until it is asked for.

use std::io;
use std::sync::Arc;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Semaphore;
use tokio_util::task::AbortOnDropHandle;

use crate::world::{BoxFuture, Signals};

pub(super) struct StopSignals {
    /// One permit for each signal that came and that nobody has seen: a second caller waits for a
    /// signal of its own, and dropping a wait loses none.
    unseen: Arc<Semaphore>,
    _counting: AbortOnDropHandle<()>,
}

impl StopSignals {
    pub(super) fn open() -> io::Result<Self> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let unseen = Arc::new(Semaphore::new(0));
        let count = Arc::clone(&unseen);
        let counting = tokio::spawn(async move {
            loop {
                tokio::select! {
                    // Either order would do: both ask for the same.
                    biased;
                    _ = terminate.recv() => (),
                    _ = interrupt.recv() => (),
                }
                count.add_permits(1);
            }
        });
        Ok(Self { unseen, _counting: AbortOnDropHandle::new(counting) })
    }
}

impl Signals for StopSignals {
    fn stop(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let seen = self.unseen.acquire().await;
            seen.expect("the semaphore is never closed").forget();
        })
    }

    fn hung_up(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            match signal(SignalKind::hangup()) {
                Ok(mut hung_up) => drop(hung_up.recv().await),
                // It ends the program, as it did before.
                Err(_) => std::future::pending().await,
            }
        })
    }
}
