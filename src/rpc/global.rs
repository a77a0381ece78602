//! The global methods.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::join_all;
use serde::Serialize;
use serde_json::value::RawValue;

use super::caller::refused;
use super::code::Code;
use super::method::{
    AgentEntry, AgentStatus, AgentSummary, CreateAgentParams, CreateAgentResult,
    DestroyAgentParams, DestroyAgentResult, InitialResponse, NoParams, OpenRpc, RequestStatus,
    SendParams, ShutdownServerResult, SummariesParams, SummariesResult, TokenSummary,
};
use super::params::invalid;
use super::wire::ErrorObject;
use super::{Call, Patience, openrpc, raw};
use crate::agent::{AgentHandle, Status};
use crate::id::AgentId;
use crate::policy::Reason;
use crate::pool::{Asker, Children, Listed, NewAgent, NewId};

impl Call<'_> {
    pub(super) async fn create_agent(
        &self,
        params: CreateAgentParams,
    ) -> Result<CreateAgentResult, ErrorObject> {
        let waits = params.wait_for_initial_response.unwrap_or(false);
        if params.initial_message.as_deref() == Some("") {
            return Err(invalid("Invalid parameter initial_message: it must not be empty"));
        }
        let Some(message) = &params.initial_message else {
            if waits {
                return Err(invalid("wait_for_initial_response needs an initial_message"));
            }
            let agent = self.create(params).await?;
            return Ok(created(&agent));
        };
        let params_of_send = SendParams { content: message.clone(), ..SendParams::default() };
        let first = self.prepare_send(params_of_send)?;
        let agent = self.create(params).await?;
        let request_id = first.request.request_id.clone();
        let result = CreateAgentResult { initial_request_id: Some(request_id), ..created(&agent) };
        if waits && self.patience == Patience::Waits {
            let response = self.send_and_wait(&agent, first).await;
            let response = response.map_or_else(InitialResponse::Error, InitialResponse::Result);
            return Ok(CreateAgentResult { response: Some(response), ..result });
        }
        self.deliver(&agent, first).await?;
        Ok(CreateAgentResult { initial_status: Some(RequestStatus::Queued), ..result })
    }

    async fn create(&self, params: CreateAgentParams) -> Result<AgentHandle, ErrorObject> {
        let id = match params.agent_id.as_deref() {
            None => NewId::Auto,
            Some(".") => NewId::Temp,
            Some(text) => NewId::Given(AgentId::parse(text).map_err(|error| Code::of_id(&error))?),
        };
        let parent = self.parent(params.parent_agent_id)?;
        let paths = |paths: Vec<String>| paths.into_iter().map(PathBuf::from).collect();
        let new = NewAgent {
            id,
            preset: params.preset,
            system_prompt: params.system_prompt,
            cwd: params.cwd.map(PathBuf::from),
            write_paths: params.allowed_write_paths.map(paths),
            model: params.model,
            disable_tools: params.disable_tools.unwrap_or_default(),
            parent,
            asker: if self.caller.agent.is_some() { Asker::Agent } else { Asker::Person },
        };
        self.rpc.pool.create(new).await.map_err(|error| Code::of_create(&error))
    }

    /// An agent creates only children of itself.
    fn parent(&self, given: Option<AgentId>) -> Result<Option<AgentId>, ErrorObject> {
        match (&self.caller.agent, given) {
            (None, given) => Ok(given),
            (Some(agent), None) => Ok(Some(agent.clone())),
            (Some(agent), Some(given)) if *agent == given => Ok(Some(given)),
            (Some(agent), Some(given)) => {
                let message =
                    format!("{agent} creates only its own children, not those of {given}");
                Err(refused(Reason::Owner, message))
            }
        }
    }

    pub(super) async fn destroy_agent(
        &self,
        params: DestroyAgentParams,
    ) -> Result<DestroyAgentResult, ErrorObject> {
        let agent_id = params.agent_id;
        if let Some(agent) = &self.caller.agent {
            self.caller.owns(&self.rpc.pool, agent, &agent_id)?;
        }
        let children =
            if params.cascade.unwrap_or(true) { Children::Destroy } else { Children::Keep };
        let destroyed = self.rpc.pool.destroy(&agent_id, children).await;
        let destroyed = destroyed.map_err(|error| Code::of_store(&error))?;
        Ok(DestroyAgentResult { success: !destroyed.is_empty(), agent_id, destroyed })
    }

    pub(super) fn list_agents(&self, _: NoParams) -> WrittenList {
        let written = |listed: &Listed<AgentHandle>| {
            listed.agent.entry(&listed.family, |status| raw(entry(listed, status)))
        };
        WrittenList { agents: self.visible().iter().map(written).collect() }
    }

    pub(super) async fn summaries(&self, params: SummariesParams) -> SummariesResult {
        let mut agents = self.visible();
        if let Some(caller) = &self.caller.agent {
            // An agent sees its parent in a list, but reads only itself and its descendants.
            agents.retain(|listed| self.rpc.pool.is_within(&listed.agent.facts().id, caller));
        }
        let summaries = agents.iter().map(async |listed| {
            let agent = &listed.agent;
            let entry = entry(listed, &agent.status());
            let mut summary = AgentSummary { entry, tokens: None, context: None };
            // An agent that ends meanwhile is listed without them.
            if params.include_tokens.unwrap_or(false) {
                let tokens = agent.tokens().await.ok();
                summary.tokens = tokens
                    .map(|tokens| TokenSummary { total: tokens.total(), budget: tokens.budget });
            }
            if params.include_context.unwrap_or(false) {
                summary.context = agent.context().await.ok().map(Into::into);
            }
            summary
        });
        SummariesResult { agents: join_all(summaries).await }
    }

    fn visible(&self) -> Vec<Listed<AgentHandle>> {
        match &self.caller.agent {
            Some(agent) => self.rpc.pool.list_for(agent),
            None => self.rpc.pool.list(),
        }
    }

    pub(super) fn shutdown_server(&self, _: NoParams) -> ShutdownServerResult {
        tracing::info!(client = self.caller.client.as_str(), "asked to shut down");
        self.rpc.pool.request_stop();
        ShutdownServerResult { success: true, message: "Server shutting down".to_owned() }
    }

    #[expect(clippy::unused_self, reason = "all methods are called alike")]
    pub(super) fn discover(&self, _: NoParams) -> &'static OpenRpc {
        openrpc::document()
    }
}

fn created(agent: &AgentHandle) -> CreateAgentResult {
    let agent_id = agent.facts().id.clone();
    CreateAgentResult {
        url: format!("/agent/{agent_id}"),
        agent_id,
        initial_request_id: None,
        initial_status: None,
        response: None,
    }
}

/// The result of `list_agents`, with its entries written already.
#[derive(Serialize)]
pub(super) struct WrittenList {
    agents: Vec<Arc<RawValue>>,
}

fn entry(listed: &Listed<AgentHandle>, status: &Status) -> AgentEntry {
    let (facts, shown) = (listed.agent.facts(), &status.shown);
    AgentEntry {
        agent_id: facts.id.clone(),
        is_temp: facts.id.is_temp(),
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
            Some(_) => AgentStatus::Running,
            None => AgentStatus::Idle,
        },
        active_request_id: status.active_request.clone(),
        queued: status.queued,
        halted_at_iteration_limit: status.halted_at_iteration_limit,
        last_action_at: status.last_action_at.clone(),
    }
}
