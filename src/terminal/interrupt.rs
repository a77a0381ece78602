//! How a command that runs in a terminal is told to stop, as a shell tells it by Ctrl-C.

use std::sync::Arc;

use tokio::sync::Notify;

use crate::world::{BoxFuture, Signals};

/// The signals of one command. One that comes before somebody listens is not lost.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<Notify>);

impl Interrupt {
    pub fn send(&self) {
        self.0.notify_one();
    }
}

impl Signals for Interrupt {
    fn stop(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.0.notified())
    }
}
