//! The methods about MCP servers. What connects to them is `tool::mcp`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Call;
use super::code::Code;
use super::method::NoParams;
use super::wire::ErrorObject;
use crate::config::{McpServer, McpServerForm};
use crate::id::AgentId;
use crate::tool::mcp::{McpError, Owner, Status, View};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct McpListServersResult {
    /// Sorted by name.
    pub servers: Vec<McpServerEntry>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct McpServerEntry {
    pub name: String,
    /// `stdio` or `http`.
    pub transport: String,
    pub status: Status,
    /// The tools that agents see.
    pub tools: Vec<String>,
    /// Why it is not connected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The only agent that sees it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct McpConnectParams {
    pub name: String,
    /// What to connect to, as in mcp.json. Default: what mcp.json says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<McpServerForm>,
    /// Only this agent sees it, and it ends with it. Default: all agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct McpConnectResult {
    pub connected: bool,
    pub name: String,
    pub tools: Vec<String>,
    /// Why it is not connected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The last lines of the error output of its program, where it is not connected.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stderr: Vec<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct McpNameParams {
    pub name: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct McpDisconnectResult {
    pub disconnected: bool,
    pub name: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct McpStatusResult {
    #[serde(flatten)]
    pub entry: McpServerEntry,
    /// Tools that agents are not offered, and why.
    pub refused: Vec<String>,
    /// The last 20 lines of the error output of its program.
    pub stderr: Vec<String>,
}

impl Call<'_> {
    pub(super) fn mcp_list_servers(&self, _: NoParams) -> McpListServersResult {
        let servers = self.rpc.pool.mcp().list();
        McpListServersResult { servers: servers.iter().map(|view| self.entry(view)).collect() }
    }

    pub(super) async fn mcp_connect(
        &self,
        params: McpConnectParams,
    ) -> Result<McpConnectResult, ErrorObject> {
        let McpConnectParams { name, config, agent_id } = params;
        let config = config.map(|form| McpServer::of(form, None)).transpose();
        let config = config.map_err(|error| Code::of_mcp(&error.into()))?;
        let owner = match &agent_id {
            None => Owner::Everybody,
            Some(id) => {
                let found = self.rpc.pool.find_on_record(id).await;
                let found = found.map_err(|error| Code::of_restore(&error))?;
                let agent = found.ok_or_else(|| Code::gone(id))?;
                Owner::Agent(agent.workplace().ok_or_else(|| Code::gone(id))?)
            }
        };
        let connected = self.rpc.pool.mcp().connect(&name, config, owner).await;
        let View { name, status, tools, error, stderr, .. } =
            connected.map_err(|error| Code::of_mcp(&error))?;
        if let (Owner::Agent(number), Some(id)) = (owner, &agent_id)
            && self.rpc.pool.at_workplace(number).is_none()
        {
            // It went before it was given this, so that nobody else ends it.
            let _ = self.rpc.pool.mcp().disconnect(&name).await;
            return Err(Code::gone(id));
        }
        let connected = status == Status::Connected;
        // One that was only tried is not there any more to be asked.
        let stderr = if connected { Vec::new() } else { stderr };
        Ok(McpConnectResult { connected, name, tools, error, stderr })
    }

    pub(super) async fn mcp_disconnect(
        &self,
        McpNameParams { name }: McpNameParams,
    ) -> Result<McpDisconnectResult, ErrorObject> {
        let ended = self.rpc.pool.mcp().disconnect(&name).await;
        ended.map_err(|error| Code::of_mcp(&error))?;
        Ok(McpDisconnectResult { disconnected: true, name })
    }

    pub(super) fn mcp_status(
        &self,
        McpNameParams { name }: McpNameParams,
    ) -> Result<McpStatusResult, ErrorObject> {
        let view = self.rpc.pool.mcp().view(&name).map_err(|error| Code::of_mcp(&error))?;
        let entry = self.entry(&view);
        Ok(McpStatusResult { entry, refused: view.refused, stderr: view.stderr })
    }

    fn entry(&self, view: &View) -> McpServerEntry {
        let agent_id = match view.owner {
            Owner::Everybody => None,
            Owner::Agent(number) => self.rpc.pool.at_workplace(number),
        };
        McpServerEntry {
            name: view.name.clone(),
            transport: view.transport.to_owned(),
            status: view.status,
            tools: view.tools.clone(),
            error: view.error.clone(),
            agent_id,
        }
    }
}

/// A configuration without its secrets, for a record that others may read.
pub(super) fn recorded(mut config: Value) -> Value {
    for key in ["env", "headers"] {
        for (_, value) in config.get_mut(key).and_then(Value::as_object_mut).into_iter().flatten() {
            *value = "[redacted]".into();
        }
    }
    config
}

impl Code {
    pub fn of_mcp(error: &McpError) -> ErrorObject {
        let code = match error {
            McpError::Unknown { .. } | McpError::Config(_) => Self::InvalidParams,
            McpError::Exists { .. } | McpError::NotItsOwn { .. } => Self::Conflict,
            McpError::TooMany | McpError::Stopping => Self::Overloaded,
        };
        ErrorObject::new(code, error.to_string())
    }
}
