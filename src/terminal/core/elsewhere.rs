//! What happens to agents that are not followed: what they ask for, and for whom they work. It comes by
//! a stream of its own, in no order with that of the followed agent, so whatever is told twice counts once.

use std::collections::{BTreeMap, VecDeque};
use std::iter::once;
use std::time::Duration;

use super::asking::{Asked, decided};
use super::{Core, Effect};
use crate::event::{Event, What};
use crate::id::{AgentId, ConfirmId, RequestId};
use crate::limits::terminal::{SETTLED_KEPT_MAX, TURNS_KEPT_MAX};
use crate::rpc::method::ConfirmationEntry;
use crate::terminal::line::Tone;

/// What has to be known of every event that is not about the followed agent. The text of others is not
/// even read.
pub const WANTED: &[&str] = &[
    "confirmation_requested",
    "confirmation_resolved",
    "turn_started",
    "turn_completed",
    "turn_cancelled",
    "turn_failed",
    "turn_interrupted",
    "agent_updated",
    "agent_destroyed",
    "stream_gap",
    "server_stopping",
];

#[derive(Debug, Default)]
pub struct Elsewhere {
    hearing: Hearing,
    /// The turn that each agent is in.
    turns: BTreeMap<AgentId, Errand>,
    /// Questions that have their answer: one of the two streams may still tell that they are asked.
    settled: VecDeque<ConfirmId>,
}

/// A turn, and the agent that asked for it.
#[derive(Debug)]
struct Errand {
    request: RequestId,
    from: Option<AgentId>,
    /// When it was told of.
    since: Duration,
}

/// Whether we are told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Hearing {
    #[default]
    Not,
    Asked,
    On,
}

impl Elsewhere {
    pub fn is_heard(&self) -> bool {
        self.hearing == Hearing::On
    }

    pub fn is_settled(&self, confirm_id: &ConfirmId) -> bool {
        self.settled.contains(confirm_id)
    }

    pub fn settle(&mut self, confirm_id: &ConfirmId) {
        if self.is_settled(confirm_id) {
            return;
        }
        if self.settled.len() == SETTLED_KEPT_MAX {
            self.settled.pop_front();
        }
        self.settled.push_back(confirm_id.clone());
    }

    /// Whether a turn is one of these, or works for one of them, however many agents are between.
    fn serves(&self, asked: &Asked, own: impl Fn(&RequestId) -> bool) -> bool {
        let (agent, request) = (&asked.agent, &asked.request);
        if own(request) {
            return true;
        }
        let mut errand = self.turns.get(agent).filter(|errand| errand.request == *request);
        // Agents cannot wait for each other in a circle, but what is told of them may be old.
        for _ in 0..self.turns.len() {
            let Some(waits) = errand.and_then(|errand| errand.from.as_ref()) else {
                return false;
            };
            errand = self.turns.get(waits);
            if errand.is_some_and(|errand| own(&errand.request)) {
                return true;
            }
        }
        false
    }

    fn rename(&mut self, before: &AgentId, now: &AgentId) {
        if let Some(errand) = self.turns.remove(before) {
            self.turns.insert(now.clone(), errand);
        }
        let asked_by = self.turns.values_mut().filter_map(|errand| errand.from.as_mut());
        asked_by.filter(|from| *from == before).for_each(|from| from.clone_from(now));
    }
}

impl Core {
    /// Whether a turn was asked for here, or by somebody who was: then ours waits for it.
    pub(super) fn serves_us(&self, asked: &Asked) -> bool {
        self.elsewhere.serves(asked, |request| self.own.contains(request))
    }

    /// Whether the turn that runs here waits for it: Esc ends both.
    pub(super) fn serves_this_turn(&self, asked: &Asked) -> bool {
        let turn = self.turn.as_ref();
        turn.is_some_and(|turn| self.elsewhere.serves(asked, |request| turn.request == *request))
    }

    /// When a turn began, as far as anybody here was told.
    pub(super) fn begun(&self, request: &RequestId) -> Duration {
        let mut known = self.elsewhere.turns.values();
        let known = known.find(|errand| errand.request == *request);
        known.map_or(self.now, |errand| errand.since)
    }

    /// Sees to it that we are told of other agents.
    pub(super) fn survey(&mut self) {
        if self.elsewhere.hearing == Hearing::Not {
            self.elsewhere.hearing = Hearing::Asked;
            self.effects.push(Effect::Survey);
        }
    }

    pub(super) fn surveyed(&mut self, waiting: Vec<(AgentId, ConfirmationEntry)>) {
        self.elsewhere.hearing = Hearing::On;
        // What is not among them had its answer while nobody told us.
        let followed = self.agent.clone();
        self.withdraw(|asked| {
            let waits = waiting.iter().any(|(_, entry)| entry.confirm_id == asked.confirm_id);
            !waits && followed.as_ref() != Some(&asked.agent)
        });
        for (agent, entry) in waiting {
            self.asks(Asked::of_entry(&agent, entry));
        }
    }

    pub(super) fn unwatched(&mut self, why: Option<String>) {
        self.elsewhere.hearing = Hearing::Not;
        self.elsewhere.turns.clear();
        let followed = self.agent.clone();
        self.withdraw(|asked| followed.as_ref() != Some(&asked.agent));
        if let Some(why) = why {
            self.error(&format!("what other agents ask for is not told here: {why}"));
        }
    }

    pub(super) fn elsewhere(&mut self, event: &Event) {
        let Some(agent) = &event.agent_id else {
            return self.of_all(&event.what);
        };
        let followed = self.agent.as_ref() == Some(agent);
        match (&event.what, &event.request_id) {
            (What::TurnStarted { source_agent_id, .. }, Some(request)) => {
                self.arrived(agent, request);
                let (request, from) = (request.clone(), source_agent_id.clone());
                let errand = Errand { request, from, since: self.now };
                let turns = &mut self.elsewhere.turns;
                if turns.len() < TURNS_KEPT_MAX || turns.contains_key(agent) {
                    turns.insert(agent.clone(), errand);
                }
            }
            (What::ConfirmationRequested { .. }, Some(request)) => {
                self.asks_by(Some(agent), request, &event.what);
            }
            (What::ConfirmationResolved { confirm_id, decision, reason, resolved_by, .. }, _) => {
                let asked = self.settled(confirm_id).filter(|_| !followed);
                if let Some(asked) = asked {
                    let told = decided(*decision, resolved_by, reason.as_deref());
                    let tone = if decision.allows() { Tone::Good } else { Tone::Bad };
                    self.note(tone, &format!("  ? {agent}, {}: {told}", asked.call));
                }
            }
            (What::AgentUpdated { previous_agent_id: Some(before), .. }, _) => {
                self.renamed(before, agent);
            }
            (What::AgentDestroyed { .. }, _) => {
                self.elsewhere.turns.remove(agent);
                self.withdraw(|asked| asked.agent == *agent);
            }
            (what, Some(request)) if what.is_terminal() => {
                self.arrived(agent, request);
                if self.elsewhere.turns.get(agent).is_some_and(|it| it.request == *request) {
                    self.elsewhere.turns.remove(agent);
                }
                self.withdraw(|asked| asked.agent == *agent && asked.request == *request);
            }
            // Whoever is followed tells it by the other stream; of the rest nothing is shown.
            _ => {}
        }
    }

    fn of_all(&mut self, what: &What) {
        // What was missed may have been a question.
        if matches!(what, What::StreamGap { .. }) {
            self.effects.push(Effect::Survey);
        }
    }

    /// An agent has another id.
    pub(super) fn renamed(&mut self, before: &AgentId, now: &AgentId) {
        self.elsewhere.rename(before, now);
        let asked = self.asked.iter_mut().map(|asked| &mut asked.agent);
        let sending = self.sending.values_mut().map(|sending| &mut sending.agent);
        let left = self.whispering_from.iter_mut();
        let left =
            left.chain(self.before.iter_mut().flat_map(|(left, from)| once(left).chain(from)));
        let named = asked.chain(sending).chain(left.map(|left| &mut left.agent));
        named.filter(|agent| *agent == before).for_each(|agent| agent.clone_from(now));
    }

    /// A message to an agent that is not followed any more has come to it.
    fn arrived(&mut self, agent: &AgentId, request: &RequestId) {
        if self.agent.as_ref() != Some(agent) {
            self.sending.retain(|_, sending| sending.request.as_ref() != Some(request));
        }
    }
}
