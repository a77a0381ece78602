//! Another id for the agent: between turns only, and only once it is on record. Meanwhile the agent answers
//! nobody; whoever asked it something is answered under the new id.

use tokio::sync::oneshot;

use super::actor::Agent;
use super::outbox::{Entry, Then};
use crate::id::AgentId;
use crate::store::Write;

/// What an agent is to be called, with all that makes it so.
#[derive(Debug)]
pub struct Renaming {
    pub id: AgentId,
    pub writes: Vec<Write>,
}

pub type RenameReply = oneshot::Sender<Result<(), NotRenamed>>;

/// Why an agent kept its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotRenamed {
    #[error("a turn is running or waiting")]
    Busy,
    #[error("the agent takes no changes any more")]
    Retiring,
    #[error("the new id could not be written down")]
    Storage,
    #[error("the agent is gone")]
    Gone,
}

impl Agent {
    pub(super) fn on_rename(&mut self, renaming: Renaming, reply: RenameReply) {
        let refusal = if self.retirement.is_some() {
            Some(NotRenamed::Retiring)
        } else if self.is_busy() || !self.queue.is_empty() {
            Some(NotRenamed::Busy)
        } else {
            None
        };
        if let Some(refusal) = refusal {
            let _ = reply.send(Err(refusal));
            return;
        }
        let Renaming { id, writes } = renaming;
        let then = Then::Renamed(id, reply);
        self.outbox.push(Entry { request: None, writes, then });
    }

    pub(super) fn on_renamed(&mut self, id: AgentId, reply: RenameReply) {
        self.workplace.rename(id.clone());
        self.id = id;
        self.publish();
        let _ = reply.send(Ok(()));
    }
}
