//! One turn: sample the model, run the tools it asks for, repeat, stop.
//! Pure: it never waits, reads a clock or touches a file; `actor` performs the effects it returns.
//!
//! The conversation that its `Append` effects build always keeps this: every tool call has exactly
//! one result, directly after its message and in order; no result without a call; no empty
//! assistant message. And every turn ends exactly once.

use super::batch::Batch;
use super::context::{Compacted, MayCompact};
use super::outcome::{CancelReason, Failure, Finish, Outcome};
use crate::event::What;
use crate::limits::EMPTY_ANSWERS_MAX;
use crate::message::{AssistantMeta, Message, ToolCall, Usage};
use crate::policy::Permit;
use crate::policy::budget::Exceeded;
use crate::provider::{Fault, FinishReason, ProviderError, Retry};
use crate::tool::Question;

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
    /// The limit that was reached: the model is not asked again.
    spent: Option<Exceeded>,
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
    /// A call that was held back was looked at: somebody has to be asked, or nobody.
    Examined {
        index: usize,
        question: Option<Question>,
    },
    /// Somebody was asked about a call.
    Decided {
        index: usize,
        verdict: Verdict,
    },
    /// A call that was to run does, now that this is on record.
    ToolStarted {
        index: usize,
    },
    ToolEnded {
        index: usize,
        result: ToolResult,
    },
    /// Nothing is left for another question, whatever the answer that follows is.
    Spent(Exceeded),
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

/// What becomes of a call about which somebody was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Run(Permit),
    /// With what its model is told.
    NotRun(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    Cancel(CancelReason),
    Timeout,
    Limit(Exceeded),
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
    /// The call runs, unless it is to be looked at first ([`Turn::hold`]).
    Run {
        index: usize,
        call: ToolCall,
    },
    /// A call that was held back runs.
    RunPermitted {
        index: usize,
        call: ToolCall,
        permit: Permit,
    },
    /// Somebody is asked whether a call may run.
    Confirm {
        index: usize,
        call: ToolCall,
        question: Question,
    },
    /// Nobody needs to be asked any more about a call that was held back.
    Withdraw {
        index: usize,
        why: String,
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
            spent: None,
        };
        (turn, vec![Effect::Ask])
    }

    /// The model's text so far.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What its model said that it used so far.
    pub fn usage(&self) -> Usage {
        self.usage
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
            Input::Examined { index, question } => self.on_examined(index, question),
            Input::Decided { index, verdict } => self.on_decided(index, verdict),
            Input::ToolStarted { index } => {
                self.batch().start(index);
                Vec::new()
            }
            Input::ToolEnded { index, result } => self.on_tool_ended(index, result),
            Input::Spent(exceeded) => {
                self.spent = Some(exceeded);
                Vec::new()
            }
            Input::Defect { error_id } => self.fail(Failure::Internal { error_id }),
            Input::Stop(Stop::Timeout) => self.fail(Failure::Timeout),
            Input::Stop(Stop::Limit(exceeded)) => self.fail(Failure::limit(exceeded)),
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
        match self.spent {
            // Nobody could be told what the calls come to, so none is run.
            Some(exceeded) => effects.extend(self.fail(Failure::limit(exceeded))),
            None => self.advance(&mut effects),
        }
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

    /// Has a call that is due looked at before it runs: nothing of it is on record, and it certainly had
    /// no effect.
    pub fn hold(&mut self, index: usize) {
        self.batch().hold(index);
    }

    fn on_examined(&mut self, index: usize, question: Option<Question>) -> Vec<Effect> {
        let batch = self.batch();
        match question {
            None => vec![batch.release(index, Permit::Nothing)],
            Some(question) => {
                vec![Effect::Confirm { index, call: batch.held(index), question }]
            }
        }
    }

    fn on_decided(&mut self, index: usize, verdict: Verdict) -> Vec<Effect> {
        let batch = self.batch();
        match verdict {
            Verdict::Run(permit) => vec![batch.release(index, permit)],
            Verdict::NotRun(why) => {
                batch.refuse(index, why);
                let mut effects = Vec::new();
                self.advance(&mut effects);
                effects
            }
        }
    }

    fn on_tool_ended(&mut self, index: usize, result: ToolResult) -> Vec<Effect> {
        let mut effects = vec![self.batch().end(index, result)];
        self.advance(&mut effects);
        effects
    }

    fn batch(&mut self) -> &mut Batch {
        let Phase::Acting(batch) = &mut self.phase else {
            panic!("tools run only while a batch does");
        };
        batch
    }

    /// Appends results that are due, starts calls that may start, and asks the model again once
    /// all have ended.
    fn advance(&mut self, effects: &mut Vec<Effect>) {
        let batch = self.batch();
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

#[cfg(test)]
#[path = "turn_tests.rs"]
mod tests;
