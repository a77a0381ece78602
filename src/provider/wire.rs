//! What differs between the wires: the body of a request, and what the records of an answer say.
//! Pure: a wire never waits and never decides what to repeat.

use std::collections::VecDeque;
use std::fmt;

use super::error_object::ErrorObject;
use super::{FinishReason, ModelEvent, ModelRequest};
use crate::limits::ANSWER_BYTES_MAX;
use crate::sse::Record;

pub(super) trait Wire: Send + Sync + fmt::Debug {
    /// The request as JSON.
    fn body(&self, request: &ModelRequest) -> Vec<u8>;

    /// An answer of which nothing has arrived yet.
    fn answer(&self) -> Box<dyn Answer>;
}

/// An answer as far as it has arrived.
pub(super) trait Answer: Send {
    /// Takes one record and appends what it says to `events`.
    fn on_record(
        &mut self,
        record: &Record,
        events: &mut VecDeque<ModelEvent>,
    ) -> Result<Progress, AnswerError>;

    /// Whether the model said why it stopped: nothing of the answer itself is missing any more.
    fn is_whole(&self) -> bool;

    /// Whether anything that a reader may have seen has arrived.
    fn has_content(&self) -> bool;

    /// The stream has ended: appends the usage and the finish.
    fn end(&self, events: &mut VecDeque<ModelEvent>) -> Result<(), AnswerError>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    More,
    /// The stream was closed in order.
    Done,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AnswerError {
    ErrorObject(ErrorObject),
    BadJson,
    NoFinishReason,
    ContentFilter,
    NamelessCall,
    TooLarge,
    TooManyCalls,
}

impl AnswerError {
    /// The error that stands in place of an answer.
    pub(super) fn told(data: &str) -> Self {
        match serde_json::from_str(data) {
            Ok(value) => Self::ErrorObject(ErrorObject::of(&value)),
            Err(_) => Self::BadJson,
        }
    }
}

/// Why an answer with so many calls ended. Some servers say that it stopped where it asks for tools,
/// and one that was forced to ask may ask for none.
pub(super) fn reason(said: FinishReason, calls: usize) -> FinishReason {
    match (said, calls) {
        (FinishReason::Length, _) => FinishReason::Length,
        (FinishReason::Stop | FinishReason::ToolCalls, 0) => FinishReason::Stop,
        (FinishReason::Stop | FinishReason::ToolCalls, _) => FinishReason::ToolCalls,
    }
}

/// How much of an answer has arrived, up to its bound.
#[derive(Debug, Default)]
pub(super) struct Size {
    bytes: usize,
}

impl Size {
    pub(super) fn grow(&mut self, bytes: usize) -> Result<(), AnswerError> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > ANSWER_BYTES_MAX { Err(AnswerError::TooLarge) } else { Ok(()) }
    }

    pub(super) fn is_some(&self) -> bool {
        self.bytes > 0
    }
}
