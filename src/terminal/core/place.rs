//! With whom the terminal talks: how it goes to another agent, back, and stays where that cannot be.

use super::asking::Asked;
use super::turn::Turn;
use super::{Attach, Attached, Core, Effect, Link};
use crate::event::Seq;
use crate::id::AgentId;
use crate::terminal::line::Tone;

/// An agent that was followed, and how far.
#[derive(Clone, Debug)]
pub struct Left {
    pub agent: AgentId,
    pub seq: Seq,
    /// Characters that are shown of the text of its turn.
    pub seen: usize,
}

impl Core {
    /// Talks to somebody else, and to who was there before where that cannot be.
    pub(super) fn change_to(&mut self, agent: AgentId, whispering_from: Option<Left>, how: Attach) {
        let place = self.left().map(|here| (here, self.whispering_from.take()));
        self.before = place.or(self.before.take());
        self.whispering_from = whispering_from;
        self.attach(agent, how);
    }

    /// The agent that is followed, as somebody who comes back has to know it.
    pub(super) fn left(&self) -> Option<Left> {
        let seen = self.turn.as_ref().map_or(self.seen, |turn| turn.said);
        self.agent.clone().map(|agent| Left { agent, seq: self.seq, seen })
    }

    pub(super) fn attach(&mut self, agent: AgentId, how: Attach) {
        self.forget_agent();
        self.wanted = Some(agent.clone());
        self.effects.push(Effect::Attach { agent, how });
    }

    /// Ends all that belongs to the agent of before: its stream and its turn.
    pub(super) fn forget_agent(&mut self) {
        if self.agent.take().is_some() {
            self.effects.push(Effect::Leave);
        }
        self.end_turn();
        self.summary = None;
        self.question = None;
        // Its questions wait on: they are those of somebody else now.
        if !self.elsewhere.is_heard() {
            self.asked.clear();
        }
    }

    pub(super) fn attached(&mut self, attached: Attached) {
        if self.wanted.as_ref() != Some(&attached.agent) {
            return;
        }
        (self.wanted, self.before) = (None, None);
        self.agent = Some(attached.agent.clone());
        self.seq = attached.cursor;
        self.seen = attached.seen;
        // What began meanwhile is among the messages, or will be told.
        let looked = !attached.messages.is_empty();
        self.sending.retain(|_, sending| !looked || sending.agent != attached.agent);
        self.show_earlier(&attached);
        if let Some(summary) = attached.summary {
            let running = summary.entry.active_request_id.clone();
            self.turn = running.map(|request| {
                let since = self.begun(&request);
                Turn::running(self.width(), request, since, self.seen)
            });
            self.summary = Some(summary);
        }
        for entry in attached.confirmations {
            self.asks(Asked::of_entry(&attached.agent, entry));
        }
        self.survey();
    }

    pub(super) fn stream_over(&mut self, why: Option<String>) {
        let why = why.map(|why| format!(": {why}")).unwrap_or_default();
        self.gone(|agent| (Tone::Bad, format!("✗ {agent} is not there any more{why}")));
    }

    /// The agent was destroyed, which somebody wanted.
    pub(super) fn destroyed(&mut self) {
        self.gone(|agent| (Tone::Loud, format!("{agent} is not there any more: destroyed")));
    }

    fn gone(&mut self, told: impl FnOnce(&AgentId) -> (Tone, String)) {
        let Some(agent) = self.agent.clone() else {
            return;
        };
        self.link = Link::Up;
        self.forget_agent();
        let (tone, told) = told(&agent);
        self.note(tone, &told);
        self.over();
    }

    pub(super) fn not_attached(&mut self, agent: &AgentId, error: &str) {
        if self.wanted.as_ref() == Some(agent) {
            self.wanted = None;
            self.error(&format!("cannot talk to {agent}: {error}"));
            self.stay();
        }
    }

    /// Whoever whispered is with the other one again.
    pub(super) fn over(&mut self) {
        if let Some(Left { agent, seq, seen }) = self.whispering_from.take() {
            self.change_to(agent, None, Attach::After { seq, seen });
        }
    }

    /// Who was wanted cannot be had, or is not wanted any more: all is as it was before.
    pub(super) fn stay(&mut self) {
        if let Some((Left { agent, seq, seen }, whispering_from)) = self.before.take() {
            self.whispering_from = whispering_from;
            self.attach(agent, Attach::After { seq, seen });
        } else {
            self.whispering_from = None;
        }
    }
}
