//! The records of one streamed message to model events.
//! Pure: it never waits; whoever reads the bytes says when they ended.

use std::collections::VecDeque;

use serde_json::Value;

use super::record::{Block, Delta, Event, Usage as WireUsage};
use crate::limits::TOOL_CALLS_PER_MESSAGE_MAX;
use crate::message::Usage;
use crate::provider::wire::{self, AnswerError, Progress, Size};
use crate::provider::{FinishReason, ModelEvent, names};
use crate::sse::Record;

/// An answer as far as it has arrived.
#[derive(Debug, Default)]
pub(super) struct Answer {
    size: Size,
    calls: Vec<Call>,
    finish: Option<FinishReason>,
    usage: Option<Usage>,
}

/// A tool call of this answer. Its place in the list is its index in our events.
#[derive(Debug)]
struct Call {
    /// The number of its block, `None` once that has ended.
    block: Option<u64>,
    id: String,
    /// Arguments that stood in the block itself; they count where none follow.
    whole: Option<String>,
}

impl wire::Answer for Answer {
    fn on_record(
        &mut self,
        record: &Record,
        events: &mut VecDeque<ModelEvent>,
    ) -> Result<Progress, AnswerError> {
        let data = record.data.trim();
        if data.is_empty() {
            return Ok(Progress::More);
        }
        if record.event.as_deref() == Some("error") {
            return Err(AnswerError::told(data));
        }
        let event: Event = serde_json::from_str(data).map_err(|_| AnswerError::BadJson)?;
        match event {
            Event::MessageStart { message } => {
                self.on_usage(message.and_then(|message| message.usage).as_ref());
            }
            Event::ContentBlockStart { index, content_block } => {
                self.on_block(index, content_block, events)?;
            }
            Event::ContentBlockDelta { index, delta } => self.on_delta(index, delta, events)?,
            Event::ContentBlockStop { index } => self.on_block_end(index, events),
            Event::MessageDelta { delta, usage } => {
                self.on_usage(usage.as_ref());
                self.on_stop(delta.and_then(|delta| delta.stop_reason).as_deref())?;
            }
            Event::MessageStop => return Ok(Progress::Done),
            Event::Error => return Err(AnswerError::told(data)),
            Event::Other => {}
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
        // A block whose end was left out ends with the answer.
        for (index, call) in self.calls.iter().enumerate() {
            let arguments = call.whole.clone();
            events
                .extend(arguments.map(|arguments| ModelEvent::ToolCallDelta { index, arguments }));
        }
        events.extend(self.usage.map(ModelEvent::Usage));
        events.push_back(ModelEvent::Finished(wire::reason(said, self.calls.len())));
        Ok(())
    }
}

impl Answer {
    fn on_block(
        &mut self,
        block: u64,
        content: Block,
        events: &mut VecDeque<ModelEvent>,
    ) -> Result<(), AnswerError> {
        match content {
            Block::Text { text } => self.pass(text.unwrap_or_default(), ModelEvent::Text, events),
            Block::Thinking { thinking } => {
                self.pass(thinking.unwrap_or_default(), ModelEvent::Reasoning, events)
            }
            Block::ToolUse { id, name, input } => {
                let name = name.filter(|name| !name.is_empty()).ok_or(AnswerError::NamelessCall)?;
                let whole = input.filter(|input| *input != Value::Null);
                let whole = whole.map(|input| input.to_string()).filter(|input| input != "{}");
                let id = self.call_id(id)?;
                for part in [Some(&id), Some(&name), whole.as_ref()].into_iter().flatten() {
                    self.size.grow(part.len())?;
                }
                let index = self.calls.len();
                self.calls.push(Call { block: Some(block), id: id.clone(), whole });
                events.push_back(ModelEvent::ToolCallStarted { index, id, name });
                Ok(())
            }
            Block::Other => Ok(()),
        }
    }

    fn on_delta(
        &mut self,
        block: u64,
        delta: Delta,
        events: &mut VecDeque<ModelEvent>,
    ) -> Result<(), AnswerError> {
        match delta {
            Delta::Text { text } => self.pass(text, ModelEvent::Text, events),
            Delta::Thinking { thinking } => self.pass(thinking, ModelEvent::Reasoning, events),
            Delta::Input { partial_json: arguments } if !arguments.is_empty() => {
                self.size.grow(arguments.len())?;
                // Those of a block that is no call of ours are not for us either.
                if let Some(index) = self.open_call(block) {
                    self.calls[index].whole = None;
                    events.push_back(ModelEvent::ToolCallDelta { index, arguments });
                }
                Ok(())
            }
            Delta::Input { .. } | Delta::Other => Ok(()),
        }
    }

    fn on_block_end(&mut self, block: u64, events: &mut VecDeque<ModelEvent>) {
        if let Some(index) = self.open_call(block) {
            self.calls[index].block = None;
            if let Some(arguments) = self.calls[index].whole.take() {
                events.push_back(ModelEvent::ToolCallDelta { index, arguments });
            }
        }
    }

    /// Passes on a piece of text or thought.
    fn pass(
        &mut self,
        piece: String,
        as_event: fn(String) -> ModelEvent,
        events: &mut VecDeque<ModelEvent>,
    ) -> Result<(), AnswerError> {
        self.size.grow(piece.len())?;
        if !piece.is_empty() {
            events.push_back(as_event(piece));
        }
        Ok(())
    }

    fn on_stop(&mut self, reason: Option<&str>) -> Result<(), AnswerError> {
        self.finish = match reason {
            None | Some("") => self.finish,
            Some("max_tokens" | "model_context_window_exceeded") => Some(FinishReason::Length),
            Some("tool_use") => Some(FinishReason::ToolCalls),
            Some("refusal") => return Err(AnswerError::ContentFilter),
            // `end_turn`, `stop_sequence`, and whatever a later version adds.
            Some(_) => Some(FinishReason::Stop),
        };
        Ok(())
    }

    /// Counts are running totals: the last one of each kind holds.
    fn on_usage(&mut self, usage: Option<&WireUsage>) {
        let Some(usage) = usage else { return };
        let input = [usage.input, usage.input_cached, usage.input_from_cache];
        let input = input.into_iter().flatten().reduce(u64::saturating_add);
        let known = self.usage.get_or_insert_default();
        known.input_tokens = input.unwrap_or(0).max(known.input_tokens);
        known.output_tokens = usage.output.unwrap_or(known.output_tokens);
    }

    fn open_call(&self, block: u64) -> Option<usize> {
        self.calls.iter().rposition(|call| call.block == Some(block))
    }

    fn call_id(&self, id: Option<String>) -> Result<String, AnswerError> {
        if self.calls.len() >= TOOL_CALLS_PER_MESSAGE_MAX {
            return Err(AnswerError::TooManyCalls);
        }
        let taken = |id: &str| self.calls.iter().any(|call| call.id == id);
        Ok(match id {
            Some(id) if !id.is_empty() && !taken(&id) => id,
            // Results are matched to calls by id, so each call of an answer has its own.
            Some(_) | None => names::free_id(self.calls.len(), taken),
        })
    }
}

#[cfg(test)]
#[path = "answer_tests.rs"]
mod tests;
