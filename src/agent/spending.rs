//! How an agent keeps to its limits: what it refuses, when it stops, and what is charged for an answer.
//! The rules are `policy::budget`; here is where they are met.

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::time::Instant;

use super::Shared;
use super::account::Metered;
use super::actor::Agent;
use super::counting::{self, Countable};
use super::handle::CompactError;
use super::outbox::{Entry, Then};
use super::outcome::{Failure, Outcome};
use super::tokens::Encoding;
use super::turn::{Input, Stop};
use crate::limits::WORK_QUEUE_MAX;
use crate::message::{Message, Usage};
use crate::policy::budget::Exceeded;
use crate::provider::ModelRequest;

/// One question to a model, as far as it is needed to say what the answer cost.
pub struct Meter {
    asked: ModelRequest,
}

impl Meter {
    /// `None` where nobody wants to know.
    pub fn of(request: &ModelRequest, metered: Metered) -> Option<Self> {
        match metered {
            Metered::Yes => Some(Self { asked: request.clone() }),
            Metered::No => None,
        }
    }

    /// The tokens of question and answer: as they were reported, else as they are counted.
    pub async fn cost(self, shared: &Shared, reported: Usage, answer: Message) -> u64 {
        if reported != Usage::default() {
            return reported.input_tokens.saturating_add(reported.output_tokens);
        }
        let count = move || {
            let asked = &self.asked;
            let encoding = Encoding::of(&asked.model);
            let messages = asked.messages.iter().map(|message| encoding.message(message));
            encoding.text(&asked.system)
                + asked.tools.iter().map(|tool| encoding.tool(tool)).sum::<u64>()
                + messages.sum::<u64>()
                + encoding.message(&answer)
        };
        shared.world.blocking.call(count).await
    }
}

/// What answers have cost that nobody streams to their end any more. Counting takes its time, and their
/// turns are over by then.
pub struct LateCosts {
    sender: mpsc::Sender<u64>,
    counted: mpsc::Receiver<u64>,
}

impl LateCosts {
    pub fn new() -> Self {
        let (sender, counted) = mpsc::channel(WORK_QUEUE_MAX);
        Self { sender, counted }
    }

    /// Waits for the next. Dropping the future loses nothing.
    pub async fn counted(&mut self) -> u64 {
        self.counted.recv().await.expect("the agent itself holds a sender")
    }

    /// Those that nobody has taken.
    pub fn rest(&mut self) -> u64 {
        std::iter::from_fn(|| self.counted.try_recv().ok()).sum()
    }
}

impl Agent {
    /// An answer that was cut off had its price, too: who cancels before the end would have it for nothing.
    pub(super) fn pay_for_cut_answer(&mut self) {
        if self.account.metered() == Metered::No {
            return;
        }
        let what = Countable {
            model: self.model.clone(),
            preamble: Arc::clone(&self.preamble),
            messages: self.conversation.tokens(Encoding::of(&self.model.id)),
        };
        let (blocking, to) = (Arc::clone(&self.shared.world.blocking), self.late.sender.clone());
        self.workplace.beside(async move {
            let cost = counting::count(blocking.as_ref(), what).await.total();
            // An agent that has left owes nothing any more.
            let _ = to.send(cost).await;
        });
    }

    /// The running turn has had an answer, of which this was the price. If nothing is left, it is the
    /// last one.
    pub(super) fn on_charged(&mut self, tokens: u64) {
        self.account.charge(tokens);
        if let Err(exceeded) = self.account.may_go_on() {
            self.on_input(Input::Spent(exceeded));
        }
    }

    /// What had its price after its turn, or without one: a summary that somebody asked for, an answer
    /// that was cut off.
    pub(super) fn on_summary_charged(&mut self, tokens: u64) {
        self.account.charge(tokens);
        let writes: Vec<_> = self.account.due().into_iter().collect();
        if !writes.is_empty() {
            self.outbox.push(Entry { request: None, writes, then: Then::Nothing });
        }
    }

    /// Ends everything, if the agent's time is over.
    pub(super) fn end_at_limit(&mut self, now: Instant) {
        if self.account.ends().is_none_or(|end| end > now) {
            return;
        }
        let Err(exceeded) = self.account.may_go_on() else { return };
        if self.running.is_some() {
            self.on_input(Input::Stop(Stop::Limit(exceeded)));
        }
        self.refuse_queued(exceeded);
        self.stop_compacting(CompactError::Limit(exceeded));
    }

    /// When the agent's time is over, if there is something to end then.
    pub(super) fn limit_deadline(&self) -> Option<Instant> {
        let idle = self.running.is_none() && self.queue.is_empty() && self.compacting.is_none();
        self.account.ends().filter(|_| !idle)
    }

    /// Ends what waits, which can never start any more.
    pub(super) fn refuse_queued(&mut self, exceeded: Exceeded) {
        for id in self.take_queued(|_| true) {
            self.end_queued(&id, Outcome::Failed(Failure::limit(exceeded)));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::turn::{Answer, Effect, Rules, Turn};
    use super::*;
    use crate::message::{ToolCall, ToolMeta};
    use crate::policy::budget::{Limit, Whose};
    use crate::provider::FinishReason;

    const SPENT: Exceeded = Exceeded::Reached { limit: Limit::Tokens, most: 5, whose: Whose::Own };

    fn asked() -> Turn {
        Turn::start(Rules { iterations_max: 3, concurrent_tools_max: 2 }).0
    }

    fn answered(tool_calls: Vec<ToolCall>) -> Input {
        let (finish, usage) = (FinishReason::Stop, Usage::default());
        Input::Answered(Answer { calls: tool_calls, finish, usage })
    }

    #[test]
    fn calls_of_the_answer_that_used_up_a_limit_are_not_run() {
        let mut turn = asked();
        assert_eq!(turn.on(Input::Spent(SPENT)), []);
        let arguments = json!({"message": "x"});
        let call = ToolCall { id: "a".to_owned(), name: "echo".to_owned(), arguments };
        let mut effects = turn.on(answered(vec![call.clone()]));
        effects.retain(|effect| !matches!(effect, Effect::Tell(_)));
        let (content, tool_calls) = (String::new(), vec![call]);
        let expected = [
            Effect::Append(Message::Assistant { content, tool_calls, meta: None }),
            Effect::Abandon,
            Effect::Append(Message::Tool {
                content: "Not run: the turn ended early (limit).".to_owned(),
                tool_call_id: "a".to_owned(),
                meta: Some(ToolMeta { error: true }),
            }),
            Effect::Finish(Outcome::Failed(Failure::limit(SPENT))),
        ];
        assert_eq!(effects, expected);
    }

    #[test]
    fn a_last_answer_is_given_though_it_used_up_a_limit() {
        let mut turn = asked();
        turn.on(Input::Text("well".to_owned()));
        turn.on(Input::Spent(SPENT));
        let effects = turn.on(answered(vec![]));
        assert!(matches!(effects.last(), Some(Effect::Finish(Outcome::Completed { .. }))));
    }
}
