//! What is told about agents, whoever asks: a client over RPC, or an agent through its tools.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::registry::Listed;
use crate::agent::{AgentHandle, Cancelled, Context, Outcome, Status, Tokens, outcome};
use crate::code::ErrorObject;
use crate::id::{AgentId, RequestId};
use crate::message::Usage;
use crate::policy::Level;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CreateAgentResult {
    pub agent_id: AgentId,
    pub url: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_request_id: Option<RequestId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_status: Option<RequestStatus>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<InitialResponse>,
}

/// What the first `send` gave: its result, or the error object it ended with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum InitialResponse {
    Result(SendResult),
    Error(ErrorObject),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DestroyAgentResult {
    /// False where there is no such agent.
    pub success: bool,
    pub agent_id: AgentId,
    pub destroyed: Vec<AgentId>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgentEntry {
    pub agent_id: AgentId,
    pub is_temp: bool,
    /// ISO 8601, UTC.
    pub created_at: Arc<str>,
    pub message_count: usize,
    pub should_shutdown: bool,
    pub parent_agent_id: Option<AgentId>,
    pub child_count: usize,
    pub depth: u32,
    pub model: Arc<str>,
    pub permission_level: Level,
    pub preset: Arc<str>,
    pub cwd: Arc<str>,
    pub write_paths: Option<Arc<[String]>>,
    pub status: AgentStatus,
    pub active_request_id: Option<RequestId>,
    pub queued: usize,
    pub halted_at_iteration_limit: bool,
    pub last_action_at: Option<Arc<str>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentStatus {
    Idle,
    Running,
    /// It runs, and a tool call waits until somebody confirms it.
    WaitingConfirmation,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgentSummary {
    #[serde(flatten)]
    pub entry: AgentEntry,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<TokenSummary>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextResult>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TokenSummary {
    pub total: u64,
    pub budget: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShutdownServerResult {
    pub success: bool,
    pub message: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum SendResult {
    Completed {
        content: String,
        request_id: RequestId,
        halted_at_iteration_limit: bool,
        finish_reason: String,
        usage: Usage,
    },
    Cancelled {
        cancelled: bool,
        request_id: RequestId,
    },
    /// The answer to `wait: false`.
    Accepted {
        request_id: RequestId,
        status: RequestStatus,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RequestStatus {
    Queued,
    Running,
    Completed,
    Cancelled,
    Failed,
    /// The server ended before the turn did.
    Interrupted,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum CancelResult {
    One {
        cancelled: bool,
        request_id: RequestId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    All {
        cancelled: bool,
        request_ids: Vec<RequestId>,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ContextResult {
    pub message_count: usize,
    /// Whether there is one.
    pub system_prompt: bool,
    pub halted_at_iteration_limit: bool,
    pub last_iteration_count: u32,
    pub max_tool_iterations: u32,
}

impl CreateAgentResult {
    pub fn of(agent: &AgentHandle) -> Self {
        let agent_id = agent.id();
        Self {
            url: format!("/agent/{agent_id}"),
            agent_id,
            initial_request_id: None,
            initial_status: None,
            response: None,
        }
    }
}

impl DestroyAgentResult {
    /// Of an agent that was to go, with all that went.
    pub fn of(agent_id: AgentId, destroyed: Vec<AgentId>) -> Self {
        Self { success: !destroyed.is_empty(), agent_id, destroyed }
    }
}

impl ShutdownServerResult {
    pub fn accepted() -> Self {
        Self { success: true, message: "Server shutting down".to_owned() }
    }
}

impl SendResult {
    /// How a turn ended, as `send` and `get_request` tell it.
    pub fn of(request_id: &RequestId, outcome: &Outcome) -> Result<Self, ErrorObject> {
        let request_id = request_id.clone();
        match outcome {
            Outcome::Completed { content, finish, usage } => Ok(Self::Completed {
                content: content.to_string(),
                request_id,
                halted_at_iteration_limit: outcome.halted_at_iteration_limit(),
                finish_reason: finish.name().to_owned(),
                usage: *usage,
            }),
            Outcome::Cancelled { .. } => Ok(Self::Cancelled { cancelled: true, request_id }),
            Outcome::Failed(failure) => Err(failure.error()),
            Outcome::Interrupted => Err(outcome::interrupted()),
        }
    }
}

impl CancelResult {
    /// What became of a cancel of one request, or of everything.
    pub fn of(wanted: Option<RequestId>, cancelled: Cancelled) -> Self {
        let any = cancelled.is_something();
        match wanted {
            None => Self::All { cancelled: any, request_ids: cancelled.requests },
            Some(request_id) => Self::One {
                cancelled: any,
                request_id,
                reason: (!any).then(|| "not_found_or_completed".to_owned()),
            },
        }
    }
}

impl AgentEntry {
    pub fn of(listed: &Listed<AgentHandle>, status: &Status) -> Self {
        let (facts, shown) = (listed.agent.facts(), &status.shown);
        Self {
            agent_id: status.id.clone(),
            is_temp: status.id.is_temp(),
            created_at: Arc::clone(&shown.created_at),
            message_count: status.message_count,
            should_shutdown: status.should_shutdown,
            parent_agent_id: listed.family.parent.clone(),
            child_count: listed.family.child_count,
            depth: facts.depth,
            model: Arc::clone(&status.model.name),
            permission_level: status.permissions.level(),
            preset: Arc::clone(&shown.preset),
            cwd: Arc::clone(&shown.cwd),
            write_paths: shown.write_paths.clone(),
            status: match status.active_request {
                Some(_) if status.waits_for_confirmation => AgentStatus::WaitingConfirmation,
                Some(_) => AgentStatus::Running,
                None => AgentStatus::Idle,
            },
            active_request_id: status.active_request.clone(),
            queued: status.queued,
            halted_at_iteration_limit: status.halted_at_iteration_limit,
            last_action_at: status.last_action_at.clone(),
        }
    }
}

impl From<Context> for ContextResult {
    fn from(context: Context) -> Self {
        Self {
            message_count: context.message_count,
            system_prompt: context.system_prompt,
            halted_at_iteration_limit: context.halted_at_iteration_limit,
            last_iteration_count: context.last_iteration_count,
            max_tool_iterations: context.max_tool_iterations,
        }
    }
}

impl From<Tokens> for TokenSummary {
    fn from(tokens: Tokens) -> Self {
        Self { total: tokens.total(), budget: tokens.budget }
    }
}
