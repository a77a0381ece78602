//! What blocking work keeps: every job runs once, to its end, whoever waits for it.

use futures_util::FutureExt;
use nexus3::world::World;
use tokio::sync::oneshot;

use super::must;

pub async fn blocking(world: &World) {
    let value = must("a job returns its value", world.blocking.call(|| 6 * 7)).await;
    assert_eq!(value, 42, "the value is the job's own");
    a_job_runs_although_its_future_is_never_polled(world).await;
    a_job_runs_although_its_future_is_dropped_half_way(world).await;
    jobs_of_many_callers_all_end(world).await;
}

async fn a_job_runs_although_its_future_is_never_polled(world: &World) {
    let (sender, receiver) = oneshot::channel();
    let job = move || sender.send("done").expect("the suite waits for the job");
    drop(world.blocking.run(Box::new(job)));
    let told = must("a job whose future was dropped runs", receiver).await;
    assert_eq!(told, Ok("done"), "a dropped future takes no job with it");
}

async fn a_job_runs_although_its_future_is_dropped_half_way(world: &World) {
    let (sender, receiver) = oneshot::channel();
    let job = move || sender.send("done").expect("the suite waits for the job");
    let mut running = world.blocking.run(Box::new(job));
    let _ = (&mut running).now_or_never();
    drop(running);
    let told = must("a job whose future was polled and dropped runs", receiver).await;
    assert_eq!(told, Ok("done"), "a future dropped half way takes no job with it");
}

async fn jobs_of_many_callers_all_end(world: &World) {
    let jobs = (0..50_u32).map(|n| async move { world.blocking.call(move || n).await });
    let values = must("all jobs end", futures_util::future::join_all(jobs)).await;
    assert_eq!(values, (0..50).collect::<Vec<_>>(), "every caller gets its own job's value");
}
