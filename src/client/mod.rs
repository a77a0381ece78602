//! The client library: every method of the server and its events, typed, over any world's network.
//! It speaks plain HTTP to loopback and opens a connection per call; it never retries by itself.

mod arriving;
mod detect;
mod events;
mod token;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::response::Parts;
use http::{HeaderName, HeaderValue, Request, StatusCode};
use http_body_util::Full;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::timeout;

use arriving::Arriving;
pub use detect::Detection;
pub use events::EventStream;
pub use token::{TokenError, find_token};

use crate::id::{AgentId, RequestId};
use crate::limits::{CLIENT_CALL_MAX, CLIENT_CONNECT_MAX, TIMEOUT_SECONDS_MAX};
use crate::rpc::method::{
    Call, CancelParams, CancelResult, CompactParams, CompactResult, ConfirmParams, ConfirmResult,
    ContextResult, CreateAgentParams, CreateAgentResult, DestroyAgentParams, DestroyAgentResult,
    ExplainPermissionParams, ExplainPermissionResult, GetMessagesParams, GetMessagesResult,
    GetModelResult, GetPermissionsResult, GetRequestParams, GetRequestResult,
    GetSystemPromptResult, GetTokensResult, ListAgentsResult, ListConfirmationsResult, Method,
    NoParams, OpenRpc, Scope, SendParams, SendResult, SetCwdParams, SetCwdResult, SetModelParams,
    SetModelResult, SetPermissionsParams, SetPermissionsResult, SetSystemPromptParams,
    SetSystemPromptResult, ShutdownResult, ShutdownServerResult, SummariesParams, SummariesResult,
    call,
};
use crate::rpc::wire::ErrorObject;
use crate::world::Net;

#[derive(Clone)]
pub struct NexusClient {
    net: Arc<dyn Net>,
    address: SocketAddr,
    token: Option<SecretString>,
    name: String,
    /// What every request says besides: later ones replace earlier ones of the same name.
    headers: Vec<(String, String)>,
}

impl std::fmt::Debug for NexusClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NexusClient").field("address", &self.address).finish_non_exhaustive()
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("no server answers at {address}")]
    NoServer {
        address: SocketAddr,
        #[source]
        source: std::io::Error,
    },
    #[error("the server at {address} did not answer in time")]
    Timeout { address: SocketAddr },
    /// The connection broke, or what came back is not what a NEXUS3 server sends.
    #[error("the exchange with {address} failed: {what}")]
    Protocol { address: SocketAddr, what: String },
    /// The server refused the request with this HTTP status.
    #[error("{}", error.message)]
    Refused { status: StatusCode, error: ErrorObject },
    #[error("{}", error.message)]
    Rpc { error: ErrorObject },
}

impl ClientError {
    /// Whether the token was missing or wrong.
    pub fn is_authentication(&self) -> bool {
        match self {
            Self::Refused { status, error } => {
                *status == StatusCode::UNAUTHORIZED || error.message == "Invalid API key"
            }
            Self::NoServer { .. }
            | Self::Timeout { .. }
            | Self::Protocol { .. }
            | Self::Rpc { .. } => false,
        }
    }
}

impl NexusClient {
    pub fn new(net: Arc<dyn Net>, address: SocketAddr, token: Option<SecretString>) -> Self {
        Self { net, address, token, name: "client".to_owned(), headers: Vec::new() }
    }

    /// Names this client in messages and logs.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// Calls in the name of an agent, with no more than its rights.
    #[must_use]
    pub fn acting_as(self, agent: &AgentId) -> Self {
        self.with_header("x-nexus-agent", agent.as_str())
    }

    /// Adds a header to every request, or replaces the one the client would send.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

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

    pub async fn send(
        &self,
        agent: &AgentId,
        params: &SendParams,
    ) -> Result<SendResult, ClientError> {
        self.call::<call::Send>(Some(agent), params).await
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

    /// Calls any method by its type. `agent` is needed for agents' methods, and only for them.
    pub async fn call<C: Call>(
        &self,
        agent: Option<&AgentId>,
        params: &C::Params,
    ) -> Result<C::Result, ClientError> {
        assert_eq!(
            agent.is_some(),
            C::METHOD.scope() == Scope::Agent,
            "agents' methods need an agent"
        );
        let params = serde_json::to_value(params).expect("params have only string keys");
        let result = self.call_by_name(agent, C::METHOD.name(), params).await?;
        serde_json::from_value(result)
            .map_err(|error| self.protocol(format!("unexpected result: {error}")))
    }

    /// Calls any method by its name, with params and result as JSON.
    pub async fn call_by_name(
        &self,
        agent: Option<&AgentId>,
        method: &str,
        params: Value,
    ) -> Result<Value, ClientError> {
        let path = agent.map_or_else(|| "/rpc".to_owned(), |agent| format!("/agent/{agent}"));
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let waits = [Method::Send, Method::CreateAgent, Method::Compact];
        // Turns and summaries end by the server's own deadlines.
        let allowed = if waits.iter().any(|waits| waits.name() == method) {
            Duration::from_secs_f64(TIMEOUT_SECONDS_MAX)
        } else {
            CLIENT_CALL_MAX
        };
        let exchange = self.exchange(Request::post(path), body.to_string());
        let (status, answer) = timeout(allowed, exchange).await.map_err(|_| self.timed_out())??;
        self.result(status, &answer)
    }

    fn result(&self, status: StatusCode, body: &[u8]) -> Result<Value, ClientError> {
        #[derive(Deserialize)]
        struct Answer {
            result: Option<Value>,
            error: Option<ErrorObject>,
        }
        let answer: Answer = serde_json::from_slice(body).map_err(|_| {
            self.protocol(format!("HTTP {} without a JSON-RPC answer", status.as_u16()))
        })?;
        match (answer.result, answer.error) {
            (_, Some(error)) if status == StatusCode::OK => Err(ClientError::Rpc { error }),
            (_, Some(error)) => Err(ClientError::Refused { status, error }),
            (Some(result), None) => Ok(result),
            (None, None) => Err(self.protocol("an answer without result and error".to_owned())),
        }
    }

    /// One request on a connection of its own; the whole answer.
    async fn exchange(
        &self,
        request: http::request::Builder,
        body: String,
    ) -> Result<(StatusCode, Bytes), ClientError> {
        let (head, arriving) = self.open(request, body).await?;
        let body = arriving.whole().await.map_err(|what| self.protocol(what))?;
        Ok((head.status, body))
    }

    /// One request on a connection of its own; the answer's head, and the rest as it comes.
    async fn open(
        &self,
        request: http::request::Builder,
        body: String,
    ) -> Result<(Parts, Arriving), ClientError> {
        let request = self.prepare(request, body)?;
        let stream = timeout(CLIENT_CONNECT_MAX, self.net.connect(self.address))
            .await
            .map_err(|_| self.timed_out())?
            .map_err(|source| ClientError::NoServer { address: self.address, source })?;
        arriving::send(stream, request).await.map_err(|what| self.protocol(what))
    }

    fn prepare(
        &self,
        request: http::request::Builder,
        body: String,
    ) -> Result<Request<Full<Bytes>>, ClientError> {
        let mut request = request
            // Servers are local, whatever leads to them.
            .header(HOST, format!("localhost:{}", self.address.port()))
            .header(CONTENT_TYPE, "application/json")
            .header("x-nexus-client", &self.name);
        if let Some(token) = &self.token {
            request = request.header(AUTHORIZATION, format!("Bearer {}", token.expose_secret()));
        }
        let mut request = request
            .body(Full::new(Bytes::from(body)))
            .map_err(|error| self.protocol(error.to_string()))?;
        for (name, value) in &self.headers {
            let header = name.parse::<HeaderName>().ok().zip(HeaderValue::from_str(value).ok());
            let (name, value) =
                header.ok_or_else(|| self.protocol(format!("{name} is no valid header")))?;
            request.headers_mut().insert(name, value);
        }
        Ok(request)
    }

    fn timed_out(&self) -> ClientError {
        ClientError::Timeout { address: self.address }
    }

    fn protocol(&self, what: String) -> ClientError {
        ClientError::Protocol { address: self.address, what }
    }
}
