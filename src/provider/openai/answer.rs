//! The chunks of one answer to model events.
//! Pure: it never waits; whoever reads the bytes says when they ended.

use std::collections::VecDeque;

use serde_json::Value;

use super::chunk::{CallDelta, Choice, Chunk, Delta, Object};
use crate::limits::TOOL_CALLS_PER_MESSAGE_MAX;
use crate::message::Usage;
use crate::provider::error_object::ErrorObject;
use crate::provider::wire::{self, AnswerError, Progress, Size};
use crate::provider::{FinishReason, ModelEvent, names};
use crate::sse::Record;

/// The record that closes a stream.
const DONE: &str = "[DONE]";

/// An answer as far as it has arrived.
#[derive(Debug, Default)]
pub(super) struct Answer {
    size: Size,
    calls: Vec<Call>,
    finish: Option<FinishReason>,
    /// The last one counts: some servers send a running total with every chunk.
    usage: Option<Usage>,
}

/// A tool call of this answer. Its place in the list is its index in our events.
#[derive(Debug)]
struct Call {
    wire_index: Option<u64>,
    wire_id: Option<String>,
    id: String,
    /// Arguments that came before the name, which starts the call.
    held: String,
    started: bool,
}

impl wire::Answer for Answer {
    fn on_record(
        &mut self,
        record: &Record,
        events: &mut VecDeque<ModelEvent>,
    ) -> Result<Progress, AnswerError> {
        let data = record.data.trim();
        if data == DONE {
            return Ok(Progress::Done);
        }
        if data.is_empty() {
            return Ok(Progress::More);
        }
        if record.event.as_deref() == Some("error") {
            return Err(AnswerError::told(data));
        }
        let chunk: Chunk = serde_json::from_str(data).map_err(|_| AnswerError::BadJson)?;
        if chunk.error.is_some() || chunk.object == Some(Object::Error) {
            return Err(AnswerError::told(data));
        }
        if let Some(usage) = chunk.usage {
            self.usage = Some(Usage {
                input_tokens: usage.prompt_tokens.unwrap_or(0),
                output_tokens: usage.completion_tokens.unwrap_or(0),
            });
        }
        // One answer was asked for; the last chunk of most servers has none, only the usage.
        if let Some(choice) = chunk.choices.and_then(|choices| choices.into_iter().next()) {
            self.on_choice(choice, events)?;
        }
        Ok(Progress::More)
    }

    fn is_whole(&self) -> bool {
        self.finish.is_some()
    }

    fn has_content(&self) -> bool {
        self.size.is_some()
    }

    fn end(&self, events: &mut VecDeque<ModelEvent>) -> Result<(), AnswerError> {
        let said = self.finish.ok_or(AnswerError::NoFinishReason)?;
        if self.calls.iter().any(|call| !call.started) {
            return Err(AnswerError::NamelessCall);
        }
        events.extend(self.usage.map(ModelEvent::Usage));
        events.push_back(ModelEvent::Finished(wire::reason(said, self.calls.len())));
        Ok(())
    }
}

impl Answer {
    fn on_choice(
        &mut self,
        choice: Choice,
        events: &mut VecDeque<ModelEvent>,
    ) -> Result<(), AnswerError> {
        if let Some(delta) = choice.delta {
            self.on_delta(delta, events)?;
        }
        self.finish = match choice.finish_reason.as_deref() {
            None | Some("") => self.finish,
            Some("length") => Some(FinishReason::Length),
            Some("tool_calls" | "function_call") => Some(FinishReason::ToolCalls),
            Some("content_filter") => return Err(AnswerError::ContentFilter),
            Some("error") => {
                return Err(AnswerError::ErrorObject(ErrorObject {
                    message: None,
                    kind: None,
                    status: None,
                }));
            }
            // Names that only one server knows (`eos`, `end_turn`) all mean that the model was done.
            Some(_) => Some(FinishReason::Stop),
        };
        Ok(())
    }

    fn on_delta(
        &mut self,
        delta: Delta,
        events: &mut VecDeque<ModelEvent>,
    ) -> Result<(), AnswerError> {
        // Servers in transition send the same thought under both names.
        let reasoning = non_empty(delta.reasoning).or(non_empty(delta.reasoning_content));
        if let Some(text) = reasoning {
            self.size.grow(text.len())?;
            events.push_back(ModelEvent::Reasoning(text));
        }
        for text in [delta.content, delta.refusal].into_iter().filter_map(non_empty) {
            self.size.grow(text.len())?;
            events.push_back(ModelEvent::Text(text));
        }
        for call in delta.tool_calls.into_iter().flatten() {
            self.on_call(call, events)?;
        }
        Ok(())
    }

    fn on_call(
        &mut self,
        delta: CallDelta,
        events: &mut VecDeque<ModelEvent>,
    ) -> Result<(), AnswerError> {
        let id = non_empty(delta.id);
        let (name, arguments) = match delta.function {
            Some(function) => (
                non_empty(function.name),
                function.arguments.map(arguments_text).unwrap_or_default(),
            ),
            None => (None, String::new()),
        };
        self.size.grow(id.as_ref().map_or(0, String::len))?;
        self.size.grow(name.as_ref().map_or(0, String::len))?;
        self.size.grow(arguments.len())?;
        let index = match self.place(delta.index, id.as_deref(), name.as_deref()) {
            Some(index) => index,
            None => self.open_call(delta.index, id)?,
        };
        let call = &mut self.calls[index];
        call.held.push_str(&arguments);
        if let Some(name) = name
            && !call.started
        {
            call.started = true;
            let id = call.id.clone();
            events.push_back(ModelEvent::ToolCallStarted { index, id, name });
        }
        if call.started && !call.held.is_empty() {
            let arguments = std::mem::take(&mut call.held);
            events.push_back(ModelEvent::ToolCallDelta { index, arguments });
        }
        Ok(())
    }

    /// Finds the call that a delta goes on with; `None` where it begins one.
    fn place(&self, index: Option<u64>, id: Option<&str>, name: Option<&str>) -> Option<usize> {
        match (index, id) {
            // Ollama has sent several calls under the index 0, told apart by their ids.
            (Some(_), _) => {
                let at = self.calls.iter().rposition(|call| call.wire_index == index)?;
                let known = self.calls[at].wire_id.as_deref();
                (id.is_none() || known.is_none() || id == known).then_some(at)
            }
            (None, Some(_)) => self.calls.iter().rposition(|call| call.wire_id.as_deref() == id),
            // Without index and id only a name can begin a call.
            (None, None) => self.calls.len().checked_sub(1).filter(|_| name.is_none()),
        }
    }

    fn open_call(
        &mut self,
        wire_index: Option<u64>,
        wire_id: Option<String>,
    ) -> Result<usize, AnswerError> {
        if self.calls.len() >= TOOL_CALLS_PER_MESSAGE_MAX {
            return Err(AnswerError::TooManyCalls);
        }
        let taken = |id: &str| self.calls.iter().any(|call| call.id == id);
        let id = match &wire_id {
            Some(id) if !taken(id) => id.clone(),
            // Results are matched to calls by id, so each call of an answer has its own.
            Some(_) | None => names::free_id(self.calls.len(), taken),
        };
        self.calls.push(Call { wire_index, wire_id, id, held: String::new(), started: false });
        Ok(self.calls.len() - 1)
    }
}

fn arguments_text(arguments: Value) -> String {
    match arguments {
        Value::String(text) => text,
        Value::Null => String::new(),
        object => object.to_string(),
    }
}

fn non_empty(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}

#[cfg(test)]
#[path = "answer_tests.rs"]
mod tests;
