//! The end of an agent's work, or of the agent itself: no new work, what waits is cancelled, and whoever
//! asked is told once nothing of it runs.

use tokio::sync::oneshot;
use tokio::time::timeout;

use super::actor::Agent;
use super::handle::{CompactError, Retire};
use super::outcome::CancelReason;
use super::turn::{Input, Stop};
use crate::limits::DESTROY_WAIT_MAX;
use crate::store::StoreError;

/// Says why something that the agent did is not on record, where it is not.
pub(super) type RetireReply = oneshot::Sender<Result<(), StoreError>>;

#[derive(Default)]
pub(super) struct Retirement {
    leave: bool,
    /// Told once nothing runs any more and everything is written that can be.
    waiting: Vec<RetireReply>,
}

impl Agent {
    pub(super) fn on_retire(&mut self, how: Retire, reply: RetireReply) {
        let (reason, cancel_turn, leave) = match how {
            Retire::FinishTurn(reason) => (reason, false, false),
            Retire::CancelTurn(reason) => (reason, true, false),
            Retire::Leave => (CancelReason::Destroyed, true, true),
        };
        let retirement = self.retirement.get_or_insert_default();
        retirement.leave |= leave;
        retirement.waiting.push(reply);
        self.cancel_queued(reason, |_| true);
        self.stop_compacting(CompactError::Cancelled);
        if cancel_turn && self.running.is_some() {
            self.on_input(Input::Stop(Stop::Cancel(reason)));
        }
        // The disk may have recovered since, and this is the last time that anybody looks.
        self.outbox.try_now();
    }

    /// Answers those who wait for the agent's retirement once nothing of it runs; true when its
    /// task is to end.
    pub(super) async fn has_left(&mut self) -> bool {
        if self.running.is_some() || self.compacting.is_some() || !self.outbox.is_settled() {
            return false;
        }
        let Some(retirement) = &mut self.retirement else {
            return false;
        };
        let (leave, waiting) = (retirement.leave, std::mem::take(&mut retirement.waiting));
        if !waiting.is_empty() {
            // Tasks that were told to end do so at their next await; one that does not is left
            // behind aborted, and its result reaches nobody.
            let ended = async {
                while self.tasks.join_next().await.is_some() {}
                self.workplace.nothing_runs().await;
            };
            let _ = timeout(DESTROY_WAIT_MAX, ended).await;
            // It is written with the agent's end, or with whatever it does next.
            let rest = self.late.rest();
            if rest > 0 {
                self.account.charge(rest);
            }
        }
        let on_record = self.outbox.owes().map_or(Ok(()), |error| Err(error.clone()));
        for reply in waiting {
            let _ = reply.send(on_record.clone());
        }
        leave
    }
}
