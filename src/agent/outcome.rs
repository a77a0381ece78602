//! How a turn ended: as its callers are told, as it is kept, and as its last event says.
//! Pure. Every failure has its JSON-RPC error here, exhaustively.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::code::{Code, ErrorObject};
use crate::event::{Ended, What};
use crate::message::Usage;
use crate::policy::Reason;
use crate::policy::budget::Exceeded;
use crate::provider::ProviderError;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Completed {
        content: Arc<str>,
        finish: Finish,
        usage: Usage,
    },
    Cancelled {
        reason: CancelReason,
    },
    Failed(Failure),
    /// The server ended before the turn did.
    Interrupted,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    Stop,
    Length,
    IterationLimit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CancelReason {
    Cancelled,
    Destroyed,
    Shutdown,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    Provider(ProviderError),
    Timeout,
    /// A limit of the agent, or of one above it, is reached; in words for people.
    Limit {
        message: String,
    },
    /// What the turn did could not be written down.
    Storage,
    Internal {
        error_id: String,
    },
}

/// Where a request stands, by the names of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndedAs {
    Completed,
    Cancelled,
    Failed,
    Interrupted,
}

impl Outcome {
    pub fn halted_at_iteration_limit(&self) -> bool {
        matches!(self, Self::Completed { finish: Finish::IterationLimit, .. })
    }

    pub fn ended_as(&self) -> EndedAs {
        match self {
            Self::Completed { .. } => EndedAs::Completed,
            Self::Cancelled { .. } => EndedAs::Cancelled,
            Self::Failed(_) => EndedAs::Failed,
            Self::Interrupted => EndedAs::Interrupted,
        }
    }

    /// The event that ends the turn; `partial` is its text so far.
    pub fn event(&self, partial: &str) -> What {
        let ended = |reason: &str, error: Option<ErrorObject>| Ended {
            reason: reason.to_owned(),
            error,
            partial: partial.to_owned(),
        };
        match self {
            Self::Completed { content, finish, usage } => What::TurnCompleted {
                content: Arc::clone(content),
                halted: self.halted_at_iteration_limit(),
                finish_reason: finish.name().to_owned(),
                usage: *usage,
            },
            Self::Cancelled { reason } => What::TurnCancelled(ended(reason.name(), None)),
            Self::Failed(failure) => What::TurnFailed(ended(failure.kind(), Some(failure.error()))),
            Self::Interrupted => What::TurnInterrupted(ended("interrupted", Some(interrupted()))),
        }
    }
}

impl Failure {
    pub fn limit(exceeded: Exceeded) -> Self {
        Self::Limit { message: exceeded.to_string() }
    }

    /// The `kind` of its error, or what stands for it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Provider(_) => "provider",
            Self::Timeout => "timeout",
            Self::Limit { .. } => "limit",
            Self::Storage => "storage",
            Self::Internal { .. } => "internal",
        }
    }

    pub fn error(&self) -> ErrorObject {
        match self {
            Self::Provider(error) => {
                ErrorObject::new(Code::Outside, error.message.clone()).with(provider(error))
            }
            Self::Timeout => ErrorObject::new(Code::Outside, "the time for this request is over")
                .with(json!({"kind": "timeout", "retryable": true})),
            Self::Limit { message } => ErrorObject::new(Code::Forbidden, message.clone())
                .with(json!({"reason": Reason::Limit.name()})),
            Self::Storage => storage(),
            Self::Internal { error_id } => defect(error_id),
        }
    }
}

/// What was asked for could not be written to the disk.
pub fn storage() -> ErrorObject {
    let message =
        "the server cannot write to its disk; free some space or see its log, then try again";
    ErrorObject::new(Code::Outside, message).with(json!({"kind": "storage", "retryable": true}))
}

/// The server ended while the turn ran.
pub fn interrupted() -> ErrorObject {
    let message =
        "the server was stopped before this turn ended; send it again under a new request_id";
    ErrorObject::new(Code::Outside, message).with(json!({"kind": "interrupted", "retryable": true}))
}

/// A defect of ours. What it was stands in the log, under this id.
pub fn defect(error_id: &str) -> ErrorObject {
    ErrorObject::new(Code::Internal, "Internal error; the log says more")
        .with(json!({"error_id": error_id}))
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

impl CancelReason {
    pub fn name(self) -> &'static str {
        match self {
            Self::Cancelled => "cancelled",
            Self::Destroyed => "destroyed",
            Self::Shutdown => "shutdown",
        }
    }
}

impl Finish {
    pub fn name(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::IterationLimit => "iteration_limit",
        }
    }
}

impl EndedAs {
    pub fn name(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Cancelled => "cancelled",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
        }
    }
}
