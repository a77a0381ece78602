//! One attempt at one request: sent once, its answer read to the end.
//! It tells failures apart and never repeats anything; `remote` does.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{FutureExt, StreamExt};
use http::{HeaderMap, Request, header};
use tokio::time::{Instant, Sleep, sleep, timeout};

use super::ModelEvent;
use super::ear::{Ear, Hearing};
use super::endpoint::Endpoint;
use super::error_object::ErrorObject;
use super::failure::{Broke, Cure, Forwarded};
use super::retry;
use super::traffic::{BodyEnd, Tap};
use super::wire::{Answer, AnswerError, Progress, Wire};
use crate::id::AgentId;
use crate::limits::{BODY_REST_BYTES_MAX, BODY_REST_MAX, ERROR_BODY_BYTES_MAX, SSE_LINE_BYTES_MAX};
use crate::reach::redirect;
use crate::sse::{Record, SseParser};
use crate::world::{Http, HttpBody, HttpError, HttpResponse};

/// Dropping it closes the connection.
pub(super) struct Attempt {
    http: Arc<dyn Http>,
    endpoint: Arc<Endpoint>,
    wire: Arc<dyn Wire>,
    /// Where somebody watches.
    tap: Option<Tap>,
    heard: Option<Heard>,
    phase: Phase,
    /// Events that wait to be taken; what broke comes after them.
    ready: VecDeque<ModelEvent>,
    failure: Option<Broke>,
}

/// Who hears of an attempt.
pub(super) enum Heard {
    Unsent { ear: Arc<dyn Ear>, agent: AgentId },
    Begun(Box<dyn Hearing>),
}

impl Heard {
    pub(super) fn by(ear: &Arc<dyn Ear>, agent: &AgentId) -> Self {
        Self::Unsent { ear: Arc::clone(ear), agent: agent.clone() }
    }

    fn begun(self, sent: &Request<Bytes>) -> Self {
        match self {
            Self::Unsent { ear, agent } => Self::Begun(ear.asks(&agent, sent)),
            begun @ Self::Begun(_) => begun,
        }
    }
}

enum Phase {
    Unsent(Box<Request<Bytes>>),
    Reading(Box<Reading>),
    Ended,
}

struct Reading {
    body: HttpBody,
    /// Goes off where nothing comes for too long. It is moved on with every piece, not made anew.
    silence: Pin<Box<Sleep>>,
    parser: SseParser,
    /// What came last; kept for its room.
    records: Vec<Record>,
    answer: Box<dyn Answer>,
}

/// What a wait for more of an answer came to.
enum Came {
    Piece(Option<Result<Bytes, HttpError>>),
    Nothing,
}

impl Attempt {
    pub(super) fn new(
        http: Arc<dyn Http>,
        endpoint: Arc<Endpoint>,
        wire: Arc<dyn Wire>,
        (tap, heard): (Option<Tap>, Option<Heard>),
        request: Request<Bytes>,
    ) -> Self {
        let phase = Phase::Unsent(Box::new(request));
        Self { http, endpoint, wire, tap, heard, phase, ready: VecDeque::new(), failure: None }
    }

    pub(super) async fn next(&mut self) -> Option<Result<ModelEvent, Broke>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                self.tell(|hearing| hearing.event(&event));
                return Some(Ok(event));
            }
            if let Some(failure) = self.failure.take() {
                self.tell(|hearing| match failure.cure {
                    Cure::Fresh => hearing.unsent(),
                    Cure::None | Cure::Wait { .. } => {
                        let said = failure.said.as_deref();
                        hearing.broke(&failure.error, said, failure.cure.asked_for());
                    }
                });
                return Some(Err(failure));
            }
            let next_phase = match std::mem::replace(&mut self.phase, Phase::Ended) {
                Phase::Unsent(request) => self.ask(*request).await,
                Phase::Reading(reading) => self.read(reading).await,
                Phase::Ended => {
                    self.tell(|hearing| hearing.ended());
                    return None;
                }
            };
            match next_phase {
                Ok(phase) => self.phase = phase,
                Err(failure) => {
                    if let Some(tap) = &mut self.tap {
                        tap.fail(&failure.error);
                    }
                    self.failure = Some(failure);
                }
            }
        }
    }

    fn tell(&mut self, what: impl FnOnce(&mut dyn Hearing)) {
        if let Some(Heard::Begun(hearing)) = &mut self.heard {
            what(hearing.as_mut());
        }
    }

    /// Sends the request and looks at the head of the answer.
    async fn ask(&mut self, request: Request<Bytes>) -> Result<Phase, Broke> {
        self.heard = self.heard.take().map(|heard| heard.begun(&request));
        let endpoint = Arc::clone(&self.endpoint);
        let failures = &endpoint.failures;
        let response = timeout(endpoint.request_timeout, self.send(request))
            .await
            .map_err(|_| failures.late(endpoint.request_timeout))??;
        if !response.status.is_success() {
            let asked_for = retry::asked_for(&response.headers);
            let explanation = explanation(&endpoint, response.body, &mut self.tap).await;
            return Err(failures.status(response.status, explanation.as_ref(), asked_for));
        }
        if is_document(&response.headers) {
            let explanation = explanation(&endpoint, response.body, &mut self.tap).await;
            return Err(failures.no_stream(explanation.as_ref()));
        }
        self.tell(|hearing| hearing.opened());
        Ok(Phase::Reading(Box::new(Reading {
            body: response.body,
            silence: Box::pin(sleep(endpoint.idle_timeout)),
            parser: SseParser::new(SSE_LINE_BYTES_MAX),
            records: Vec::new(),
            answer: self.wire.answer(),
        })))
    }

    /// Sends the request to where it is answered.
    async fn send(&mut self, mut request: Request<Bytes>) -> Result<HttpResponse, Broke> {
        let failures = &self.endpoint.failures;
        let mut followed = 0;
        loop {
            if let Some(tap) = &self.tap {
                tap.request(&request);
            }
            let response = self.http.send(request.clone()).await;
            let response =
                response.map_err(|error| failures.transport(&error, Forwarded::Nothing))?;
            if let Some(tap) = &mut self.tap {
                tap.head(response.status, &response.headers);
            }
            if !redirect::is_one(response.status) {
                return Ok(response);
            }
            let may_be_asked = |next: &_| self.endpoint.may_be_asked(next);
            let next = redirect::follow(&request, &response.headers, followed, may_be_asked);
            request = next.map_err(|why| failures.redirect(response.status, why))?;
            followed += 1;
        }
    }

    /// Takes the next bytes of the answer.
    async fn read(&mut self, mut reading: Box<Reading>) -> Result<Phase, Broke> {
        let idle_timeout = self.endpoint.idle_timeout;
        let failures = &self.endpoint.failures;
        let so_far = forwarded(reading.answer.as_ref());
        reading.silence.as_mut().reset(Instant::now() + idle_timeout);
        let came = tokio::select! {
            biased;
            piece = next_bytes(&mut reading.body) => Came::Piece(piece),
            () = &mut reading.silence => Came::Nothing,
        };
        let bytes = match came {
            Came::Piece(Some(Ok(bytes))) => bytes,
            // Only the closing record is missing, which some servers never send.
            Came::Piece(None | Some(Err(_))) | Came::Nothing if reading.answer.is_whole() => {
                return self.finish(reading.answer.as_ref());
            }
            Came::Piece(Some(Err(error))) => return Err(failures.transport(&error, so_far)),
            Came::Piece(None) => return self.finish(reading.answer.as_ref()),
            Came::Nothing => return Err(failures.stalled(idle_timeout, so_far)),
        };
        reading.records.clear();
        let parsed = reading.parser.push(&bytes, &mut reading.records);
        if let Some(tap) = &mut self.tap {
            tap.records(&reading.records);
        }
        for record in &reading.records {
            match reading.answer.on_record(record, &mut self.ready) {
                Ok(Progress::More) => {}
                Ok(Progress::Done) => {
                    drain(reading.body);
                    return self.finish(reading.answer.as_ref());
                }
                Err(error) => return Err(self.wrong(reading.answer.as_ref(), &error)),
            }
        }
        parsed.map_err(|error| failures.too_long(error, forwarded(reading.answer.as_ref())))?;
        Ok(Phase::Reading(reading))
    }

    fn finish(&mut self, answer: &dyn Answer) -> Result<Phase, Broke> {
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

    fn wrong(&self, answer: &dyn Answer, error: &AnswerError) -> Broke {
        self.endpoint.failures.answer(error, forwarded(answer))
    }
}

fn forwarded(answer: &dyn Answer) -> Forwarded {
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

/// Reads what follows the closing record, which is the end of the body as a rule: only a connection
/// whose answer was read whole serves the next request. Nobody waits for it, and most often it is there.
fn drain(mut body: HttpBody) {
    match body.next().now_or_never() {
        Some(None | Some(Err(_))) => {}
        Some(Some(Ok(_))) | None => drop(tokio::spawn(drained(body))),
    }
}

async fn drained(mut body: HttpBody) {
    let end = async {
        let mut bytes_left = BODY_REST_BYTES_MAX;
        while let Some(Ok(bytes)) = body.next().await {
            bytes_left = bytes_left.checked_sub(bytes.len())?;
        }
        Some(())
    };
    let _ = timeout(BODY_REST_MAX, end).await;
}

/// Whether the answer is one document. Anything else is read as a stream: not every server that
/// streams says so.
fn is_document(headers: &HeaderMap) -> bool {
    let value = headers.get(header::CONTENT_TYPE);
    let value = value.and_then(|value| value.to_str().ok()).unwrap_or("");
    let kind = value.split(';').next().unwrap_or("").trim();
    kind.eq_ignore_ascii_case("application/json") || kind.eq_ignore_ascii_case("text/html")
}
