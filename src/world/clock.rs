//! What time it is. Wall time can jump; waiting is `tokio::time`, which cannot.

use jiff::Timestamp;

pub trait Clock: Send + Sync {
    /// The wall-clock time. Two readings may go backwards: an operator can set the clock.
    fn now(&self) -> Timestamp;
}
