//! Work that holds its thread: SQLite, hashing, counting tokens, large files.

use tokio::sync::oneshot;

use super::BoxFuture;

pub trait Blocking: Send + Sync {
    /// Runs `job` off the async threads (in the simulation: at one instant of the time it takes).
    /// The job runs to its end even if the future is dropped.
    fn run(&self, job: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()>;
}

impl dyn Blocking + '_ {
    /// Runs `job` and returns what it returned.
    pub async fn call<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> T {
        let (sender, receiver) = oneshot::channel();
        self.run(Box::new(move || {
            // Nobody waits any more when the receiver is gone; the work is done all the same.
            let _ = sender.send(job());
        }))
        .await;
        receiver.await.expect("a blocking job sends its value before it ends")
    }
}
