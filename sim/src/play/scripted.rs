//! Reads in the log who asked a script that is played inside the server. The server logs it for
//! whoever reads logs; it cannot tell that somebody counts.

use std::fmt::Debug;
use std::sync::Arc;

use nexus3::provider::script::LOG_TARGET;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::Context;

use super::log::Tracer;
use super::models::{Logged, Watching};

pub fn tracer(watching: &Arc<Watching>) -> Tracer {
    let reader = Reader { watching: Arc::clone(watching) };
    reader.with_filter(Targets::new().with_target(LOG_TARGET, LevelFilter::DEBUG)).boxed()
}

struct Reader {
    watching: Arc<Watching>,
}

impl<S: Subscriber> Layer<S> for Reader {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        // The target of another module may begin with the same words.
        if event.metadata().target() == LOG_TARGET {
            let mut logged = Logged::default();
            event.record(&mut logged);
            self.watching.logged(&logged);
        }
    }
}

impl Visit for Logged {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "agent" => value.clone_into(&mut self.agent),
            "model" => value.clone_into(&mut self.model),
            _ => {}
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        match field.name() {
            "messages" => self.messages = value,
            "digest" => self.digest = value,
            "entry" => self.entry = usize::try_from(value).ok(),
            _ => {}
        }
    }

    /// The words of the line.
    fn record_debug(&mut self, _: &Field, _: &dyn Debug) {}
}
