//! The whole API on one page: every method with its name, place, params and result.
//! Types only; what agents' tools tell as well comes from where those find it. What a method does is in
//! `global`, `per_agent` and `permissions`; the schema that clients see is made from these types by
//! `openrpc`, and the client library speaks them too.

use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use super::confirmations::{
    ConfirmParams, ConfirmResult, ConfirmationEntry, ListConfirmationsResult,
};
pub use super::mcp::{
    McpConnectParams, McpConnectResult, McpDisconnectResult, McpListServersResult, McpNameParams,
    McpServerEntry, McpStatusResult,
};
pub use super::session_changes::{
    CloneSessionParams, CloneSessionResult, DeleteSessionParams, DeleteSessionResult,
    PruneSessionsParams, PruneSessionsResult, RenameSessionParams, RenameSessionResult,
};
pub use super::sessions::{
    ListSessionsParams, ListSessionsResult, LoadSessionParams, LoadSessionResult,
    SaveSessionParams, SaveSessionResult, SessionEntry, ShowSessionParams,
};
pub use super::settings::{
    ExplainPermissionParams, ExplainPermissionResult, GetModelResult, GetPermissionsResult,
    GetSystemPromptResult, SetCwdParams, SetCwdResult, SetModelParams, SetModelResult,
    SetPermissionsParams, SetPermissionsResult, SetSystemPromptParams, SetSystemPromptResult,
};
use super::wire::ErrorObject;
use crate::id::{AgentId, RequestId};
use crate::message::Message;
pub use crate::policy::budget::Limits;
pub use crate::pool::told::{
    AgentEntry, AgentStatus, AgentSummary, CancelResult, ContextResult, CreateAgentResult,
    DestroyAgentResult, InitialResponse, RequestStatus, SendResult, ShutdownServerResult,
    TokenSummary,
};
pub use crate::session::SessionFile;
pub use crate::tool::team::CreateAgentParams;

/// Where a method is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// `POST /` or `POST /rpc`.
    Global,
    /// `POST /agent/{agent_id}`.
    Agent,
}

/// Whether a method counts against the number of executing requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    Counted,
    /// Always answered: it is what an operator needs when the server is busy.
    Exempt,
}

/// What a caller with `X-Nexus-Agent` may do with a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AsAgent {
    Allowed,
    /// On itself and its descendants.
    Own,
    /// The method decides by its params.
    Decided,
    Refused,
}

/// A method as a type, for callers who want its params and result checked by the compiler.
pub trait Call {
    const METHOD: Method;
    type Params: Serialize + DeserializeOwned + JsonSchema;
    type Result: Serialize + DeserializeOwned + JsonSchema;
}

macro_rules! methods {
    ($($call:ident $name:literal: $scope:ident, $load:ident, $as_agent:ident, $params:ident => $result:ident, $about:literal;)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Method { $($call),* }

        impl Method {
            pub const ALL: &[Self] = &[$(Self::$call),*];

            pub fn name(self) -> &'static str {
                match self { $(Self::$call => $name),* }
            }

            pub fn about(self) -> &'static str {
                match self { $(Self::$call => $about),* }
            }

            pub fn scope(self) -> Scope {
                match self { $(Self::$call => Scope::$scope),* }
            }

            pub fn load(self) -> Load {
                match self { $(Self::$call => Load::$load),* }
            }

            pub fn as_agent(self) -> AsAgent {
                match self { $(Self::$call => AsAgent::$as_agent),* }
            }

            /// The schemas of params and result.
            pub fn schemas(self, generator: &mut SchemaGenerator) -> (Schema, Schema) {
                match self {
                    $(Self::$call => (
                        $params::json_schema(generator),
                        generator.subschema_for::<$result>(),
                    )),*
                }
            }
        }

        /// The methods as types.
        pub mod call {
            $(
                #[doc = $about]
                #[derive(Debug)]
                pub struct $call;

                impl super::Call for $call {
                    const METHOD: super::Method = super::Method::$call;
                    type Params = super::$params;
                    type Result = super::$result;
                }
            )*
        }
    };
}

methods! {
    CreateAgent "create_agent": Global, Counted, Decided, CreateAgentParams => CreateAgentResult,
        "Creates an agent, and sends it a first message if there is one.";
    DestroyAgent "destroy_agent": Global, Counted, Decided, DestroyAgentParams => DestroyAgentResult,
        "Ends an agent and everything it runs; with `cascade` its descendants too.";
    ListAgents "list_agents": Global, Exempt, Allowed, NoParams => ListAgentsResult,
        "Lists the agents in order of creation.";
    GetAgentSummaries "get_agent_summaries": Global, Counted, Allowed, SummariesParams => SummariesResult,
        "Lists the agents, with their tokens and context if asked for.";
    ShutdownServer "shutdown_server": Global, Counted, Refused, NoParams => ShutdownServerResult,
        "Stops the server once running turns have ended or their time of grace is over.";
    CloneSession "clone_session": Global, Counted, Refused, CloneSessionParams => CloneSessionResult,
        "Copies a session under another name; of an agent in a turn, what it was before that.";
    RenameSession "rename_session": Global, Counted, Refused, RenameSessionParams => RenameSessionResult,
        "Gives a session another name, and its agent another id, unless that is in a turn.";
    DeleteSession "delete_session": Global, Counted, Refused, DeleteSessionParams => DeleteSessionResult,
        "Removes a session's file, and its agent unless that runs.";
    PruneSessions "prune_sessions": Global, Counted, Refused, PruneSessionsParams => PruneSessionsResult,
        "Removes what is left of agents that are gone: their rows, events and logs.";
    McpListServers "mcp_list_servers": Global, Counted, Refused, NoParams => McpListServersResult,
        "Lists the MCP servers and the tools that they offer agents.";
    McpConnect "mcp_connect": Global, Counted, Refused, McpConnectParams => McpConnectResult,
        "Connects to an MCP server, for all agents or for one, until the server stops.";
    McpDisconnect "mcp_disconnect": Global, Counted, Refused, McpNameParams => McpDisconnectResult,
        "Ends the connection to an MCP server and everything it runs.";
    McpStatus "mcp_status": Global, Counted, Refused, McpNameParams => McpStatusResult,
        "Tells how an MCP server is, with the last lines of its error output.";
    ListSessions "list_sessions": Global, Counted, Refused, ListSessionsParams => ListSessionsResult,
        "Lists the sessions that can be loaded, newest first.";
    ShowSession "show_session": Global, Counted, Refused, ShowSessionParams => SessionFile,
        "Returns a session as its file has it.";
    LoadSession "load_session": Global, Counted, Refused, LoadSessionParams => LoadSessionResult,
        "Makes an agent from a session.";
    SaveSession "save_session": Global, Counted, Refused, SaveSessionParams => SaveSessionResult,
        "Saves an agent's session; under its own name the file follows the agent from then on.";
    Discover "rpc.discover": Global, Counted, Allowed, NoParams => OpenRpc,
        "Returns this API as an OpenRPC document.";
    Send "send": Agent, Counted, Decided, SendParams => SendResult,
        "Sends a message and waits for the turn it starts.";
    Cancel "cancel": Agent, Exempt, Own, CancelParams => CancelResult,
        "Cancels one request, or everything running and waiting.";
    GetRequest "get_request": Agent, Exempt, Own, GetRequestParams => GetRequestResult,
        "Tells how far a request is and how it ended.";
    GetTokens "get_tokens": Agent, Counted, Own, NoParams => GetTokensResult,
        "Counts the tokens of the agent's next request to its model.";
    GetContext "get_context": Agent, Counted, Own, NoParams => ContextResult,
        "Tells what the agent's conversation consists of.";
    GetMessages "get_messages": Agent, Counted, Own, GetMessagesParams => GetMessagesResult,
        "Pages through the conversation.";
    GetModel "get_model": Agent, Counted, Own, NoParams => GetModelResult,
        "Tells which model the agent asks.";
    SetModel "set_model": Agent, Counted, Own, SetModelParams => SetModelResult,
        "Gives the agent another model, from its next request on.";
    Compact "compact": Agent, Counted, Own, CompactParams => CompactResult,
        "Has a summary take the place of the older messages when the model is asked.";
    GetSystemPrompt "get_system_prompt": Agent, Counted, Own, NoParams => GetSystemPromptResult,
        "Tells what the agent's model is told first.";
    SetSystemPrompt "set_system_prompt": Agent, Counted, Own, SetSystemPromptParams => SetSystemPromptResult,
        "Gives the agent another system prompt, from its next request on.";
    Confirm "confirm": Agent, Exempt, Refused, ConfirmParams => ConfirmResult,
        "Decides whether a tool call that waits may run; the first answer wins.";
    ListConfirmations "list_confirmations": Agent, Counted, Own, NoParams => ListConfirmationsResult,
        "Lists the tool calls that wait until somebody confirms them.";
    SetCwd "set_cwd": Agent, Counted, Refused, SetCwdParams => SetCwdResult,
        "Has the agent work in another directory, from its next tool call on.";
    GetPermissions "get_permissions": Agent, Counted, Own, NoParams => GetPermissionsResult,
        "Tells what the agent may do.";
    SetPermissions "set_permissions": Agent, Counted, Refused, SetPermissionsParams => SetPermissionsResult,
        "Gives the agent another preset; those below it never have more than it.";
    ExplainPermission "explain_permission": Agent, Counted, Own, ExplainPermissionParams => ExplainPermissionResult,
        "Tells how a tool call would be decided on, and by which rule; nothing runs.";
    Shutdown "shutdown": Agent, Counted, Refused, NoParams => ShutdownResult,
        "Marks the agent as ready for the server's end; the server stops once all are.";
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct NoParams {}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DestroyAgentParams {
    pub agent_id: AgentId,
    /// Default: true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cascade: Option<bool>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ListAgentsResult {
    pub agents: Vec<AgentEntry>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct SummariesParams {
    /// Default: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_tokens: Option<bool>,
    /// Default: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_context: Option<bool>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SummariesResult {
    pub agents: Vec<AgentSummary>,
}

/// An OpenRPC document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OpenRpc(pub serde_json::Map<String, Value>);

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct SendParams {
    pub content: String,
    /// Names this turn for ever: the same id and content again joins it or gets its outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<RequestId>,
    /// Who sends it. Default: the client's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_agent_id: Option<AgentId>,
    /// Default: true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<bool>,
    /// Seconds for waiting and turn together. Default: `turn_timeout` of the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<f64>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct CancelParams {
    /// Default: everything running and waiting.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<RequestId>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GetRequestParams {
    pub request_id: RequestId,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GetRequestResult {
    pub request_id: RequestId,
    pub status: RequestStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<SendResult>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorObject>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GetTokensResult {
    pub system: u64,
    pub tools: u64,
    pub messages: u64,
    pub total: u64,
    /// The context window.
    pub budget: u64,
    /// The budget less what is kept for the answer.
    pub available: u64,
    pub remaining: u64,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct GetMessagesParams {
    /// Default: 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// 1 to 2000. Default: 200.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GetMessagesResult {
    pub agent_id: AgentId,
    pub total: usize,
    pub offset: u64,
    pub limit: u64,
    pub messages: Vec<NumberedMessage>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NumberedMessage {
    pub index: u64,
    #[serde(flatten)]
    pub message: Arc<Message>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct CompactParams {
    /// Also where the conversation is not long enough for it to be due. Default: true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub force: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CompactResult {
    pub compacted: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_before: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_after: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_saved: Option<u64>,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShutdownResult {
    pub success: bool,
}
