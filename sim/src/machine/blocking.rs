//! Blocking work: virtual time passes, the job is done at one instant, and time passes again. So
//! others run between asking and doing, and between doing and being told, as beside a thread.
//! Never on a thread: it would end in a random order.

use std::time::Duration;

use nexus3::world::{Blocking, BoxFuture};

/// How long a job takes in virtual time before what it does, whatever that is.
const BEFORE: Duration = Duration::from_millis(1);
/// And after it. Both are a tick of the clock: nothing shorter passes in virtual time.
const AFTER: Duration = Duration::from_millis(1);

#[derive(Clone, Copy, Debug, Default)]
pub struct Inline;

impl Blocking for Inline {
    fn run(&self, job: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()> {
        // A task of its own, because the future may be dropped before the job is done.
        let running = tokio::spawn(async move {
            tokio::time::sleep(BEFORE).await;
            job();
            tokio::time::sleep(AFTER).await;
        });
        Box::pin(async move {
            let Err(error) = running.await else { return };
            match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The host has crashed and nobody is polled again.
                Err(_cancelled) => std::future::pending().await,
            }
        })
    }
}
