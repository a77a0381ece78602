//! A model on another machine: a request, repeated while that may help, and its answer.
//! What happens on the wire is in `attempt`; what the bytes mean is the wire's.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::Request;
use tokio::time::sleep;

use super::attempt::{Attempt, Heard};
use super::ear::Ear;
use super::endpoint::Endpoint;
use super::failure::{Broke, Cure};
use super::retry;
use super::traffic::Watch;
use super::wire::Wire;
use super::{ModelEvent, ModelRequest, ModelStream, Provider, ProviderError, Retry};
use crate::world::{Chance, Connection, Http, Use};

/// What a provider asks of the world.
#[derive(Clone)]
pub(super) struct Seams {
    pub(super) http: Arc<dyn Http>,
    pub(super) chance: Arc<dyn Chance>,
}

#[derive(Clone)]
pub(super) struct Remote {
    seams: Seams,
    endpoint: Arc<Endpoint>,
    wire: Arc<dyn Wire>,
    watch: Option<Watch>,
    ear: Option<Arc<dyn Ear>>,
}

impl Remote {
    pub(super) fn new(seams: Seams, endpoint: Endpoint, wire: Arc<dyn Wire>) -> Self {
        Self { seams, endpoint: Arc::new(endpoint), wire, watch: None, ear: None }
    }

    /// Has somebody told of all that passes.
    pub(super) fn watched(self, watch: Option<Watch>, ear: Option<Arc<dyn Ear>>) -> Self {
        Self { watch, ear, ..self }
    }

    fn attempt(&self, request: &ModelRequest, sent: Request<Bytes>) -> Attempt {
        let provider = &self.endpoint.failures.provider;
        let tap = self.watch.as_ref().map(|watch| watch.exchange(provider, request));
        let heard = self.ear.as_ref().map(|ear| Heard::by(ear, &request.agent));
        let (http, endpoint, wire) = (&self.seams.http, &self.endpoint, &self.wire);
        Attempt::new(Arc::clone(http), Arc::clone(endpoint), Arc::clone(wire), (tap, heard), sent)
    }
}

impl Provider for Remote {
    fn stream(&self, request: ModelRequest) -> ModelStream {
        let sent = self.endpoint.request(&request, self.wire.body(&request));
        // A stream that is unfolded moves its state with every event.
        let exchange = Box::new(Exchange {
            attempt: Some(self.attempt(&request, sent.clone())),
            remote: self.clone(),
            request,
            sent,
            attempts: 1,
            wait: None,
        });
        let events = stream::unfold(exchange, |mut exchange| async move {
            let item = exchange.next().await?;
            Some((item, exchange))
        });
        Box::pin(events.fuse())
    }
}

/// One request and all attempts at it.
struct Exchange {
    remote: Remote,
    request: ModelRequest,
    /// The request as it is sent each time.
    sent: Request<Bytes>,
    /// The attempt that is under way; `None` once there will be no other.
    attempt: Option<Attempt>,
    attempts: u32,
    /// Before the attempt begins.
    wait: Option<Duration>,
}

impl Exchange {
    async fn next(&mut self) -> Option<Result<ModelEvent, ProviderError>> {
        loop {
            let attempt = self.attempt.as_mut()?;
            if let Some(wait) = self.wait.take() {
                sleep(wait).await;
            }
            match attempt.next().await {
                Some(Ok(event)) => return Some(Ok(event)),
                Some(Err(Broke { cure: Cure::Fresh, .. })) if self.may_be_kept() => {
                    // The provider has not seen it: this is no repetition.
                    self.sent.extensions_mut().insert(Connection::Fresh);
                    self.attempt = Some(self.remote.attempt(&self.request, self.sent.clone()));
                }
                Some(Err(broke)) => return Some(self.on_broken(broke)),
                None => self.attempt = None,
            }
        }
    }

    fn may_be_kept(&self) -> bool {
        Connection::of(&self.sent) == Connection::Kept
    }

    fn on_broken(&mut self, broke: Broke) -> Result<ModelEvent, ProviderError> {
        let Broke { error, cure, said: _ } = broke;
        let asked_for = match cure {
            Cure::Wait { asked_for } => Some(asked_for),
            Cure::Fresh => Some(None),
            Cure::None => None,
        };
        let Some(asked_for) =
            asked_for.filter(|_| self.attempts <= self.remote.endpoint.retries_max)
        else {
            self.attempt = None;
            return Err(ProviderError { attempts: self.attempts, ..error });
        };
        let fraction = self.remote.seams.chance.fraction(Use::Jitter);
        let after = retry::wait(self.attempts, asked_for, fraction);
        let retry = Retry { attempt: self.attempts, after, reason: error.message };
        self.attempts += 1;
        self.wait = Some(after);
        self.attempt = Some(self.remote.attempt(&self.request, self.sent.clone()));
        Ok(ModelEvent::Retry(retry))
    }
}

#[cfg(test)]
#[path = "remote_tests.rs"]
mod tests;
