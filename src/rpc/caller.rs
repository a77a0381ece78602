//! Who calls: a client with the token, or, by `X-Nexus-Agent`, an agent with that agent's rights.
//! The header can only take rights away.

use super::code::Code;
use super::method::{AsAgent, Method};
use super::wire::ErrorObject;
use crate::id::AgentId;
use crate::limits::CLIENT_NAME_CHARS_MAX;
use crate::policy::{Reason, Refusal};
use crate::pool::Pool;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The agent in whose name the call is made; `None` for a client with all rights.
    pub agent: Option<AgentId>,
    pub client: ClientName,
}

/// What a caller calls itself, for messages and logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientName(String);

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("X-Nexus-Client must be 1 to {CLIENT_NAME_CHARS_MAX} printable ASCII characters")]
pub struct ClientNameError;

impl ClientName {
    pub fn parse(bytes: &[u8]) -> Result<Self, ClientNameError> {
        let printable = bytes.iter().all(|byte| matches!(byte, b' '..=b'~'));
        if bytes.is_empty() || bytes.len() > CLIENT_NAME_CHARS_MAX || !printable {
            return Err(ClientNameError);
        }
        Ok(Self(bytes.iter().map(|byte| char::from(*byte)).collect()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for ClientName {
    fn default() -> Self {
        Self("rpc".to_owned())
    }
}

/// What our own terminal calls itself.
const TERMINAL: &str = "terminal";

impl Caller {
    /// Whether a person sits there.
    pub fn is_terminal(&self) -> bool {
        self.agent.is_none() && self.client.as_str() == TERMINAL
    }

    /// Checks what can be known before the params: whether this method, on `target`, is for the caller.
    pub fn may_call(
        &self,
        pool: &Pool,
        method: Method,
        target: Option<&AgentId>,
    ) -> Result<(), ErrorObject> {
        let Some(agent) = &self.agent else {
            return Ok(());
        };
        match (method.as_agent(), target) {
            (AsAgent::Allowed | AsAgent::Decided, _) | (AsAgent::Own, None) => {}
            (AsAgent::Own, Some(target)) => self.owns(pool, agent, target)?,
            (AsAgent::Refused, _) => {
                let message = format!("agents may not call {}", method.name());
                return Err(refused(Reason::Policy, message));
            }
        }
        match method {
            // Whom it is to end stands in its params.
            Method::DestroyAgent => Ok(()),
            method => self.has_tool_for(pool, method, target),
        }
    }

    /// Checks that an agent was not deprived of the tool that does to others what the method does.
    pub fn has_tool_for(
        &self,
        pool: &Pool,
        method: Method,
        target: Option<&AgentId>,
    ) -> Result<(), ErrorObject> {
        let (Some(agent), Some(tool)) = (&self.agent, tool_of(method)) else {
            return Ok(());
        };
        if target == Some(agent) {
            return Ok(());
        }
        pool.has_tool(agent, tool).map_err(|refusal| Code::of_refusal(&refusal))
    }

    /// Checks whether the events of `target`, or of everything, are for the caller.
    pub fn may_stream(&self, pool: &Pool, target: Option<&AgentId>) -> Result<(), ErrorObject> {
        match (&self.agent, target) {
            (None, _) => Ok(()),
            (Some(agent), Some(target)) => self.owns(pool, agent, target),
            (Some(_), None) => {
                let message = "agents may not stream the events of everybody".to_owned();
                Err(refused(Reason::Policy, message))
            }
        }
    }

    /// Checks that `target` is `agent` itself or a descendant.
    pub fn owns(&self, pool: &Pool, agent: &AgentId, target: &AgentId) -> Result<(), ErrorObject> {
        pool.owns(agent, target).map_err(|refusal| Code::of_refusal(&refusal))
    }
}

/// The tool by which an agent does to others what the method does.
fn tool_of(method: Method) -> Option<&'static str> {
    match method {
        Method::CreateAgent => Some("nexus_create"),
        Method::DestroyAgent => Some("nexus_destroy"),
        Method::Send => Some("nexus_send"),
        Method::Cancel => Some("nexus_cancel"),
        Method::ListAgents
        | Method::GetAgentSummaries
        | Method::ShutdownServer
        | Method::CloneSession
        | Method::RenameSession
        | Method::DeleteSession
        | Method::PruneSessions
        | Method::McpListServers
        | Method::McpConnect
        | Method::McpDisconnect
        | Method::McpStatus
        | Method::ListSessions
        | Method::ShowSession
        | Method::LoadSession
        | Method::SaveSession
        | Method::Discover
        | Method::GetRequest
        | Method::GetTokens
        | Method::GetContext
        | Method::GetMessages
        | Method::GetModel
        | Method::SetModel
        | Method::Compact
        | Method::GetSystemPrompt
        | Method::SetSystemPrompt
        | Method::Confirm
        | Method::ListConfirmations
        | Method::SetCwd
        | Method::GetPermissions
        | Method::SetPermissions
        | Method::ExplainPermission
        | Method::Shutdown => None,
    }
}

pub fn refused(reason: Reason, message: String) -> ErrorObject {
    Code::of_refusal(&Refusal { reason, message })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_names_are_short_and_printable() {
        assert_eq!(ClientName::parse(b"my tool/1").map(|name| name.0), Ok("my tool/1".to_owned()));
        for bad in [&b""[..], b"a\tb", b"\xc3\xa9", &[b'x'; CLIENT_NAME_CHARS_MAX + 1]] {
            assert_eq!(ClientName::parse(bad), Err(ClientNameError));
        }
    }
}
