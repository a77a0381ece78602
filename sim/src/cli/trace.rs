//! Everything that is traced in a run, with virtual time: what `twice` compares.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;

use crate::play::Tracer;

/// Collects traced lines. Cloning shares them.
#[derive(Clone, Debug, Default)]
pub struct Tracing {
    lines: Arc<Mutex<Vec<u8>>>,
}

impl Tracing {
    /// Sees everything in one run.
    pub fn tracer(&self) -> Tracer {
        // The MCP library shows every message at the finest level, with a number of its own process in
        // those that it makes itself.
        let lines = Targets::new()
            .with_default(LevelFilter::TRACE)
            .with_target("rmcp::service", LevelFilter::DEBUG);
        tracing_subscriber::fmt::layer()
            .with_writer(self.clone())
            .with_ansi(false)
            .with_timer(VirtualTime)
            .with_filter(lines)
            .boxed()
    }

    /// What was traced since the last time.
    pub fn take(&self) -> String {
        let lines = std::mem::take(&mut *self.lines.lock().unwrap_or_else(PoisonError::into_inner));
        String::from_utf8_lossy(&lines).into_owned()
    }
}

impl io::Write for Tracing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Tracing {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

struct VirtualTime;

impl FormatTime for VirtualTime {
    fn format_time(&self, writer: &mut Writer<'_>) -> std::fmt::Result {
        let elapsed = crate::machine::elapsed();
        write!(writer, "{:>10.3}s", elapsed.as_secs_f64())
    }
}
