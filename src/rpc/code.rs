//! Every refusal of a call as one JSON-RPC error; how turns end is told by `agent::outcome`.
//! Exhaustive: a new error must be given its code here before the build passes.

use serde_json::json;

use crate::agent::{SendError, Unanswered, outcome};
use crate::code::ErrorObject;
use crate::hub::{JournalError, SubscribeError};
use crate::id::{AgentId, IdError};
use crate::policy::{PolicyError, Reason, Refusal};
use crate::pool::{AskError, CreateError, Deadlock, RestoreError, SessionsError, SetModelError};
use crate::session::SessionError;
use crate::store::StoreError;

pub use crate::code::Code;

impl Code {
    pub fn of_create(error: &CreateError) -> ErrorObject {
        match error {
            CreateError::Policy(error) => Self::of_policy(error),
            CreateError::Limit(exceeded) => Self::of_refusal(&(*exceeded).into()),
            CreateError::Taken { .. } => ErrorObject::new(Self::Conflict, error.to_string()),
            CreateError::Stopping => ErrorObject::new(Self::Overloaded, error.to_string()),
            CreateError::Storage { source } => Self::of_store(source),
            CreateError::Parent { source, .. } => {
                ErrorObject::new(Self::Internal, format!("Failed to restore session: {source}"))
            }
            CreateError::Reserved
            | CreateError::UnknownParent { .. }
            | CreateError::NoCwd { .. }
            | CreateError::CwdNotDir { .. }
            | CreateError::CwdUnusable { .. }
            | CreateError::UnknownTool { .. }
            | CreateError::Model(_) => ErrorObject::new(Self::InvalidParams, error.to_string()),
        }
    }

    pub fn of_policy(error: &PolicyError) -> ErrorObject {
        match error {
            PolicyError::Refused { refusal } => Self::of_refusal(refusal),
            PolicyError::UnknownPreset { .. }
            | PolicyError::Preset { .. }
            | PolicyError::Timeout { .. }
            | PolicyError::UnknownTool { .. }
            | PolicyError::WritePathsNeedless { .. } => {
                ErrorObject::new(Self::InvalidParams, error.to_string())
            }
        }
    }

    pub fn of_refusal(refusal: &Refusal) -> ErrorObject {
        ErrorObject::new(Self::Forbidden, refusal.message.clone())
            .with(json!({"reason": refusal.reason.name()}))
    }

    pub fn of_deadlock(deadlock: &Deadlock) -> ErrorObject {
        let data = json!({"reason": Reason::WouldDeadlock.name(), "chain": deadlock.chain});
        ErrorObject::new(Self::Forbidden, deadlock.to_string()).with(data)
    }

    pub fn of_ask(error: &AskError) -> ErrorObject {
        match error {
            AskError::EmptyMessage
            | AskError::NothingToWaitFor
            | AskError::Id(_)
            | AskError::Reserved => ErrorObject::new(Self::InvalidParams, error.to_string()),
            AskError::Refused(refusal) => Self::of_refusal(refusal),
        }
    }

    pub fn of_send(error: &SendError, agent: &AgentId) -> ErrorObject {
        match error {
            SendError::Limit(exceeded) => Self::of_refusal(&(*exceeded).into()),
            SendError::QueueFull | SendError::Retiring => {
                ErrorObject::new(Self::Overloaded, error.told(agent))
            }
            SendError::OtherContent => ErrorObject::new(Self::Conflict, error.told(agent)),
            SendError::Storage => outcome::storage(),
            SendError::Gone => Self::gone(agent),
        }
    }

    pub fn of_subscribe(error: &SubscribeError) -> ErrorObject {
        match error {
            SubscribeError::TooManyOfAgent { .. }
            | SubscribeError::TooMany
            | SubscribeError::Stopping => ErrorObject::new(Self::Overloaded, error.to_string()),
        }
    }

    /// The disk's own words are for the log.
    pub fn of_journal(error: &JournalError) -> ErrorObject {
        ErrorObject::new(Self::Outside, error.to_string())
            .with(json!({"kind": "storage", "retryable": true}))
    }

    /// An agent that was there when the request came, and is not any more.
    pub fn gone(agent: &AgentId) -> ErrorObject {
        ErrorObject::new(Self::InvalidParams, format!("Agent not found: {agent}"))
    }

    pub fn of_sessions(error: &SessionsError) -> ErrorObject {
        let told = |code: Self| ErrorObject::new(code, error.to_string());
        match error {
            SessionsError::Name(_) | SessionsError::Unknown { .. } => told(Self::InvalidParams),
            SessionsError::NoAgent { id } => Self::gone(id),
            SessionsError::AgentTaken { .. } | SessionsError::Busy { .. } => told(Self::Conflict),
            SessionsError::File(error) => Self::of_session_file(error),
            SessionsError::Refused(error) => Self::of_create(error),
            SessionsError::Restore(error) => Self::of_restore(error),
            SessionsError::Model(error) => Self::of_set_model(error),
            SessionsError::Storage { source } => Self::of_store(source),
            SessionsError::Unwritten => outcome::storage(),
            SessionsError::Stopping => told(Self::Overloaded),
        }
    }

    fn of_session_file(error: &SessionError) -> ErrorObject {
        let retryable = match error {
            SessionError::Exists { .. } => {
                return ErrorObject::new(Self::Conflict, error.to_string());
            }
            SessionError::Damaged { .. }
            | SessionError::Unusable { .. }
            | SessionError::NotAFile { .. } => false,
            SessionError::Disk { .. } | SessionError::List { .. } => true,
        };
        // The disk's own words are for the log.
        tracing::warn!(error = error as &dyn std::error::Error, "a session file failed a call");
        ErrorObject::new(Self::Outside, error.to_string())
            .with(json!({"kind": "storage", "retryable": retryable}))
    }

    pub(super) fn of_restore(error: &RestoreError) -> ErrorObject {
        match error {
            RestoreError::Storage { source } => Self::of_store(source),
            RestoreError::File { source } => Self::of_session_file(source),
            RestoreError::Refused { source } => Self::of_create(source),
            RestoreError::Policy { source } => Self::of_policy(source),
            RestoreError::Model { .. } | RestoreError::NoParent { .. } => {
                ErrorObject::new(Self::InvalidParams, error.to_string())
            }
            RestoreError::Missing | RestoreError::Unreadable => {
                ErrorObject::new(Self::Outside, error.to_string())
                    .with(json!({"kind": "storage", "retryable": false}))
            }
            RestoreError::Destroyed => ErrorObject::new(Self::Conflict, error.to_string()),
            RestoreError::Stopping => ErrorObject::new(Self::Overloaded, error.to_string()),
        }
    }

    fn of_set_model(error: &SetModelError) -> ErrorObject {
        match error {
            SetModelError::Model(_)
            | SetModelError::DoesNotFit { .. }
            | SetModelError::Unanswered(Unanswered::Gone) => {
                ErrorObject::new(Self::InvalidParams, error.to_string())
            }
            SetModelError::Unanswered(Unanswered::Storage) => outcome::storage(),
            SetModelError::Unanswered(Unanswered::Retiring) => {
                ErrorObject::new(Self::Overloaded, error.to_string())
            }
        }
    }

    /// What the disk did not take or give.
    pub fn of_store(error: &StoreError) -> ErrorObject {
        tracing::warn!(error = error as &dyn std::error::Error, "the store failed a call");
        outcome::storage()
    }

    pub fn of_id(error: &IdError) -> ErrorObject {
        ErrorObject::new(Self::InvalidParams, error.to_string())
    }
}
