//! SIGTERM and SIGINT of this process. Once opened, neither ends the process by itself any more,
//! for as long as it lives: whoever opens this has to ask for them.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Mutex;

use crate::world::{BoxFuture, Signals};

pub(super) struct StopSignals {
    /// The two streams, held by the one caller that waits; a second caller waits for the lock and
    /// then for a signal of its own. Dropping the wait loses no signal, nor the lock.
    streams: Mutex<Streams>,
}

struct Streams {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    pub(super) fn open() -> io::Result<Self> {
        let streams = Streams {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        };
        Ok(Self { streams: Mutex::new(streams) })
    }
}

impl Signals for StopSignals {
    fn stop(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let mut streams = self.streams.lock().await;
            let Streams { terminate, interrupt } = &mut *streams;
            tokio::select! {
                // Either order would do: both ask for the same.
                biased;
                _ = terminate.recv() => (),
                _ = interrupt.recv() => (),
            }
        })
    }
}
