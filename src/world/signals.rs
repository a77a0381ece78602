//! Being asked to stop from outside.

use super::BoxFuture;

pub trait Signals: Send + Sync {
    /// Resolves once a SIGTERM or SIGINT has come that no earlier call resolved for: one that comes
    /// between two calls, or while a call is dropped, is not lost. Several of a kind may count as one.
    fn stop(&self) -> BoxFuture<'_, ()>;

    /// Resolves once the terminal of this program has gone (SIGHUP), which does not end the program by
    /// itself any more once this was asked for. Never where no terminal can go.
    fn hung_up(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }
}
