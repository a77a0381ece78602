//! A disk that takes nothing and does not even fail.

use std::sync::Arc;

use nexus3::limits::{LOG_CLOSE_MAX, LOG_QUEUE_BYTES_MAX, LOG_TEXT_BYTES_MAX};
use nexus3::logs::{Detail, Logs};
use nexus3::world::{Blocking, BoxFuture, World};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::{LOGS, Said, entries, id, log_on, said, simulated};

/// Starts no job before it is allowed to.
struct Stuck(Arc<Semaphore>);

impl Blocking for Stuck {
    fn run(&self, job: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()> {
        let allowed = Arc::clone(&self.0);
        Box::pin(async move {
            allowed.acquire().await.expect("it is never closed").forget();
            job();
        })
    }
}

fn stuck() -> (World, nexus3_sim::disk::Disk, Arc<Semaphore>) {
    let (world, disk) = simulated();
    let allowed = Arc::new(Semaphore::new(0));
    (World { blocking: Arc::new(Stuck(Arc::clone(&allowed))), ..world }, disk, allowed)
}

#[tokio::test(start_paused = true)]
async fn a_stuck_disk_costs_a_bounded_number_of_bytes_and_the_rest_is_counted() {
    let (world, disk, allowed) = stuck();
    let logs = Logs::start(&world, LOGS.into(), Detail::default());
    let large = said(&"x".repeat(LOG_TEXT_BYTES_MAX));
    let fit = LOG_QUEUE_BYTES_MAX / (LOG_TEXT_BYTES_MAX + 1);
    for _ in 0..fit + 5 {
        logs.message(&id("a"), &large);
        // The writer takes what it can get and is stuck with it; that counts, too.
        tokio::task::yield_now().await;
    }
    logs.message(&id("b"), &said("small, and there is room"));
    allowed.add_permits(100);
    logs.close().await;
    let written = entries(&log_on(&disk, "a/context.md"));
    assert_eq!(written.len(), fit + 1);
    assert_eq!(written[fit], "5 entries were not written here");
    assert_eq!(entries(&log_on(&disk, "b/context.md")), ["user: small, and there is room"]);
}

#[tokio::test(start_paused = true)]
async fn closing_does_not_wait_for_a_stuck_disk_for_ever() {
    let (world, _disk, _allowed) = stuck();
    let logs = Logs::start(&world, LOGS.into(), Detail::default());
    logs.message(&id("a"), &said("hi"));
    let (said_so, started) = (Said::listen(), Instant::now());
    logs.close().await;
    assert_eq!((started.elapsed(), said_so.lines()), (LOG_CLOSE_MAX, 1));
}

#[tokio::test(start_paused = true)]
async fn closing_with_nothing_to_write_takes_no_time_and_leaves_no_trace() {
    let (world, disk, _allowed) = stuck();
    let logs = Logs::start(&world, LOGS.into(), Detail { verbose: true, raw: true });
    let started = Instant::now();
    logs.close().await;
    assert_eq!((started.elapsed(), disk.operations()), (std::time::Duration::ZERO, 0));
}
