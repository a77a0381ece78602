//! What an agent may ask of others, be it over RPC in its name or through its tools: the same checks for
//! both. They look at who is whose parent and at what the agent may do, never at what goes on.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::create::{Asker, FirstTurn, NewAgent, NewId};
use super::{CreateError, Pool};
use crate::id::{AgentId, IdError};
use crate::policy::budget::{Exceeded, Reader};
use crate::policy::{self, PolicyError, Preset, Reason, Refusal, ceiling};
use crate::session::LAST_SESSION;
use crate::tool::team::{Act, CreateAgentParams, beyond, refused};

/// The first message of an agent to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirstMessage {
    pub content: Arc<str>,
    /// Whether whoever creates the agent waits for the end of its turn.
    pub is_awaited: bool,
}

/// What is wrong with what is asked for, before anybody looks at the agents there are.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    #[error("Invalid parameter initial_message: it must not be empty")]
    EmptyMessage,
    #[error("wait_for_initial_response needs an initial_message")]
    NothingToWaitFor,
    #[error(transparent)]
    Id(#[from] IdError),
    #[error("Invalid agent id: `{LAST_SESSION}` is reserved")]
    Reserved,
    #[error(transparent)]
    Refused(#[from] Refusal),
}

impl FirstMessage {
    pub fn of(params: &CreateAgentParams) -> Result<Option<Self>, AskError> {
        let is_awaited = params.wait_for_initial_response.unwrap_or(false);
        match params.initial_message.as_deref() {
            Some("") => Err(AskError::EmptyMessage),
            Some(content) => Ok(Some(Self { content: content.into(), is_awaited })),
            None if is_awaited => Err(AskError::NothingToWaitFor),
            None => Ok(None),
        }
    }
}

impl NewAgent {
    /// What is asked for by `from`, or by a client with all rights.
    pub fn asked(params: CreateAgentParams, from: Option<&AgentId>) -> Result<Self, AskError> {
        let id = match params.agent_id.as_deref() {
            None => NewId::Auto,
            Some(".") => NewId::Temp,
            Some(LAST_SESSION) => return Err(AskError::Reserved),
            Some(text) => NewId::Given(AgentId::parse(text)?),
        };
        let paths = |paths: Vec<String>| paths.into_iter().map(PathBuf::from).collect();
        Ok(Self {
            id,
            preset: params.preset,
            system_prompt: params.system_prompt,
            cwd: params.cwd.map(PathBuf::from),
            write_paths: params.allowed_write_paths.map(paths),
            model: params.model,
            disable_tools: params.disable_tools.unwrap_or_default(),
            parent: parent(from, params.parent_agent_id)?,
            asker: if from.is_some() { Asker::Agent } else { Asker::Person },
            limits: params.limits.unwrap_or_default(),
            first_turn: if params.initial_message.is_some() {
                FirstTurn::AtOnce
            } else {
                FirstTurn::Later
            },
        })
    }
}

/// An agent creates only children of itself.
fn parent(from: Option<&AgentId>, given: Option<AgentId>) -> Result<Option<AgentId>, Refusal> {
    match (from, given) {
        (None, given) => Ok(given),
        (Some(from), None) => Ok(Some(from.clone())),
        (Some(from), Some(given)) if *from == given => Ok(Some(given)),
        (Some(from), Some(given)) => {
            Err(owner(format!("{from} creates only its own children, not those of {given}")))
        }
    }
}

impl Pool {
    /// Whether `from` may have a child like this, as far as that can be known without looking at a disk.
    pub fn may_create(&self, from: &AgentId, params: &CreateAgentParams) -> Result<(), Refusal> {
        let sender = self.present(from)?;
        if let Some(preset) = self.preset_of(params) {
            let above = sender.permissions();
            ceiling::child(above.rights(), preset, sender.facts().depth + 1)?;
        }
        parent(Some(from), params.parent_agent_id.clone()).map(|_| ())
    }

    /// Whether `from` may let a child like this, which works in `cwd`, write where it asks for.
    pub fn may_give_writes(
        &self,
        from: &AgentId,
        params: &CreateAgentParams,
        cwd: &Path,
    ) -> Result<(), PolicyError> {
        let (Some(paths), Some(preset)) = (&params.allowed_write_paths, self.preset_of(params))
        else {
            return Ok(());
        };
        let above = self.present(from)?.permissions();
        let paths: Vec<PathBuf> = paths.iter().map(PathBuf::from).collect();
        let listed = policy::write_paths(preset, cwd, &paths)?;
        Ok(ceiling::writes(above.rights(), &above.rights().writes, &listed)?)
    }

    /// One that there is not is told of when the agent is created.
    fn preset_of(&self, params: &CreateAgentParams) -> Option<&Arc<Preset>> {
        match &params.preset {
            Some(name) => self.presets.get(name).ok(),
            None => Some(self.presets.default_preset()),
        }
    }

    /// What the limits of agents leave to this: agents and turns, as far as they are still to be had.
    pub fn has_left(&self, from: &AgentId, act: &Act) -> Result<(), String> {
        let accounts = &self.shared.accounts;
        match act {
            Act::Create(params) => {
                let parent = self.present(from).map_err(|refusal| refused(&refusal))?;
                let parent = parent.facts().number;
                let mut open = accounts.may_open(Some(parent), &params.limits.unwrap_or_default());
                if params.initial_message.is_some() {
                    let turn = || accounts.may_take_turn(parent).map_err(Exceeded::of_child);
                    open = open.and_then(|()| turn());
                }
                open.map_err(|exceeded| beyond(&exceeded, from, Reader::ItsParent))
            }
            Act::Send { to, .. } => {
                let Some(number) = self.registry().number(to) else { return Ok(()) };
                let turn = accounts.may_take_turn(number);
                turn.map_err(|exceeded| beyond(&exceeded, to, self.reader(from, to)))
            }
            Act::Status { .. } | Act::Cancel { .. } | Act::Destroy { .. } | Act::Shutdown => Ok(()),
        }
    }

    /// What `from` is to `to`.
    pub(super) fn reader(&self, from: &AgentId, to: &AgentId) -> Reader {
        if self.parent(to).as_ref() == Some(from) { Reader::ItsParent } else { Reader::Another }
    }

    pub fn may_send(&self, from: &AgentId, to: &AgentId) -> Result<(), Refusal> {
        let rule = self.present(from)?.permissions().rights().send;
        policy::may_send(rule, from, to, self.parent(from).as_ref())
    }

    /// Whether nobody disabled this tool for the agent.
    pub fn has_tool(&self, agent: &AgentId, tool: &str) -> Result<(), Refusal> {
        let permissions = self.present(agent)?.permissions();
        if !permissions.rights().disabled_tools.contains(tool) {
            return Ok(());
        }
        let message = format!("{tool} is disabled for {agent}");
        Err(Refusal { reason: Reason::Policy, message })
    }

    /// Whether `target` is `agent` itself or a descendant.
    pub fn owns(&self, agent: &AgentId, target: &AgentId) -> Result<(), Refusal> {
        if self.is_within(target, agent) {
            return Ok(());
        }
        Err(owner(format!("{target} is neither {agent} nor one of its descendants")))
    }

    /// Whether `target` is a descendant of `agent`.
    pub fn manages(&self, agent: &AgentId, target: &AgentId) -> Result<(), Refusal> {
        if agent == target {
            return Err(owner(format!("{agent} manages its descendants, and not itself")));
        }
        self.owns(agent, target)
    }

    fn present(&self, id: &AgentId) -> Result<crate::agent::AgentHandle, Refusal> {
        self.agent(id).ok_or_else(|| owner(format!("{id} is being destroyed")))
    }
}

impl CreateError {
    /// The refusal that it is, if somebody may not do what was asked for.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Policy(PolicyError::Refused { refusal }) => Some(refusal),
            Self::Policy(_)
            | Self::Taken { .. }
            | Self::UnknownParent { .. }
            | Self::Parent { .. }
            | Self::NoCwd { .. }
            | Self::CwdNotDir { .. }
            | Self::CwdUnusable { .. }
            | Self::UnknownTool { .. }
            | Self::Model(_)
            | Self::Limit(_)
            | Self::Stopping
            | Self::Reserved
            | Self::Storage { .. } => None,
        }
    }
}

fn owner(message: String) -> Refusal {
    Refusal { reason: Reason::Owner, message }
}
