//! What passes between a provider and us, told to whoever watches, free of secrets.
//! An answer is told once it has ended, as a whole: in its pieces a secret that a model spells out
//! token by token could not be found. Where nobody watches, nothing of this exists.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode, header};
use serde_json::{Value, json};

use super::key::{REDACTED, Redactor};
use super::{Fault, ModelRequest, ProviderError};
use crate::id::AgentId;
use crate::limits::LOG_RAW_BODY_BYTES_MAX;
use crate::sse::Record;

/// Who is told of the traffic.
pub trait Traffic: Send + Sync {
    /// Takes what passed for `agent`. It must not wait.
    fn passed(&self, agent: &AgentId, passed: Passed);
}

/// One half of an exchange, without secrets.
#[derive(Clone, Debug, PartialEq)]
pub struct Passed {
    pub provider: String,
    pub model: String,
    /// The same for a request and its answer, and no other.
    pub exchange: u64,
    pub carried: Carried,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Carried {
    Request {
        url: String,
        headers: Vec<(String, String)>,
        body: Value,
    },
    Response {
        status: u16,
        headers: Vec<(String, String)>,
        /// The records of a stream, or what else came.
        body: Value,
        end: BodyEnd,
    },
    /// What we made of an exchange that went wrong.
    Error {
        fault: Fault,
        message: String,
    },
}

/// How far an answer came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyEnd {
    Whole,
    /// It broke, or was wrong.
    Broken,
    /// Nobody wanted the rest.
    Dropped,
    /// There was more than is kept here.
    Cut,
}

impl BodyEnd {
    pub fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Broken => "broken",
            Self::Dropped => "dropped",
            Self::Cut => "cut",
        }
    }
}

/// Who watches, and what must not be seen.
#[derive(Clone)]
pub(super) struct Watch {
    traffic: Arc<dyn Traffic>,
    secrets: Arc<Redactor>,
    exchanges: Arc<AtomicU64>,
}

impl Watch {
    pub(super) fn new(traffic: Arc<dyn Traffic>, secrets: Arc<Redactor>) -> Self {
        Self { traffic, secrets, exchanges: Arc::default() }
    }

    pub(super) fn exchange(&self, provider: &str, request: &ModelRequest) -> Tap {
        Tap {
            watch: self.clone(),
            agent: request.agent.clone(),
            provider: provider.to_owned(),
            model: request.model.clone(),
            exchange: self.exchanges.fetch_add(1, Ordering::Relaxed) + 1,
            answer: None,
        }
    }
}

/// Sees one exchange. Dropping it tells what had arrived.
pub(super) struct Tap {
    watch: Watch,
    agent: AgentId,
    provider: String,
    model: String,
    exchange: u64,
    answer: Option<Arriving>,
}

struct Arriving {
    status: u16,
    headers: Vec<(String, String)>,
    records: Vec<Value>,
    bytes: usize,
    is_cut: bool,
}

impl Tap {
    pub(super) fn request(&self, request: &Request<Bytes>) {
        let secrets = &self.watch.secrets;
        self.tell(Carried::Request {
            url: secrets.scrub_text(&request.uri().to_string()),
            headers: self.headers(request.headers()),
            body: document(secrets, request.body()),
        });
    }

    pub(super) fn head(&mut self, status: StatusCode, headers: &HeaderMap) {
        self.answer = Some(Arriving {
            status: status.as_u16(),
            headers: self.headers(headers),
            records: Vec::new(),
            bytes: 0,
            is_cut: false,
        });
    }

    /// Takes records of a stream.
    pub(super) fn records(&mut self, records: &[Record]) {
        let Some(answer) = &mut self.answer else { return };
        for Record { event, data } in records {
            answer.bytes = answer.bytes.saturating_add(data.len());
            if answer.bytes > LOG_RAW_BODY_BYTES_MAX {
                answer.is_cut = true;
                return;
            }
            let data = serde_json::from_str(data).unwrap_or_else(|_| Value::from(data.as_str()));
            answer.records.push(match event {
                Some(event) => json!({ "event": event, "data": data }),
                None => data,
            });
        }
    }

    /// The answer was one document, or as much of it as was read.
    pub(super) fn document(&mut self, content: &[u8], end: BodyEnd) {
        let body = document(&self.watch.secrets, content);
        if let Some(Arriving { status, headers, .. }) = self.answer.take() {
            self.tell(Carried::Response { status, headers, body, end });
        }
    }

    pub(super) fn end(&mut self) {
        self.tell_answer(BodyEnd::Whole);
    }

    pub(super) fn fail(&mut self, error: &ProviderError) {
        self.tell_answer(BodyEnd::Broken);
        let message = self.watch.secrets.scrub_text(&error.message);
        self.tell(Carried::Error { fault: error.fault, message });
    }

    fn tell_answer(&mut self, end: BodyEnd) {
        let Some(mut answer) = self.answer.take() else { return };
        self.watch.secrets.scrub_records(&mut answer.records);
        self.tell(Carried::Response {
            status: answer.status,
            headers: answer.headers,
            body: Value::Array(answer.records),
            end: if answer.is_cut { BodyEnd::Cut } else { end },
        });
    }

    fn tell(&self, carried: Carried) {
        let Self { provider, model, exchange, .. } = self;
        let (provider, model) = (provider.clone(), model.clone());
        let passed = Passed { provider, model, exchange: *exchange, carried };
        self.watch.traffic.passed(&self.agent, passed);
    }

    /// What we mark as sensitive is hidden whatever it is; a cookie is a secret of the other side's.
    fn headers(&self, headers: &HeaderMap) -> Vec<(String, String)> {
        let shown = headers.iter().map(|(name, value)| {
            let hidden = value.is_sensitive()
                || [header::SET_COOKIE, header::AUTHORIZATION, header::PROXY_AUTHORIZATION]
                    .contains(name);
            let value = match value.to_str() {
                Ok(text) if !hidden => self.watch.secrets.scrub_text(text),
                Ok(_) | Err(_) => REDACTED.to_owned(),
            };
            (name.to_string(), value)
        });
        shown.collect()
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        self.tell_answer(BodyEnd::Dropped);
    }
}

/// A body as JSON where it is some, else as text; at most the bound of it, as text, where it is
/// longer.
fn document(secrets: &Redactor, content: &[u8]) -> Value {
    if content.len() <= LOG_RAW_BODY_BYTES_MAX
        && let Ok(value) = serde_json::from_slice(content)
    {
        return secrets.scrub_value(value);
    }
    let text = secrets.scrub_text(&String::from_utf8_lossy(content));
    let end = text.floor_char_boundary(LOG_RAW_BODY_BYTES_MAX);
    let more = text.len() - end;
    match more {
        0 => Value::String(text),
        _ => Value::String(format!("{}… {more} bytes more", &text[..end])),
    }
}

#[cfg(test)]
#[path = "traffic_tests.rs"]
mod tests;
