//! The global methods.

use std::sync::Arc;

use futures_util::future::join_all;
use serde::Serialize;
use serde_json::value::RawValue;

use super::code::Code;
use super::method::{
    AgentEntry, AgentSummary, CreateAgentParams, CreateAgentResult, DestroyAgentParams,
    DestroyAgentResult, InitialResponse, Method, NoParams, OpenRpc, RequestStatus, SendParams,
    ShutdownServerResult, SummariesParams, SummariesResult,
};
use super::wire::ErrorObject;
use super::{Call, Patience, openrpc, raw};
use crate::agent::AgentHandle;
use crate::pool::{Children, FirstMessage, Listed, NewAgent};

impl Call<'_> {
    pub(super) async fn create_agent(
        &self,
        params: CreateAgentParams,
    ) -> Result<CreateAgentResult, ErrorObject> {
        let first = FirstMessage::of(&params).map_err(|error| Code::of_ask(&error))?;
        let Some(FirstMessage { content, is_awaited }) = first else {
            let agent = self.create(params).await?;
            return Ok(CreateAgentResult::of(&agent));
        };
        let params_of_send = SendParams { content: content.to_string(), ..SendParams::default() };
        let first = self.prepare_send(params_of_send)?;
        let agent = self.create(params).await?;
        let request_id = first.request.request_id.clone();
        let created = CreateAgentResult::of(&agent);
        let created = CreateAgentResult { initial_request_id: Some(request_id), ..created };
        let sent = if is_awaited && self.patience == Patience::Waits {
            self.send_and_wait(&agent, first).await.map(Some)
        } else {
            self.deliver(&agent, first).await.map(|_| None)
        };
        // The agent is there, and whoever asked for it is told so, whatever became of the message.
        let response = match sent {
            Ok(None) => {
                let initial_status = Some(RequestStatus::Queued);
                return Ok(CreateAgentResult { initial_status, ..created });
            }
            Ok(Some(result)) => InitialResponse::Result(result),
            Err(error) => InitialResponse::Error(error),
        };
        Ok(CreateAgentResult { response: Some(response), ..created })
    }

    async fn create(&self, params: CreateAgentParams) -> Result<AgentHandle, ErrorObject> {
        let new = NewAgent::asked(params, self.caller.agent.as_ref());
        let new = new.map_err(|error| Code::of_ask(&error))?;
        self.rpc.pool.create(new).await.map_err(|error| Code::of_create(&error))
    }

    pub(super) async fn destroy_agent(
        &self,
        params: DestroyAgentParams,
    ) -> Result<DestroyAgentResult, ErrorObject> {
        let agent_id = params.agent_id;
        if let Some(agent) = &self.caller.agent {
            self.caller.owns(&self.rpc.pool, agent, &agent_id)?;
            self.caller.has_tool_for(&self.rpc.pool, Method::DestroyAgent, Some(&agent_id))?;
        }
        let children =
            if params.cascade.unwrap_or(true) { Children::Destroy } else { Children::Keep };
        let destroyed = self.rpc.pool.destroy(&agent_id, children).await;
        let destroyed = destroyed.map_err(|error| Code::of_store(&error))?;
        Ok(DestroyAgentResult::of(agent_id, destroyed))
    }

    pub(super) fn list_agents(&self, _: NoParams) -> WrittenList {
        let written = |listed: &Listed<AgentHandle>| {
            listed.agent.entry(&listed.family, |status| raw(AgentEntry::of(listed, status)))
        };
        WrittenList { agents: self.visible().iter().map(written).collect() }
    }

    pub(super) async fn summaries(&self, params: SummariesParams) -> SummariesResult {
        let mut agents = self.visible();
        if let Some(caller) = &self.caller.agent {
            // An agent sees its parent in a list, but reads only itself and its descendants.
            agents.retain(|listed| self.rpc.pool.is_within(&listed.agent.id(), caller));
        }
        let summaries = agents.iter().map(async |listed| {
            let agent = &listed.agent;
            let entry = AgentEntry::of(listed, &agent.status());
            let mut summary = AgentSummary { entry, tokens: None, context: None };
            // An agent that ends meanwhile is listed without them.
            if params.include_tokens.unwrap_or(false) {
                summary.tokens = agent.tokens().await.ok().map(Into::into);
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
        ShutdownServerResult::accepted()
    }

    #[expect(clippy::unused_self, reason = "all methods are called alike")]
    pub(super) fn discover(&self, _: NoParams) -> &'static OpenRpc {
        openrpc::document()
    }
}

/// The result of `list_agents`, with its entries written already.
#[derive(Serialize)]
pub(super) struct WrittenList {
    agents: Vec<Arc<RawValue>>,
}
