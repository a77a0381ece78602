//! Models: a request in, a stream of events out, the same for every wire.
//! A provider maps; it never decides about a turn.

mod anthropic; // the messages wire
mod attempt; // one attempt at one request
mod body; // how long a request is
mod defaults; // where the configuration says nothing
mod demo; // the built-in model
mod ear; // what is answered, for whoever keeps it
mod endpoint; // URL, key, headers, waits
mod error_object; // what a provider says is wrong
mod failure; // what went wrong, in our words
mod key; // keys, and keeping them out of every text
mod models; // which models there are
mod names; // names and arguments that a wire takes back
mod openai; // the chat completions wire
mod probe; // whether it takes its key
mod remote; // a model on another machine
#[cfg(test)]
#[path = "replay_tests.rs"]
mod replay; // a scripted server
mod retry; // how long to wait before a repetition
pub mod script; // answers written down beforehand
mod scrub; // secrets in whole bodies
mod terms; // who vouches for a provider, and where it may be
mod traffic; // what passes, for whoever watches
mod wire; // what differs between the wires

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::Stream;
use serde::{Deserialize, Serialize};

pub use ear::{Ear, Hearing};
pub use endpoint::EndpointError;
pub use key::Secrets;
pub use models::{Model, ModelError, Models, Watchers};
pub use probe::{ProbeError, Probed, in_use, probe};
pub use traffic::{BodyEnd, Carried, Passed, Traffic};

use crate::id::AgentId;
use crate::message::{ToolDefinition, Usage};
use crate::messages::Messages;

pub trait Provider: Send + Sync {
    /// Asks the model. The stream ends after `Finished` or the first error; dropping it ends the
    /// exchange. Every wait inside has a deadline.
    fn stream(&self, request: ModelRequest) -> ModelStream;
}

pub type ModelStream = Pin<Box<dyn Stream<Item = Result<ModelEvent, ProviderError>> + Send>>;

#[derive(Clone, Debug)]
pub struct ModelRequest {
    pub agent: AgentId,
    /// The model as its provider knows it.
    pub model: String,
    pub system: Arc<str>,
    pub messages: Messages,
    pub tools: Arc<[ToolDefinition]>,
    pub output_tokens_max: u64,
    /// Whether the model is asked to think before it answers.
    pub reasoning: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelEvent {
    Text(String),
    Reasoning(String),
    /// `index` names the call among those of this answer.
    ToolCallStarted {
        index: usize,
        id: String,
        name: String,
    },
    /// A piece of the call's arguments, as JSON text.
    ToolCallDelta {
        index: usize,
        arguments: String,
    },
    Usage(Usage),
    /// Nothing of an answer has come, and the request is repeated.
    Retry(Retry),
    Finished(FinishReason),
}

/// A request that failed in passing and is repeated after a wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retry {
    /// The attempt that failed, from 1.
    pub attempt: u32,
    pub after: Duration,
    /// In our own words, for people.
    pub reason: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FinishReason {
    Stop,
    Length,
    ToolCalls,
}

/// An exchange with a model that did not end well.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct ProviderError {
    pub fault: Fault,
    pub status: Option<u16>,
    pub attempts: u32,
    pub retryable: bool,
    /// In our own words, for people.
    pub message: String,
}

impl ProviderError {
    /// A stream that ended before the answer did.
    pub fn ended_early() -> Self {
        Self {
            fault: Fault::Eof,
            status: None,
            attempts: 1,
            retryable: true,
            message: "the model's answer ended without a finish reason".to_owned(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    Auth,
    Status,
    Connect,
    Timeout,
    Stall,
    Reset,
    Eof,
    ErrorInStream,
    BadJson,
    Empty,
}

impl Fault {
    /// The name in `data.fault` of a JSON-RPC error.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auth => "auth",
            Self::Status => "status",
            Self::Connect => "connect",
            Self::Timeout => "timeout",
            Self::Stall => "stall",
            Self::Reset => "reset",
            Self::Eof => "eof",
            Self::ErrorInStream => "error_in_stream",
            Self::BadJson => "bad_json",
            Self::Empty => "empty",
        }
    }
}
