//! Blocking work on tokio's pool of threads. Never cancels a job: SQLite in the middle of a commit
//! has to reach its end.

use crate::world::{Blocking, BoxFuture};

pub(super) struct Threads;

impl Blocking for Threads {
    fn run(&self, job: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()> {
        // Started here and not in the future, which may be dropped before it is polled.
        let running = tokio::task::spawn_blocking(job);
        Box::pin(async move {
            let Err(error) = running.await else { return };
            match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The runtime is shutting down and will poll nobody again.
                Err(_cancelled) => std::future::pending().await,
            }
        })
    }
}
