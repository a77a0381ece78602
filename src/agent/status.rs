//! What an agent shows of itself: its status to whoever looks, its context to whoever asks.

use std::sync::Arc;

use super::actor::Agent;
use super::handle::{Context, Status};

impl Agent {
    pub(super) fn context(&self) -> Context {
        Context {
            message_count: self.messages_told(),
            system_prompt: !self.preamble.system.is_empty(),
            halted_at_iteration_limit: self.standing.halted_at_iteration_limit,
            last_iteration_count: self
                .running
                .as_ref()
                .map_or(self.standing.last_iteration_count, |running| running.turn.iterations()),
            max_tool_iterations: self.shared.rules.iterations_max,
        }
    }

    /// How many messages others are told of: those on disk. Calls whose results the disk has not taken
    /// yet are among them only while the turn runs that made them: an agent at rest has no open calls.
    fn messages_told(&self) -> usize {
        match &self.running {
            Some(_) => self.messages_durable,
            None => self.conversation.whole(self.messages_durable),
        }
    }

    pub(super) fn publish(&self) {
        let before = self.published.load();
        if self.is_shown(&before) {
            return;
        }
        let status = Status {
            id: self.id.clone(),
            model: self.model.clone(),
            preamble: Arc::clone(&self.preamble),
            permissions: Arc::clone(&self.permissions),
            shown: Arc::clone(&self.shown),
            message_count: self.messages_told(),
            settled_count: self.messages_settled,
            should_shutdown: self.should_shutdown,
            active_request: self.running.as_ref().map(|running| running.request.clone()),
            queued: self.queue.len(),
            waits_for_confirmation: self.confirmations.is_waiting(),
            halted_at_iteration_limit: self.standing.halted_at_iteration_limit,
            last_action_at: self.standing.last_action_at.clone(),
        };
        let is_other = before.settled_count != status.settled_count
            || before.model != status.model
            || before.preamble != status.preamble
            || before.permissions != status.permissions;
        self.published.store(Arc::new(status));
        if is_other {
            self.shared.exports.changed(self.facts.number);
        }
    }

    /// Whether this is what the agent shows now. Asked with all that happens to it, so nothing is copied.
    fn is_shown(&self, status: &Status) -> bool {
        let active_request = self.running.as_ref().map(|running| &running.request);
        status.active_request.as_ref() == active_request
            && status.message_count == self.messages_told()
            && status.settled_count == self.messages_settled
            && status.queued == self.queue.len()
            && status.last_action_at == self.standing.last_action_at
            && status.halted_at_iteration_limit == self.standing.halted_at_iteration_limit
            && status.waits_for_confirmation == self.confirmations.is_waiting()
            && status.should_shutdown == self.should_shutdown
            && Arc::ptr_eq(&status.preamble, &self.preamble)
            && Arc::ptr_eq(&status.permissions, &self.permissions)
            && Arc::ptr_eq(&status.shown, &self.shown)
            && status.model == self.model
            && status.id == self.id
    }
}
