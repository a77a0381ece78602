//! Blocking work: virtual time passes, the job is done at one instant, and time passes again. So
//! others run between asking and doing, and between doing and being told, as beside a thread.
//! Never on a thread: it would end in a random order.

use std::cell::Cell;
use std::time::Duration;

use nexus3::world::{Blocking, BoxFuture};

/// How long a job takes in virtual time before what it does, whatever that is.
const BEFORE: Duration = Duration::from_millis(1);
/// And after it. Both are a tick of the clock: nothing shorter passes in virtual time.
const AFTER: Duration = Duration::from_millis(1);

thread_local! {
    /// How many jobs this thread has begun, and which of them it is doing.
    static JOBS: Cell<u64> = const { Cell::new(0) };
    static JOB: Cell<Option<u64>> = const { Cell::new(None) };
}

/// The job that is done just now, by a number that no other job of a run has. All that one job does
/// is done for whoever asked for it.
pub fn current_job() -> Option<u64> {
    JOB.get()
}

/// Ends the job also where it panics.
struct Doing;

impl Doing {
    fn begin() -> Self {
        JOBS.set(JOBS.get() + 1);
        JOB.set(Some(JOBS.get()));
        Self
    }
}

impl Drop for Doing {
    fn drop(&mut self) {
        JOB.set(None);
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Inline;

impl Blocking for Inline {
    fn run(&self, job: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()> {
        // A task of its own, because the future may be dropped before the job is done.
        let running = tokio::spawn(async move {
            tokio::time::sleep(BEFORE).await;
            {
                let _doing = Doing::begin();
                job();
            }
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
