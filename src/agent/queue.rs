//! Sends that wait for their turn and will never have it.

use std::collections::VecDeque;

use super::actor::Agent;
use super::handle::SendRequest;
use super::outbox::Then;
use super::outcome::{CancelReason, Outcome};
use crate::id::RequestId;

impl Agent {
    pub(super) fn cancel_queued(
        &mut self,
        reason: CancelReason,
        wanted: impl Fn(&RequestId) -> bool,
    ) -> Vec<RequestId> {
        let cancelled = self.take_queued(|queued| wanted(&queued.request_id));
        for id in &cancelled {
            self.end_queued(id, Outcome::Cancelled { reason });
        }
        cancelled
    }

    /// Takes sends out of the queue that will never start.
    pub(super) fn take_queued(&mut self, wanted: impl Fn(&SendRequest) -> bool) -> Vec<RequestId> {
        let (taken, kept): (VecDeque<_>, _) =
            std::mem::take(&mut self.queue).into_iter().partition(|queued| wanted(queued));
        self.queue = kept;
        for _ in &taken {
            self.account.release_turn();
        }
        taken.into_iter().map(|queued| queued.request_id).collect()
    }

    pub(super) fn end_queued(&mut self, id: &RequestId, outcome: Outcome) {
        let writes = self.journal().ended(id, &outcome, "");
        self.push(id, writes, Then::End(outcome));
    }
}
