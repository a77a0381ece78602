//! Models: a request in, a stream of events out, the same for every wire.
//! A provider maps; it never decides about a turn.

mod defaults; // where the configuration says nothing
mod demo; // the built-in model
mod key; // keys, and keeping them out of every text
mod models; // which models there are
mod openai; // the chat completions wire
#[cfg(test)]
#[path = "replay_tests.rs"]
mod replay; // a scripted server
pub mod script; // answers written down beforehand
mod scrub; // secrets in whole bodies
mod traffic; // what passes, for whoever watches

use std::pin::Pin;
use std::sync::Arc;

use futures_util::Stream;
use serde::{Deserialize, Serialize};

pub use models::{Model, ModelError, Models};
pub use openai::EndpointError;
pub use traffic::{BodyEnd, Carried, Passed, Traffic};

use crate::id::AgentId;
use crate::message::{Message, ToolDefinition, Usage};

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
    pub messages: Vec<Arc<Message>>,
    pub tools: Arc<[ToolDefinition]>,
    pub output_tokens_max: u64,
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
    Finished(FinishReason),
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
