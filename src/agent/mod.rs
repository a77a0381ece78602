//! Agents: one task each, with a bounded inbox, and nobody else touches its state.
//! `handle` is what others hold; `actor` is the loop behind it; `turn` decides, `work` waits.

mod account;
mod actor;
mod alarm; // for what is due next
mod batch; // the tool calls of one answer
mod changes;
mod commit;
mod confirmations; // which can be answered, and who wins
mod confirming; // a call
mod context;
mod conversation;
mod exports; // who has something new to save
mod counting;
mod handle;
mod journal;
mod outbox;
pub mod outcome;
mod preamble;
mod prepare;
mod prompt;
mod queue;
mod renaming;
mod shown;
mod spending;
mod requests;
mod retirement;
mod status;
mod tokens;
mod turn;
mod work;

use std::sync::{Arc, Weak};
use std::time::Duration;

use jiff::Timestamp;

pub use account::Accounts;
pub use confirmations::{Answered, ConfirmError, Pending};
pub use confirming::Decided;
pub use context::{
    Automatic, Compacted, CompactionRules, NotCompacted, SUMMARY_TASK, When, summary_message,
};
pub use conversation::Remembered;
pub use exports::{ExportJob, Exports, Followed};
pub use handle::{
    Accepted, AgentHandle, Cancelled, CompactError, Context, Family, Gone, Page, Retire, SendError,
    SendRequest, Status, Unanswered,
};
pub use outcome::{CancelReason, EndedAs, Failure, Finish, Outcome};
pub use preamble::Preamble;
pub use prompt::{Layered, layered};
pub use renaming::{NotRenamed, Renaming};
pub use requests::State;
pub use shown::Shown;
pub use tokens::{Encoding, Tables, Tokens};
pub use turn::{Answer, Effect, Input, Rules, Stop, ToolResult, Turn, Verdict};

use crate::activity::Activity;
use crate::hub::Hub;
use crate::id::{AgentId, RequestId};
use crate::logs::Logs;
use crate::policy::Permissions;
use crate::provider::{Model, Secrets};
use crate::store::{AgentNumber, Standing, Store};
use crate::tool::Tools;
use crate::tool::team::{Membership, Team};
use crate::tool::workplace::Workplace;
use crate::world::World;

/// What an agent is from its creation on, and never changes.
#[derive(Debug)]
pub struct Facts {
    pub number: AgentNumber,
    pub created_at: Timestamp,
    pub depth: u32,
}

/// What an agent has that can be changed.
#[derive(Debug)]
pub struct Kit {
    pub id: AgentId,
    pub model: Model,
    pub preamble: Preamble,
    pub permissions: Permissions,
}

/// What an agent had before it came into memory; a new one has nothing.
#[derive(Debug, Default)]
pub struct Past {
    pub conversation: Remembered,
    /// Requests on record, oldest first.
    pub requests: Vec<RequestId>,
    pub standing: Standing,
}

/// What all agents of a server share.
#[derive(Debug)]
pub struct Shared {
    pub world: World,
    /// Where running turns are counted.
    pub activity: Arc<Activity>,
    pub store: Store,
    pub hub: Arc<Hub>,
    pub logs: Logs,
    pub tools: Tools,
    /// Whom agents reach each other through.
    pub team: Weak<dyn Team>,
    pub rules: Rules,
    pub skill_timeout: Duration,
    pub confirmation_timeout: Duration,
    pub compaction: CompactionRules,
    /// Messages of one conversation.
    pub in_memory_max: usize,
    pub secrets: Secrets,
    pub tables: Tables,
    pub accounts: Arc<Accounts>,
    pub exports: Exports,
}

impl Shared {
    /// Where an agent's tools work.
    fn workplace(&self, id: &AgentId, permissions: &Permissions) -> Arc<Workplace> {
        let membership = Membership::new(id.clone(), self.team.clone());
        self.tools.workplace(&self.world, permissions, membership)
    }
}
