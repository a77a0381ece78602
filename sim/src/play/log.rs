//! Everything that the server and its libraries log in a run, at every level, kept in memory to be
//! searched. The simulated network's own traces are no part of it: they are nobody's log.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tracing::level_filters::LevelFilter;
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry};

/// Whoever else wants to see what is traced in a run; it says itself what of it.
pub type Tracer = Box<dyn Layer<Registry> + Send + Sync>;

/// As long as it is held, what is logged is kept.
pub type Listening = DefaultGuard;

const NETWORK: &str = "turmoil";

/// What was logged. Cloning shares it.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// Held to add or to copy; nothing is awaited under it.
    bytes: Arc<Mutex<Vec<u8>>>,
}

impl Log {
    /// Keeps what is logged on this thread from now on, until the guard is dropped.
    pub fn listen(&self, mut tracers: Vec<Tracer>) -> Listening {
        let everything = Targets::new().with_default(LevelFilter::TRACE);
        let ours = tracing_subscriber::fmt::layer()
            .with_writer(self.clone())
            .with_ansi(false)
            .without_time()
            .with_filter(everything.with_target(NETWORK, LevelFilter::OFF));
        tracers.push(ours.boxed());
        tracing_subscriber::registry().with(tracers).set_default()
    }

    /// What was logged after the first `bytes` bytes.
    pub fn since(&self, bytes: usize) -> Vec<u8> {
        self.bytes().get(bytes..).unwrap_or_default().to_vec()
    }

    fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_logged_is_kept_at_every_level_but_the_networks() {
        let log = Log::default();
        let guard = log.listen(Vec::new());
        tracing::trace!(target: "nexus3::x", key = "in a field", "in words");
        tracing::error!(target: "turmoil::net", "bytes on the wire");
        let first = log.since(0).len();
        tracing::info!(target: "library", "later");
        drop(guard);
        tracing::error!(target: "nexus3::x", "when nobody listens");
        let text = |from| String::from_utf8(log.since(from)).unwrap();
        assert_eq!(text(0), "TRACE nexus3::x: in words key=\"in a field\"\n INFO library: later\n");
        assert_eq!(text(first), " INFO library: later\n");
    }
}
