//! What can be written: the changes that agents and the pool make durable. Data only.

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::sessions::{Exported, TakenSession};
use crate::choice::Choice;
use crate::event::Event;
use crate::id::{AgentId, ConfirmId, RequestId};
use crate::message::{Message, Usage};
use crate::policy::budget::{KeptBudget, Used};
use crate::policy::{Allowances, Rights};

/// The place of an agent in the order of creation: no other agent, of whatever id, ever has it.
pub type AgentNumber = u64;

/// One change. What is committed together is durable together, in this order.
#[derive(Clone, Debug)]
pub enum Write {
    AgentCreated {
        number: AgentNumber,
        record: Box<AgentRecord>,
    },
    /// The agent is gone: its id is free, and its conversation is no longer found. Its children have
    /// no parent any more.
    AgentDestroyed {
        number: AgentNumber,
    },
    AgentRestored {
        number: AgentNumber,
    },
    /// The agent is called otherwise from now on, and is temporary no more: its events are found under
    /// the new id, its children have a parent of this id, and the old one is free.
    AgentRenamed {
        number: AgentNumber,
        id: AgentId,
    },
    /// A piece of what is left of an agent that is gone goes for good, its row with the last of it.
    AgentPruned {
        number: AgentNumber,
    },
    Message {
        agent: AgentNumber,
        index: u64,
        message: Arc<Message>,
    },
    RequestQueued {
        agent: AgentNumber,
        id: RequestId,
        content: Arc<str>,
    },
    RequestStarted {
        agent: AgentNumber,
        id: RequestId,
    },
    RequestEnded {
        agent: AgentNumber,
        id: RequestId,
        /// `completed`, `cancelled`, `failed` or `interrupted`.
        status: &'static str,
        /// JSON, opaque to the store.
        outcome: String,
    },
    /// Only so many ended requests are kept.
    RequestForgotten {
        agent: AgentNumber,
        id: RequestId,
    },
    /// A call is about to have its effect.
    ToolStarted {
        agent: AgentNumber,
        request: RequestId,
        tool_id: String,
        name: String,
    },
    ToolEnded {
        agent: AgentNumber,
        request: RequestId,
        tool_id: String,
    },
    /// Somebody is asked whether a call may run.
    ConfirmationRequested {
        agent: AgentNumber,
        asked: Box<ConfirmationAsked>,
    },
    /// A confirmation is decided. Only so many of these are kept, of all agents together.
    ConfirmationResolved {
        agent: AgentNumber,
        id: ConfirmId,
        decision: Choice,
        by: String,
    },
    /// Somebody allowed the agent more, for good.
    Allowed {
        agent: AgentNumber,
        more: Box<Allowances>,
    },
    /// How the agent stands after a turn.
    Standing {
        agent: AgentNumber,
        standing: Standing,
    },
    /// The agent has another model from now on.
    ModelSet {
        agent: AgentNumber,
        /// As `set_model` names it.
        model: String,
    },
    /// The agent has another system prompt from now on, which comes from no file.
    PromptSet {
        agent: AgentNumber,
        prompt: Arc<str>,
    },
    /// The agent may do this from now on.
    PermissionsSet {
        agent: AgentNumber,
        granted: Box<Granted>,
    },
    /// To models this stands for the agent's messages before the one of the index `upto`.
    Summary {
        agent: AgentNumber,
        upto: u64,
        summary: Arc<str>,
    },
    /// The agent, which is created with it, has limits or stands below some.
    BudgetOpened(Box<KeptBudget>),
    /// What an agent with a budget has used by itself, in all.
    Spent {
        agent: AgentNumber,
        used: Used,
    },
    /// The agent's session file follows it from now on, or no longer does.
    Exported {
        agent: AgentNumber,
        exported: Exported,
    },
    /// The agent has what stands in a session, in place of what it had. Its requests stay known.
    SessionTaken {
        agent: AgentNumber,
        taken: Box<TakenSession>,
    },
    /// What is called the last session is this agent's from now on.
    LastSession {
        agent: AgentNumber,
    },
    /// A durable event; it gets its `seq` in the transaction.
    Event(Event),
}

/// A confirmation that somebody can give until its time is over.
#[derive(Clone, Debug)]
pub struct ConfirmationAsked {
    pub id: ConfirmId,
    pub request: RequestId,
    /// The name of the tool that is called.
    pub tool: String,
    pub options: &'static [Choice],
    /// ISO 8601, UTC.
    pub expires_at: Arc<str>,
}

/// All that is needed to make an agent again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentRecord {
    pub id: AgentId,
    pub parent: Option<AgentId>,
    pub depth: u32,
    /// ISO 8601, UTC.
    pub created_at: Arc<str>,
    pub recipe: Recipe,
}

/// What an agent was created from; today's configuration decides what that means today.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recipe {
    pub preset: String,
    /// As `create_agent` names it.
    pub model: String,
    pub cwd: PathBuf,
    pub write_paths: Vec<PathBuf>,
    pub disabled_tools: Vec<String>,
    /// Those that its preset disables and somebody enabled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub enabled_tools: Vec<String>,
    pub system_prompt: Arc<str>,
    /// The nearest of the files that the prompt was made from.
    #[serde(default)]
    pub system_prompt_path: Option<PathBuf>,
    /// What a sandboxed agent cannot leave; where it is not on record, its working directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_allowances: Option<Allowances>,
    /// What its parent could last do, for when there is none any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<Rights>,
}

/// The part of a recipe that says what the agent may do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Granted {
    pub preset: String,
    pub cwd: PathBuf,
    pub root: Option<PathBuf>,
    pub write_paths: Vec<PathBuf>,
    pub disabled_tools: Vec<String>,
    pub enabled_tools: Vec<String>,
    pub session_allowances: Option<Allowances>,
    pub ceiling: Option<Rights>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    pub halted_at_iteration_limit: bool,
    pub last_iteration_count: u32,
    /// ISO 8601, UTC.
    pub last_action_at: Option<Arc<str>>,
    /// Of all its turns, as far as its models told it.
    #[serde(default)]
    pub token_usage: Usage,
}
