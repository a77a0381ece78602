//! What a script looks at in a request to a model, in either wire.
//! Pure. It reads requests that our own wire code wrote and those of any other client.

mod anthropic; // messages
mod openai; // chat completions

use bytes::Bytes;
use http::{Method, Request};
use serde_json::Value;
use serde_json::value::RawValue;

/// The header that names the agent that asks.
pub const AGENT_HEADER: &str = "x-nexus-agent";

/// In which words a model is asked, and answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// Chat completions.
    Openai,
    /// Messages.
    Anthropic,
}

impl Wire {
    fn name(self) -> &'static str {
        match self {
            Self::Openai => "chat completions",
            Self::Anthropic => "messages",
        }
    }

    /// Who asks in one of the wires posts to a path of its own, wherever the base URL leads.
    pub fn of(request: &Request<Bytes>) -> Option<Self> {
        let path = request.uri().path();
        match *request.method() {
            Method::POST if path.ends_with("/chat/completions") => Some(Self::Openai),
            Method::POST if path.ends_with("/messages") => Some(Self::Anthropic),
            _ => None,
        }
    }
}

/// How an answer is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// As it comes, in records.
    Stream,
    /// Whole, as one document: what clients get that do not ask for a stream.
    Document,
}

impl Delivery {
    /// By what a request says of it.
    fn of(stream: Option<bool>) -> Self {
        match stream {
            Some(true) => Self::Stream,
            Some(false) | None => Self::Document,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    pub wire: Wire,
    /// Empty where the request does not say.
    pub agent: String,
    /// The model as it stands in the request.
    pub model: String,
    /// How many messages the model was shown, the system prompt included.
    pub messages: usize,
    /// Tool calls in these messages.
    pub calls: usize,
    /// The text of the last message.
    pub last_message: String,
    pub delivery: Delivery,
    /// The request as it came.
    pub body: Bytes,
}

/// The request is none to a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoQuestion {
    #[error("only POST /chat/completions and POST /messages are answered here")]
    Path,
    #[error("the request is no {} request", wire.name())]
    Body { wire: Wire },
}

/// What the body of a request says, in the same words for both wires.
struct Shown {
    model: String,
    messages: usize,
    calls: usize,
    last_message: String,
    delivery: Delivery,
}

impl Question {
    pub fn read(request: &Request<Bytes>) -> Result<Self, NoQuestion> {
        let wire = Wire::of(request).ok_or(NoQuestion::Path)?;
        let unread = NoQuestion::Body { wire };
        // All of it at once: text by text is slower.
        let text = str::from_utf8(request.body()).map_err(|_no_text| unread)?;
        let shown = match wire {
            Wire::Openai => openai::read(text),
            Wire::Anthropic => anthropic::read(text),
        };
        shown.map(|shown| Self::of(request, wire, shown)).map_err(|_no_request| unread)
    }

    /// What [`read`](Self::read) makes of a request of our own wire, sooner: what it always has, and
    /// what nobody asks for, is not looked at.
    pub(super) fn read_ours(request: &Request<Bytes>) -> Result<Self, NoQuestion> {
        let wire = Wire::Openai;
        let shown = str::from_utf8(request.body()).ok().and_then(openai::read_ours);
        shown.map(|shown| Self::of(request, wire, shown)).ok_or(NoQuestion::Body { wire })
    }

    fn of(request: &Request<Bytes>, wire: Wire, shown: Shown) -> Self {
        let Shown { model, messages, calls, last_message, delivery } = shown;
        let agent = request.headers().get(AGENT_HEADER).and_then(|value| value.to_str().ok());
        let agent = agent.unwrap_or_default().to_owned();
        let body = request.body().clone();
        Self { wire, agent, model, messages, calls, last_message, delivery, body }
    }

    /// A hash of the messages as they were sent, the same on every machine and in every version. It
    /// reads all of them.
    pub fn digest(&self) -> u64 {
        let text = str::from_utf8(&self.body).expect("it was read before");
        match self.wire {
            Wire::Openai => openai::digest(text),
            Wire::Anthropic => anthropic::digest(text),
        }
    }

    /// What its answer is called: nothing that takes long, and the same whenever it is asked again.
    pub(super) fn answer_id(&self) -> String {
        let said = self.messages.to_le_bytes().into_iter().chain(self.last_message.bytes());
        format!("{:016x}", hash(self.agent.bytes().chain(said)))
    }
}

/// The text of a content, which comes whole or in parts.
fn text(content: &RawValue) -> String {
    match serde_json::from_str(content.get()).unwrap_or_default() {
        Value::String(text) => text,
        Value::Array(parts) => parts.iter().filter_map(|part| part.get("text")?.as_str()).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

/// FNV-1a. The standard library's hasher may change with the compiler, and transcripts may not.
fn hash(bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

#[cfg(test)]
#[path = "question_tests.rs"]
mod tests;
