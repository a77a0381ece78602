//! Blocking work: done at once, then virtual time passes. A thread would end in a random order.

use std::time::Duration;

use nexus3::world::{Blocking, BoxFuture};

/// How long a job takes in virtual time, whatever it does.
const TAKES: Duration = Duration::from_millis(1);

#[derive(Clone, Copy, Debug, Default)]
pub struct Inline;

impl Blocking for Inline {
    fn run(&self, job: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()> {
        job();
        Box::pin(tokio::time::sleep(TAKES))
    }
}
