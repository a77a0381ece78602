//! Every error of the server as one JSON-RPC error: the only place where errors become numbers.
//! Exhaustive: a new error must be given its code here before the build passes.

use serde_json::{Value, json};

use super::wire::ErrorObject;
use crate::agent::{Failure, SendError};
use crate::id::{AgentId, IdError};
use crate::limits::WAITING_SENDS_MAX;
use crate::policy::{PolicyError, Reason, Refusal};
use crate::pool::CreateError;
use crate::provider::ProviderError;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    Parse,
    InvalidRequest,
    MethodNotFound,
    InvalidParams,
    Internal,
    /// Something outside failed: a provider, a deadline.
    Outside,
    Overloaded,
    Conflict,
    Forbidden,
}

impl Code {
    pub fn number(self) -> i64 {
        match self {
            Self::Parse => -32700,
            Self::InvalidRequest => -32600,
            Self::MethodNotFound => -32601,
            Self::InvalidParams => -32602,
            Self::Internal => -32603,
            Self::Outside => -32000,
            Self::Overloaded => -32001,
            Self::Conflict => -32002,
            Self::Forbidden => -32003,
        }
    }

    pub fn of_create(error: &CreateError) -> ErrorObject {
        match error {
            CreateError::Policy(error) => Self::of_policy(error),
            CreateError::Taken { .. } => ErrorObject::new(Self::Conflict, error.to_string()),
            CreateError::Stopping => ErrorObject::new(Self::Overloaded, error.to_string()),
            CreateError::UnknownParent { .. }
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

    pub fn of_deadlock(chain: &[AgentId]) -> ErrorObject {
        let names: Vec<&str> = chain.iter().map(AgentId::as_str).collect();
        let message = format!("the send would wait for itself: {}", names.join(" → "));
        ErrorObject::new(Self::Forbidden, message)
            .with(json!({"reason": Reason::WouldDeadlock.name(), "chain": chain}))
    }

    pub fn of_send(error: &SendError, agent: &AgentId) -> ErrorObject {
        match error {
            SendError::QueueFull => {
                let message = format!(
                    "{agent} is busy: {WAITING_SENDS_MAX} sends are waiting for it already; try again later"
                );
                ErrorObject::new(Self::Overloaded, message)
            }
            SendError::Retiring => ErrorObject::new(
                Self::Overloaded,
                format!("{agent} takes no new work: it or the server is shutting down"),
            ),
            SendError::OtherContent => ErrorObject::new(
                Self::Conflict,
                "this request_id was used with other content; use a new one",
            ),
            SendError::Gone => Self::gone(agent),
        }
    }

    /// An agent that was there when the request came, and is not any more.
    pub fn gone(agent: &AgentId) -> ErrorObject {
        ErrorObject::new(Self::InvalidParams, format!("Agent not found: {agent}"))
    }

    pub fn of_failure(failure: &Failure) -> ErrorObject {
        match failure {
            Failure::Provider(error) => {
                ErrorObject::new(Self::Outside, error.message.clone()).with(provider(error))
            }
            Failure::Timeout => {
                ErrorObject::new(Self::Outside, "the time for this request is over")
                    .with(json!({"kind": "timeout", "retryable": true}))
            }
            Failure::Internal { error_id } => Self::defect(error_id),
        }
    }

    /// A defect of ours. What it was stands in the log, under this id.
    pub fn defect(error_id: &str) -> ErrorObject {
        ErrorObject::new(Self::Internal, "Internal error; the log says more")
            .with(json!({"error_id": error_id}))
    }

    pub fn of_id(error: &IdError) -> ErrorObject {
        ErrorObject::new(Self::InvalidParams, error.to_string())
    }
}

fn provider(error: &ProviderError) -> Value {
    let mut data = json!({
        "kind": "provider",
        "fault": error.fault.name(),
        "retryable": error.retryable,
        "attempts": error.attempts,
    });
    if let Some(status) = error.status {
        data["status"] = status.into();
    }
    data
}

impl ErrorObject {
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code: code.number(), message: message.into(), data: None }
    }

    #[must_use]
    pub fn with(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }
}
