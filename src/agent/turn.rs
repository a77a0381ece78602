//! One turn: sample the model, run the tools it asks for, repeat, stop.
//! Pure: it never waits, reads a clock or touches a file; `actor` performs the effects it returns.
//!
//! The conversation that its `Append` effects build always keeps this: every tool call has exactly
//! one result, directly after its message and in order; no result without a call; no empty
//! assistant message. And every turn ends exactly once.

use serde_json::Value;

use super::context::{Compacted, MayCompact};
use super::outcome::{CancelReason, Failure, Finish, Outcome};
use crate::event::{self, What};
use crate::limits::EMPTY_ANSWERS_MAX;
use crate::message::{AssistantMeta, Message, ToolCall, ToolMeta, Usage};
use crate::provider::{Fault, FinishReason, ProviderError, Retry};
use crate::tool::PARALLEL_ARGUMENT;

#[derive(Debug)]
pub struct Turn {
    rules: Rules,
    phase: Phase,
    /// The model's text of the whole turn.
    text: String,
    usage: Usage,
    iterations: u32,
    /// In a row.
    empty_answers: u32,
    compaction: Compaction,
}

/// Whether older messages may become a summary before the model is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compaction {
    Allowed,
    /// For this question, so that it is asked next whatever its length.
    Done,
    /// It failed, and is not tried again in this turn.
    GivenUp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    pub iterations_max: u32,
    pub concurrent_tools_max: usize,
}

/// What happened to the turn.
#[derive(Clone, Debug)]
pub enum Input {
    Text(String),
    /// The model is asked the same once more, after a wait.
    Retrying(Retry),
    Answered(Answer),
    Broke(ProviderError),
    /// In place of an answer: the conversation is shorter now.
    Compacted(Compacted),
    /// The conversation could not become shorter; what does not fit is left out.
    NotCompacted,
    /// A call that was to run does, now that this is on record.
    ToolStarted {
        index: usize,
    },
    ToolEnded {
        index: usize,
        result: ToolResult,
    },
    /// A task of the turn died by a defect of ours, which the log names.
    Defect {
        error_id: String,
    },
    Stop(Stop),
}

/// What a model's answer held besides its text.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    pub calls: Vec<ToolCall>,
    pub finish: FinishReason,
    pub usage: Usage,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolResult {
    pub content: String,
    pub error: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    Cancel(CancelReason),
    Timeout,
    /// What the turn did could not be written down.
    Storage,
}

/// What the actor does next, in order. It asks and runs only once everything before is durable.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    Ask,
    Append(Message),
    /// A summary takes the place of older messages.
    Compact(Compacted),
    /// Something that those who follow the turn should know.
    Tell(What),
    Run {
        index: usize,
        call: ToolCall,
    },
    /// A call that was started has its result.
    ToolEnded {
        call: ToolCall,
        result: ToolResult,
    },
    /// Ends all work of this turn that still runs.
    Abandon,
    Finish(Outcome),
}

#[derive(Debug)]
enum Phase {
    /// The model is answering; `text` is what this answer has said so far.
    Asking {
        text: String,
    },
    Acting(Batch),
    Done,
}

/// The tool calls of one answer.
#[derive(Debug)]
struct Batch {
    slots: Vec<Slot>,
    mode: Mode,
    at_once: usize,
    /// Results are appended in call order, so those before this one are in the conversation.
    appended: usize,
    /// Some call was not run, or not to its end.
    halted: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// One after another, up to the first failure.
    Sequential,
    Parallel,
}

#[derive(Debug)]
struct Slot {
    call: ToolCall,
    state: SlotState,
}

#[derive(Debug)]
enum SlotState {
    Waiting,
    /// It runs once that is on record. Cut off before, it certainly had no effect.
    Due,
    Running,
    Ended(ToolResult),
}

impl Turn {
    /// Starts a turn whose user message has been appended.
    pub fn start(rules: Rules) -> (Self, Vec<Effect>) {
        let turn = Self {
            rules,
            phase: Phase::Asking { text: String::new() },
            text: String::new(),
            usage: Usage::default(),
            iterations: 1,
            empty_answers: 0,
            compaction: Compaction::Allowed,
        };
        (turn, vec![Effect::Ask])
    }

    /// The model's text so far.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// How often the model was asked.
    pub fn iterations(&self) -> u32 {
        self.iterations
    }

    /// Whether older messages may become a summary before the model is asked.
    pub fn may_compact(&self) -> MayCompact {
        match self.compaction {
            Compaction::Allowed => MayCompact::Yes,
            Compaction::Done | Compaction::GivenUp => MayCompact::No,
        }
    }

    pub fn on(&mut self, input: Input) -> Vec<Effect> {
        if matches!(self.phase, Phase::Done) {
            return Vec::new();
        }
        match input {
            Input::Text(piece) => self.on_text(&piece),
            Input::Retrying(Retry { attempt, after, reason }) => {
                let after_ms = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
                vec![Effect::Tell(What::ProviderRetry { attempt, after_ms, reason })]
            }
            Input::Answered(answer) => self.on_answer(answer),
            Input::Broke(error) => self.fail(Failure::Provider(error)),
            Input::Compacted(compacted) => self.on_compacted(compacted),
            Input::NotCompacted => {
                self.compaction = Compaction::GivenUp;
                Vec::new()
            }
            Input::ToolStarted { index } => self.on_tool_started(index),
            Input::ToolEnded { index, result } => self.on_tool_ended(index, result),
            Input::Defect { error_id } => self.fail(Failure::Internal { error_id }),
            Input::Stop(Stop::Timeout) => self.fail(Failure::Timeout),
            Input::Stop(Stop::Storage) => self.fail(Failure::Storage),
            Input::Stop(Stop::Cancel(reason)) => {
                self.end_early(reason.name(), Outcome::Cancelled { reason })
            }
        }
    }

    fn on_text(&mut self, piece: &str) -> Vec<Effect> {
        let Phase::Asking { text } = &mut self.phase else {
            panic!("text arrives only while the model answers");
        };
        text.push_str(piece);
        self.text.push_str(piece);
        Vec::new()
    }

    fn on_compacted(&mut self, compacted: Compacted) -> Vec<Effect> {
        let unanswered = matches!(&self.phase, Phase::Asking { text } if text.is_empty());
        assert!(unanswered, "a conversation becomes shorter before its model is asked");
        assert_eq!(self.compaction, Compaction::Allowed, "one question, one summary");
        self.compaction = Compaction::Done;
        self.usage += compacted.usage;
        vec![Effect::Compact(compacted), Effect::Ask]
    }

    fn on_answer(&mut self, answer: Answer) -> Vec<Effect> {
        let Phase::Asking { text } = &mut self.phase else {
            panic!("an answer ends only while the model answers");
        };
        let content = std::mem::take(text);
        self.usage += answer.usage;
        if self.compaction == Compaction::Done {
            self.compaction = Compaction::Allowed;
        }
        if answer.calls.is_empty() {
            return self.on_last_answer(content, answer.finish);
        }
        self.empty_answers = 0;
        let message = Message::Assistant { content, tool_calls: answer.calls.clone(), meta: None };
        let batch = Batch::new(answer.calls, self.rules.concurrent_tools_max);
        let started = Effect::Tell(What::BatchStarted(batch.told()));
        if answer.finish == FinishReason::Length {
            return self.on_cut_calls(message, started, batch);
        }
        self.phase = Phase::Acting(batch);
        let mut effects = vec![Effect::Append(message), started];
        self.advance(&mut effects);
        effects
    }

    /// The answer ended at its length, perhaps within a call: none of them is what was meant.
    fn on_cut_calls(&mut self, message: Message, started: Effect, mut batch: Batch) -> Vec<Effect> {
        let mut effects = vec![Effect::Append(message), started];
        batch.skip_waiting(
            "Not run: the answer was cut off at its length. Say less, or ask for less.",
        );
        batch.append_ended(&mut effects);
        effects.push(batch.over());
        effects.push(self.complete(Finish::Length));
        effects
    }

    fn on_last_answer(&mut self, content: String, finish: FinishReason) -> Vec<Effect> {
        let finish = match finish {
            FinishReason::Stop | FinishReason::ToolCalls => Finish::Stop,
            FinishReason::Length => Finish::Length,
        };
        if content.is_empty() && finish == Finish::Stop {
            return self.on_empty_answer();
        }
        let mut effects = Vec::new();
        if !content.is_empty() {
            let message = Message::Assistant { content, tool_calls: Vec::new(), meta: None };
            effects.push(Effect::Append(message));
        }
        effects.push(self.complete(finish));
        effects
    }

    fn on_empty_answer(&mut self) -> Vec<Effect> {
        self.empty_answers += 1;
        if self.empty_answers < EMPTY_ANSWERS_MAX {
            return vec![Effect::Ask];
        }
        self.fail(Failure::Provider(ProviderError {
            fault: Fault::Empty,
            status: None,
            attempts: self.empty_answers,
            retryable: true,
            message: "the model gave an empty answer, twice".to_owned(),
        }))
    }

    fn on_tool_started(&mut self, index: usize) -> Vec<Effect> {
        let Phase::Acting(batch) = &mut self.phase else {
            panic!("a tool starts only while tools run");
        };
        let slot = &mut batch.slots[index];
        assert!(matches!(slot.state, SlotState::Due), "a tool starts once, and when it was due");
        slot.state = SlotState::Running;
        Vec::new()
    }

    fn on_tool_ended(&mut self, index: usize, result: ToolResult) -> Vec<Effect> {
        let Phase::Acting(batch) = &mut self.phase else {
            panic!("a tool ends only while tools run");
        };
        let mut effects = vec![batch.end(index, result)];
        self.advance(&mut effects);
        effects
    }

    /// Appends results that are due, starts calls that may start, and asks the model again once
    /// all have ended.
    fn advance(&mut self, effects: &mut Vec<Effect>) {
        let Phase::Acting(batch) = &mut self.phase else {
            panic!("only a batch advances");
        };
        batch.append_ended(effects);
        batch.start_waiting(effects);
        if !batch.is_over() {
            return;
        }
        effects.push(batch.over());
        if self.iterations >= self.rules.iterations_max {
            effects.push(self.complete(Finish::IterationLimit));
            return;
        }
        self.iterations += 1;
        self.phase = Phase::Asking { text: String::new() };
        effects.push(Effect::Ask);
    }

    fn complete(&mut self, finish: Finish) -> Effect {
        self.phase = Phase::Done;
        let content = std::mem::take(&mut self.text).into();
        Effect::Finish(Outcome::Completed { content, finish, usage: self.usage })
    }

    fn fail(&mut self, failure: Failure) -> Vec<Effect> {
        self.end_early(failure.kind(), Outcome::Failed(failure))
    }

    /// Ends the turn wherever it is, keeping partial text and giving every open call its result.
    fn end_early(&mut self, why: &str, outcome: Outcome) -> Vec<Effect> {
        let mut effects = vec![Effect::Abandon];
        match std::mem::replace(&mut self.phase, Phase::Done) {
            Phase::Asking { text } if text.is_empty() => {}
            Phase::Asking { text } => effects.push(Effect::Append(Message::Assistant {
                content: text,
                tool_calls: Vec::new(),
                meta: Some(AssistantMeta { partial: why.to_owned() }),
            })),
            Phase::Acting(mut batch) => {
                batch.cut(why, &mut effects);
                batch.append_ended(&mut effects);
                assert!(batch.is_over(), "a batch that was cut has a result for every call");
                effects.push(batch.over());
            }
            Phase::Done => panic!("a turn ends exactly once"),
        }
        effects.push(Effect::Finish(outcome));
        effects
    }
}

impl Batch {
    fn new(calls: Vec<ToolCall>, concurrent_max: usize) -> Self {
        let parallel = calls.iter().any(|call| call.arguments[PARALLEL_ARGUMENT] == true);
        let slots =
            calls.into_iter().map(|call| Slot { call, state: SlotState::Waiting }).collect();
        let (mode, at_once) =
            if parallel { (Mode::Parallel, concurrent_max) } else { (Mode::Sequential, 1) };
        Self { slots, mode, at_once, appended: 0, halted: false }
    }

    fn told(&self) -> event::Batch {
        let calls = self.slots.iter().map(|slot| &slot.call);
        event::Batch::of(calls, self.mode == Mode::Parallel)
    }

    fn over(&self) -> Effect {
        let told = self.told();
        Effect::Tell(if self.halted { What::BatchHalted(told) } else { What::BatchCompleted(told) })
    }

    fn is_over(&self) -> bool {
        self.appended == self.slots.len()
    }

    fn end(&mut self, index: usize, result: ToolResult) -> Effect {
        let failed = result.error;
        let slot = &mut self.slots[index];
        assert!(matches!(slot.state, SlotState::Running), "a tool ends only after it started");
        let ended = Effect::ToolEnded { call: slot.call.clone(), result: result.clone() };
        slot.state = SlotState::Ended(result);
        if failed && self.mode == Mode::Sequential {
            self.skip_waiting("Not run: an earlier tool call of this message failed.");
        }
        ended
    }

    fn skip_waiting(&mut self, why: &str) {
        for slot in &mut self.slots {
            if matches!(slot.state, SlotState::Waiting) {
                self.halted = true;
                slot.state = SlotState::Ended(ToolResult { content: why.to_owned(), error: true });
            }
        }
    }

    fn cut(&mut self, why: &str, effects: &mut Vec<Effect>) {
        let not_run = format!("Not run: the turn ended early ({why}).");
        self.skip_waiting(&not_run);
        for slot in &mut self.slots {
            let content = match &slot.state {
                SlotState::Waiting => panic!("calls that waited were skipped"),
                SlotState::Due => not_run.clone(),
                SlotState::Running => format!(
                    "Cut off while it ran, because the turn ended early ({why}): whether it had an \
                     effect is not known."
                ),
                SlotState::Ended(_) => continue,
            };
            let result = ToolResult { content, error: true };
            effects.push(Effect::ToolEnded { call: slot.call.clone(), result: result.clone() });
            slot.state = SlotState::Ended(result);
            self.halted = true;
        }
    }

    fn start_waiting(&mut self, effects: &mut Vec<Effect>) {
        let mut free = self.at_once - self.open();
        for (index, slot) in self.slots.iter_mut().enumerate() {
            if free == 0 {
                return;
            }
            if matches!(slot.state, SlotState::Waiting) {
                slot.state = SlotState::Due;
                free -= 1;
                effects.push(Effect::Run { index, call: without_parallel(&slot.call) });
            }
        }
    }

    /// How many calls run or are about to.
    fn open(&self) -> usize {
        let is_open = |slot: &&Slot| matches!(slot.state, SlotState::Due | SlotState::Running);
        self.slots.iter().filter(is_open).count()
    }

    fn append_ended(&mut self, effects: &mut Vec<Effect>) {
        for slot in &self.slots[self.appended..] {
            let SlotState::Ended(result) = &slot.state else {
                return;
            };
            self.appended += 1;
            effects.push(Effect::Append(Message::Tool {
                content: result.content.clone(),
                tool_call_id: slot.call.id.clone(),
                meta: result.error.then_some(ToolMeta { error: true }),
            }));
        }
    }
}

/// The call as its tool sees it: `_parallel` belongs to the batch, not to the tool.
fn without_parallel(call: &ToolCall) -> ToolCall {
    let mut call = call.clone();
    if let Value::Object(arguments) = &mut call.arguments {
        arguments.shift_remove(PARALLEL_ARGUMENT);
    }
    call
}

#[cfg(test)]
#[path = "turn_tests.rs"]
mod tests;
