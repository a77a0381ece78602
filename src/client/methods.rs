//! Every method of the server but `send`, typed. Each is one call on a connection of its own.

use super::{ClientError, NexusClient};
use crate::id::{AgentId, RequestId};
use crate::rpc::method::{
    CancelParams, CancelResult, CompactParams, CompactResult, ConfirmParams, ConfirmResult,
    ContextResult, CreateAgentParams, CreateAgentResult, DestroyAgentParams, DestroyAgentResult,
    ExplainPermissionParams, ExplainPermissionResult, GetMessagesParams, GetMessagesResult,
    GetModelResult, GetPermissionsResult, GetRequestParams, GetRequestResult,
    GetSystemPromptResult, GetTokensResult, ListAgentsResult, ListConfirmationsResult, NoParams,
    OpenRpc, SetCwdParams, SetCwdResult, SetModelParams, SetModelResult, SetPermissionsParams,
    SetPermissionsResult, SetSystemPromptParams, SetSystemPromptResult, ShutdownResult,
    ShutdownServerResult, SummariesParams, SummariesResult, call,
};

impl NexusClient {
    pub async fn create_agent(
        &self,
        params: &CreateAgentParams,
    ) -> Result<CreateAgentResult, ClientError> {
        self.call::<call::CreateAgent>(None, params).await
    }

    pub async fn destroy_agent(
        &self,
        params: &DestroyAgentParams,
    ) -> Result<DestroyAgentResult, ClientError> {
        self.call::<call::DestroyAgent>(None, params).await
    }

    pub async fn list_agents(&self) -> Result<ListAgentsResult, ClientError> {
        self.call::<call::ListAgents>(None, &NoParams {}).await
    }

    pub async fn get_agent_summaries(
        &self,
        params: &SummariesParams,
    ) -> Result<SummariesResult, ClientError> {
        self.call::<call::GetAgentSummaries>(None, params).await
    }

    pub async fn shutdown_server(&self) -> Result<ShutdownServerResult, ClientError> {
        self.call::<call::ShutdownServer>(None, &NoParams {}).await
    }

    pub async fn discover(&self) -> Result<OpenRpc, ClientError> {
        self.call::<call::Discover>(None, &NoParams {}).await
    }

    pub async fn cancel(
        &self,
        agent: &AgentId,
        request_id: Option<RequestId>,
    ) -> Result<CancelResult, ClientError> {
        self.call::<call::Cancel>(Some(agent), &CancelParams { request_id }).await
    }

    pub async fn get_request(
        &self,
        agent: &AgentId,
        request_id: RequestId,
    ) -> Result<GetRequestResult, ClientError> {
        self.call::<call::GetRequest>(Some(agent), &GetRequestParams { request_id }).await
    }

    pub async fn get_tokens(&self, agent: &AgentId) -> Result<GetTokensResult, ClientError> {
        self.call::<call::GetTokens>(Some(agent), &NoParams {}).await
    }

    pub async fn get_context(&self, agent: &AgentId) -> Result<ContextResult, ClientError> {
        self.call::<call::GetContext>(Some(agent), &NoParams {}).await
    }

    pub async fn get_messages(
        &self,
        agent: &AgentId,
        params: &GetMessagesParams,
    ) -> Result<GetMessagesResult, ClientError> {
        self.call::<call::GetMessages>(Some(agent), params).await
    }

    pub async fn get_model(&self, agent: &AgentId) -> Result<GetModelResult, ClientError> {
        self.call::<call::GetModel>(Some(agent), &NoParams {}).await
    }

    pub async fn set_model(
        &self,
        agent: &AgentId,
        model: &str,
    ) -> Result<SetModelResult, ClientError> {
        let params = SetModelParams { model: model.to_owned() };
        self.call::<call::SetModel>(Some(agent), &params).await
    }

    pub async fn compact(
        &self,
        agent: &AgentId,
        params: &CompactParams,
    ) -> Result<CompactResult, ClientError> {
        self.call::<call::Compact>(Some(agent), params).await
    }

    pub async fn get_system_prompt(
        &self,
        agent: &AgentId,
    ) -> Result<GetSystemPromptResult, ClientError> {
        self.call::<call::GetSystemPrompt>(Some(agent), &NoParams {}).await
    }

    pub async fn set_system_prompt(
        &self,
        agent: &AgentId,
        system_prompt: &str,
    ) -> Result<SetSystemPromptResult, ClientError> {
        let params = SetSystemPromptParams { system_prompt: system_prompt.to_owned() };
        self.call::<call::SetSystemPrompt>(Some(agent), &params).await
    }

    /// Answers a confirmation; the first answer wins.
    pub async fn confirm(
        &self,
        agent: &AgentId,
        params: &ConfirmParams,
    ) -> Result<ConfirmResult, ClientError> {
        self.call::<call::Confirm>(Some(agent), params).await
    }

    pub async fn list_confirmations(
        &self,
        agent: &AgentId,
    ) -> Result<ListConfirmationsResult, ClientError> {
        self.call::<call::ListConfirmations>(Some(agent), &NoParams {}).await
    }

    pub async fn set_cwd(&self, agent: &AgentId, cwd: &str) -> Result<SetCwdResult, ClientError> {
        let params = SetCwdParams { cwd: cwd.to_owned() };
        self.call::<call::SetCwd>(Some(agent), &params).await
    }

    pub async fn get_permissions(
        &self,
        agent: &AgentId,
    ) -> Result<GetPermissionsResult, ClientError> {
        self.call::<call::GetPermissions>(Some(agent), &NoParams {}).await
    }

    pub async fn set_permissions(
        &self,
        agent: &AgentId,
        params: &SetPermissionsParams,
    ) -> Result<SetPermissionsResult, ClientError> {
        self.call::<call::SetPermissions>(Some(agent), params).await
    }

    pub async fn explain_permission(
        &self,
        agent: &AgentId,
        params: &ExplainPermissionParams,
    ) -> Result<ExplainPermissionResult, ClientError> {
        self.call::<call::ExplainPermission>(Some(agent), params).await
    }

    pub async fn shutdown(&self, agent: &AgentId) -> Result<ShutdownResult, ClientError> {
        self.call::<call::Shutdown>(Some(agent), &NoParams {}).await
    }
}
