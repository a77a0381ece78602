//! How an agent has somebody confirm a call: asks, takes the first answer, and goes on once it is on
//! record. Who wins is decided by `confirmations`; what is allowed for good, by `policy`.

use std::sync::Arc;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::actor::Agent;
use super::confirmations::{ConfirmReply, Confirmation, Pending, Resolution, Settled, Taken};
use super::outbox::{Entry, Then, Work};
use super::turn::{Input, Verdict};
use crate::event::{AskedTool, iso};
use crate::id::{ConfirmId, RequestId};
use crate::limits::CONFIRM_ID_HEX;
use crate::message::ToolCall;
use crate::policy::{Allowances, Level, Permit};
use crate::store::Write;
use crate::tool::Question;
use crate::world::Use;

/// Somebody's answer to a confirmation.
#[derive(Clone, Debug)]
pub struct Decided {
    pub confirm_id: ConfirmId,
    /// In the words of who gives it: what is an answer depends on what was offered.
    pub decision: String,
    pub client: String,
}

impl Agent {
    /// What is written to have a call confirmed, and what is done then. Where nobody is there who
    /// could, it is denied at once.
    pub(super) fn ask_for(
        &mut self,
        request: &RequestId,
        (index, call): (usize, &ToolCall),
        question: Question,
    ) -> (Vec<Write>, Work) {
        let world = &self.shared.world;
        let drawn = world.chance.hex(Use::ConfirmId, CONFIRM_ID_HEX);
        let timeout = self.shared.confirmation_timeout;
        let expires_at = world.clock.now().checked_add(timeout).unwrap_or(jiff::Timestamp::MAX);
        let confirmation = Confirmation {
            id: ConfirmId::parse(&drawn).expect("hex digits are a well-formed id"),
            request: request.clone(),
            index,
            tool: AskedTool::of(call),
            question,
            expires: Instant::now() + timeout,
            expires_at: iso(expires_at),
        };
        let mut writes = self.journal().confirmation_requested(&confirmation, timeout);
        if self.shared.hub.confirmers(&self.id) == 0 {
            let resolution = Resolution::nobody_there();
            writes.extend(self.journal().confirmation_resolved(&confirmation, &resolution));
            let verdict = Verdict::NotRun(resolution.told(&call.name));
            return (writes, Work::Decide { index, verdict });
        }
        let id = confirmation.id.clone();
        self.confirmations.ask(confirmation);
        (writes, Work::Await(id))
    }

    pub(super) fn on_answer(&mut self, answer: &Decided, reply: ConfirmReply) {
        let Decided { confirm_id, decision, client } = answer;
        let taken = self.confirmations.answer(confirm_id, decision, client, reply);
        let Taken::Write(resolution) = taken else { return };
        let confirmation = self.confirmations.get(confirm_id).expect("it was just answered");
        let mut writes = self.journal().confirmation_resolved(confirmation, &resolution);
        if let Some(more) = self.allowed_by(confirmation, &resolution) {
            writes.push(Write::Allowed { agent: self.facts.number, more: Box::new(more) });
        }
        let request = Some(confirmation.request.clone());
        let then = Then::Answered(confirm_id.clone());
        self.outbox.push(Entry { request, writes, then });
    }

    /// Somebody's answer is on record.
    pub(super) fn on_answered(&mut self, id: &ConfirmId) {
        let settled = self.confirmations.settle(id);
        let Settled { confirmation, resolution, is_wanted, .. } = &settled;
        let (index, is_wanted) = (confirmation.index, *is_wanted);
        let subject = &confirmation.question.subject;
        let verdict = if resolution.decision.allows() {
            Verdict::Run(Permit::Confirmed(Arc::clone(subject)))
        } else {
            Verdict::NotRun(resolution.told(&confirmation.tool.name))
        };
        if let Some(more) = self.allowed_by(confirmation, resolution) {
            let permissions = Arc::new(self.permissions.allowing(&more));
            self.take_permissions(permissions);
        }
        // Whoever is told finds the same in the published status.
        self.publish();
        settled.tell();
        if is_wanted {
            self.on_input(Input::Decided { index, verdict });
        }
    }

    /// What an answer allows for good. One that was demoted after it had asked gets nothing, or it would
    /// have that once it is promoted again.
    fn allowed_by(&self, asked: &Confirmation, answer: &Resolution) -> Option<Allowances> {
        match self.permissions.level() {
            Level::Sandboxed => None,
            Level::Trusted | Level::Yolo => asked.question.subject.allowance(answer.decision),
        }
    }

    /// Somebody's answer could not be written.
    pub(super) fn on_answer_lost(&mut self, id: &ConfirmId) {
        if let Some((confirmation, why)) = self.confirmations.reopen(id) {
            let writes =
                self.journal().confirmation_resolved(&confirmation, &Resolution::denied(&why));
            let request = Some(confirmation.request);
            self.outbox.push(Entry { request, writes, then: Then::Nothing });
        }
    }

    /// What is written about the confirmation of a call that does not wait for it any more.
    pub(super) fn withdraw(&mut self, index: usize, why: &str) -> Vec<Write> {
        match self.confirmations.withdraw(index, why) {
            Some(over) => self.journal().confirmation_resolved(&over, &Resolution::denied(why)),
            None => Vec::new(),
        }
    }

    /// Denies what nobody answered in time.
    pub(super) fn expire_confirmations(&mut self, now: Instant) {
        for over in self.confirmations.expired(now) {
            let resolution = Resolution::too_late();
            let writes = self.journal().confirmation_resolved(&over, &resolution);
            let verdict = Verdict::NotRun(resolution.told(&over.tool.name));
            let then = Then::Work(vec![Work::Decide { index: over.index, verdict }]);
            self.outbox.push(Entry { request: Some(over.request), writes, then });
        }
    }

    pub(super) fn on_list_confirmations(&self, reply: oneshot::Sender<Vec<Pending>>) {
        let _ = reply.send(self.confirmations.pending());
    }
}
