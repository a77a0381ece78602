//! The methods about MCP servers.

use super::{ClientError, NexusClient};
use crate::rpc::method::{
    McpConnectParams, McpConnectResult, McpDisconnectResult, McpListServersResult, McpNameParams,
    McpStatusResult, NoParams, call,
};

impl NexusClient {
    pub async fn mcp_list_servers(&self) -> Result<McpListServersResult, ClientError> {
        self.call::<call::McpListServers>(None, &NoParams {}).await
    }

    pub async fn mcp_connect(
        &self,
        params: &McpConnectParams,
    ) -> Result<McpConnectResult, ClientError> {
        self.call::<call::McpConnect>(None, params).await
    }

    pub async fn mcp_disconnect(
        &self,
        params: &McpNameParams,
    ) -> Result<McpDisconnectResult, ClientError> {
        self.call::<call::McpDisconnect>(None, params).await
    }

    pub async fn mcp_status(&self, params: &McpNameParams) -> Result<McpStatusResult, ClientError> {
        self.call::<call::McpStatus>(None, params).await
    }
}
