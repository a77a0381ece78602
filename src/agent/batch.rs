//! The tool calls of one answer: which of them runs, waits, is held back or has ended, and their results
//! in the order of the calls. A part of the turn, and as pure.

use serde_json::Value;

use super::turn::{Effect, ToolResult};
use crate::event::{self, What};
use crate::message::{Message, ToolCall, ToolMeta};
use crate::policy::Permit;
use crate::tool::PARALLEL_ARGUMENT;

/// The tool calls of one answer.
#[derive(Debug)]
pub(super) struct Batch {
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
    /// It is looked at, or somebody is asked whether it may run. Nothing of it is on record.
    Held,
    /// It runs once that is on record. Cut off before, it certainly had no effect.
    Due,
    Running,
    Ended(ToolResult),
}

impl Batch {
    pub(super) fn new(calls: Vec<ToolCall>, concurrent_max: usize) -> Self {
        let parallel = calls.iter().any(|call| call.arguments[PARALLEL_ARGUMENT] == true);
        let slots =
            calls.into_iter().map(|call| Slot { call, state: SlotState::Waiting }).collect();
        let (mode, at_once) =
            if parallel { (Mode::Parallel, concurrent_max) } else { (Mode::Sequential, 1) };
        Self { slots, mode, at_once, appended: 0, halted: false }
    }

    pub(super) fn told(&self) -> event::Batch {
        let calls = self.slots.iter().map(|slot| &slot.call);
        event::Batch::of(calls, self.mode == Mode::Parallel)
    }

    pub(super) fn over(&self) -> Effect {
        let told = self.told();
        Effect::Tell(if self.halted { What::BatchHalted(told) } else { What::BatchCompleted(told) })
    }

    pub(super) fn is_over(&self) -> bool {
        self.appended == self.slots.len()
    }

    pub(super) fn end(&mut self, index: usize, result: ToolResult) -> Effect {
        let failed = result.error;
        let slot = &mut self.slots[index];
        assert!(matches!(slot.state, SlotState::Running), "a tool ends only after it started");
        let ended = Effect::ToolEnded { call: slot.call.clone(), result: result.clone() };
        slot.state = SlotState::Ended(result);
        if failed {
            self.on_failure();
        }
        ended
    }

    /// A call that is due is looked at before it runs.
    pub(super) fn hold(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        assert!(matches!(slot.state, SlotState::Due), "only a call that is due is held back");
        slot.state = SlotState::Held;
    }

    /// The call that is held back, as its tool sees it.
    pub(super) fn held(&self, index: usize) -> ToolCall {
        let slot = &self.slots[index];
        assert!(
            matches!(slot.state, SlotState::Held),
            "a call is decided on once, while it is held"
        );
        without_parallel(&slot.call)
    }

    /// A call that was held back is due.
    pub(super) fn release(&mut self, index: usize, permit: Permit) -> Effect {
        let call = self.held(index);
        self.slots[index].state = SlotState::Due;
        Effect::RunPermitted { index, call, permit }
    }

    /// A call that was held back is not run.
    pub(super) fn refuse(&mut self, index: usize, content: String) {
        let _ = self.held(index);
        self.slots[index].state = SlotState::Ended(ToolResult { content, error: true });
        self.halted = true;
        self.on_failure();
    }

    pub(super) fn start(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        assert!(matches!(slot.state, SlotState::Due), "a tool starts once, and when it was due");
        slot.state = SlotState::Running;
    }

    fn on_failure(&mut self) {
        match self.mode {
            Mode::Sequential => {
                self.skip_waiting("Not run: an earlier tool call of this message failed.");
            }
            Mode::Parallel => {}
        }
    }

    pub(super) fn skip_waiting(&mut self, why: &str) {
        for slot in &mut self.slots {
            if matches!(slot.state, SlotState::Waiting) {
                self.halted = true;
                slot.state = SlotState::Ended(ToolResult { content: why.to_owned(), error: true });
            }
        }
    }

    pub(super) fn cut(&mut self, why: &str, effects: &mut Vec<Effect>) {
        let not_run = format!("Not run: the turn ended early ({why}).");
        self.skip_waiting(&not_run);
        for (index, slot) in self.slots.iter_mut().enumerate() {
            let content = match &slot.state {
                SlotState::Waiting => panic!("calls that waited were skipped"),
                SlotState::Held => {
                    // It never started, so it has no end to tell.
                    effects.push(Effect::Withdraw { index, why: why.to_owned() });
                    slot.state =
                        SlotState::Ended(ToolResult { content: not_run.clone(), error: true });
                    self.halted = true;
                    continue;
                }
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

    pub(super) fn start_waiting(&mut self, effects: &mut Vec<Effect>) {
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

    /// How many calls run, are about to, or would if somebody let them.
    fn open(&self) -> usize {
        let is_open = |slot: &&Slot| match slot.state {
            SlotState::Held | SlotState::Due | SlotState::Running => true,
            SlotState::Waiting | SlotState::Ended(_) => false,
        };
        self.slots.iter().filter(is_open).count()
    }

    pub(super) fn append_ended(&mut self, effects: &mut Vec<Effect>) {
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
