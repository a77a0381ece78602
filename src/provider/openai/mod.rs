//! The OpenAI-compatible wire: chat completions, streamed over `world.http`.
//! One attempt per request: it tells failures apart and never repeats anything.

mod answer; // chunks to events
mod chunk; // the wire's own types
mod endpoint; // URL, key, headers, waits
mod failure; // what went wrong, in our words
mod request; // the body

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{HeaderMap, Request, header};
use tokio::time::timeout;

pub use endpoint::EndpointError;

use self::answer::{Answer, AnswerError, Progress};
use self::chunk::ErrorObject;
use self::endpoint::Endpoint;
use self::failure::Forwarded;
use super::key::Key;
use super::traffic::{BodyEnd, Tap, Watch};
use super::{ModelEvent, ModelRequest, ModelStream, Provider, ProviderError};
use crate::config::ProviderConfig;
use crate::limits::{ERROR_BODY_BYTES_MAX, SSE_LINE_BYTES_MAX};
use crate::sse::SseParser;
use crate::world::{Http, HttpBody, HttpError};

pub(super) struct OpenAi {
    http: Arc<dyn Http>,
    endpoint: Arc<Endpoint>,
    watch: Option<Watch>,
}

impl OpenAi {
    pub(super) fn new(
        http: Arc<dyn Http>,
        name: &str,
        config: &ProviderConfig,
        default_base_url: &str,
        key: Option<Key>,
    ) -> Result<Self, EndpointError> {
        let endpoint = Endpoint::new(name, config, default_base_url, key)?;
        Ok(Self { http, endpoint: Arc::new(endpoint), watch: None })
    }

    /// Has somebody told of all that passes.
    pub(super) fn watched(self, watch: Option<Watch>) -> Self {
        Self { watch, ..self }
    }
}

impl Provider for OpenAi {
    fn stream(&self, request: ModelRequest) -> ModelStream {
        let body = request::body(&request, self.endpoint.length_field);
        let exchange = Exchange {
            http: Arc::clone(&self.http),
            phase: Phase::Unsent(self.endpoint.request(&request.agent, body)),
            endpoint: Arc::clone(&self.endpoint),
            tap: self
                .watch
                .as_ref()
                .map(|watch| watch.exchange(&self.endpoint.failures.provider, &request)),
            ready: VecDeque::new(),
            failure: None,
        };
        let events = stream::unfold(exchange, |mut exchange| async move {
            let item = exchange.next().await?;
            Some((item, exchange))
        });
        Box::pin(events.fuse())
    }
}

/// One request and its answer. Dropping it closes the connection.
struct Exchange {
    http: Arc<dyn Http>,
    endpoint: Arc<Endpoint>,
    /// Where somebody watches.
    tap: Option<Tap>,
    phase: Phase,
    /// Events that wait to be taken; what broke comes after them.
    ready: VecDeque<ModelEvent>,
    failure: Option<ProviderError>,
}

enum Phase {
    Unsent(Request<Bytes>),
    Reading(Reading),
    Ended,
}

struct Reading {
    body: HttpBody,
    parser: SseParser,
    answer: Answer,
}

impl Exchange {
    async fn next(&mut self) -> Option<Result<ModelEvent, ProviderError>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(Ok(event));
            }
            if let Some(failure) = self.failure.take() {
                return Some(Err(failure));
            }
            let next_phase = match std::mem::replace(&mut self.phase, Phase::Ended) {
                Phase::Unsent(request) => self.ask(request).await,
                Phase::Reading(reading) => self.read(reading).await,
                Phase::Ended => return None,
            };
            match next_phase {
                Ok(phase) => self.phase = phase,
                Err(failure) => {
                    if let Some(tap) = &mut self.tap {
                        tap.fail(&failure);
                    }
                    self.failure = Some(failure);
                }
            }
        }
    }

    /// Sends the request and looks at the head of the answer.
    async fn ask(&mut self, request: Request<Bytes>) -> Result<Phase, ProviderError> {
        let failures = &self.endpoint.failures;
        if let Some(tap) = &self.tap {
            tap.request(&request);
        }
        let response = timeout(self.endpoint.request_timeout, self.http.send(request))
            .await
            .map_err(|_| failures.late(self.endpoint.request_timeout))?
            .map_err(|error| failures.transport(&error))?;
        if let Some(tap) = &mut self.tap {
            tap.head(response.status, &response.headers);
        }
        if !response.status.is_success() {
            let explanation = explanation(&self.endpoint, response.body, &mut self.tap).await;
            return Err(failures.status(response.status, explanation.as_ref()));
        }
        if is_document(&response.headers) {
            let explanation = explanation(&self.endpoint, response.body, &mut self.tap).await;
            return Err(failures.no_stream(explanation));
        }
        Ok(Phase::Reading(Reading {
            body: response.body,
            parser: SseParser::new(SSE_LINE_BYTES_MAX),
            answer: Answer::default(),
        }))
    }

    /// Takes the next bytes of the answer.
    async fn read(&mut self, mut reading: Reading) -> Result<Phase, ProviderError> {
        let idle_timeout = self.endpoint.idle_timeout;
        let failures = &self.endpoint.failures;
        let bytes = match timeout(idle_timeout, next_bytes(&mut reading.body)).await {
            Ok(Some(Ok(bytes))) => bytes,
            // Only the closing record is missing, which some servers never send.
            Ok(None | Some(Err(_))) | Err(_) if reading.answer.is_whole() => {
                return self.finish(&reading.answer);
            }
            Ok(Some(Err(error))) => return Err(failures.transport(&error)),
            Ok(None) => return self.finish(&reading.answer),
            Err(_) => return Err(failures.stalled(idle_timeout)),
        };
        let mut records = Vec::new();
        let parsed = reading.parser.push(&bytes, &mut records);
        if let Some(tap) = &mut self.tap {
            tap.records(&records);
        }
        for record in &records {
            match reading.answer.on_record(record, &mut self.ready) {
                Ok(Progress::More) => {}
                Ok(Progress::Done) => return self.finish(&reading.answer),
                Err(error) => return Err(self.wrong(&reading.answer, &error)),
            }
        }
        parsed.map_err(|error| failures.too_long(error, forwarded(&reading.answer)))?;
        Ok(Phase::Reading(reading))
    }

    fn finish(&mut self, answer: &Answer) -> Result<Phase, ProviderError> {
        match answer.end(&mut self.ready) {
            Ok(()) => {
                if let Some(tap) = &mut self.tap {
                    tap.end();
                }
                Ok(Phase::Ended)
            }
            Err(error) => Err(self.wrong(answer, &error)),
        }
    }

    fn wrong(&self, answer: &Answer, error: &AnswerError) -> ProviderError {
        self.endpoint.failures.answer(error, forwarded(answer))
    }
}

fn forwarded(answer: &Answer) -> Forwarded {
    if answer.has_content() { Forwarded::Content } else { Forwarded::Nothing }
}

/// Reads what an error body says. One that is too long, too slow or no JSON says nothing.
async fn explanation(
    endpoint: &Endpoint,
    mut body: HttpBody,
    tap: &mut Option<Tap>,
) -> Option<ErrorObject> {
    let mut content = Vec::new();
    let whole = async {
        while let Some(bytes) = next_bytes(&mut body).await {
            content.extend_from_slice(&bytes.ok()?);
            if content.len() > ERROR_BODY_BYTES_MAX {
                return None;
            }
        }
        Some(())
    };
    let read = timeout(endpoint.idle_timeout, whole).await.ok().flatten();
    if let Some(tap) = tap {
        let end = if read.is_some() { BodyEnd::Whole } else { BodyEnd::Broken };
        tap.document(&content, end);
    }
    read?;
    let value: serde_json::Value = serde_json::from_slice(&content).ok()?;
    let object = ErrorObject::of(&value);
    object.message.is_some().then_some(object)
}

/// The next bytes of a body, at least one: an empty piece is no sign of life.
async fn next_bytes(body: &mut HttpBody) -> Option<Result<Bytes, HttpError>> {
    loop {
        match body.next().await {
            Some(Ok(bytes)) if bytes.is_empty() => {}
            other => return other,
        }
    }
}

/// Whether the answer is one document. Anything else is read as a stream: not every server that
/// streams says so.
fn is_document(headers: &HeaderMap) -> bool {
    let value = headers.get(header::CONTENT_TYPE);
    let value = value.and_then(|value| value.to_str().ok()).unwrap_or("");
    let kind = value.split(';').next().unwrap_or("").trim();
    kind.eq_ignore_ascii_case("application/json") || kind.eq_ignore_ascii_case("text/html")
}

#[cfg(test)]
#[path = "openai_tests.rs"]
mod tests;
