//! Work that holds its thread: SQLite, hashing, counting tokens, large files.

use tokio::sync::oneshot;

use super::BoxFuture;

pub trait Blocking: Send + Sync {
    /// Runs `job` off the async threads (in the simulation: at one instant of the time it takes).
    /// The job runs to its end even if the future is dropped.
    fn run(&self, job: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()>;
}

impl dyn Blocking + '_ {
    /// Runs `job` and returns what it returned. It is begun at once, whenever that is waited for.
    pub fn call<T, F>(&self, job: F) -> impl Future<Output = T> + Send + use<T, F>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        let (sender, receiver) = oneshot::channel();
        let running = self.run(Box::new(move || {
            // Nobody waits any more when the receiver is gone; the work is done all the same.
            let _ = sender.send(job());
        }));
        async move {
            running.await;
            receiver.await.expect("a blocking job sends its value before it ends")
        }
    }
}
