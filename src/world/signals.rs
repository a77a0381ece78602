//! Being asked to stop from outside.

use super::BoxFuture;

pub trait Signals: Send + Sync {
    /// Resolves at the next SIGTERM or SIGINT after this call. One that comes between two calls
    /// is not lost.
    fn stop(&self) -> BoxFuture<'_, ()>;
}
