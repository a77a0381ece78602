//! Who hears what is said with MCP servers, as it is said: for those who write it down. Nothing is
//! changed or held up by it.

use std::sync::Arc;

use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use serde_json::Value;

use super::Origin;
use super::connection::Lost;
use crate::config::McpServer;
use crate::world::{Exit, Programs};

/// With this the library tells a call that its connection is over, in the way of an answer.
const CLOSED: &str = "io.modelcontextprotocol/transportClosed";

pub trait Ear: Send + Sync {
    /// What programs of MCP servers are started with: they are no programs of agents.
    fn programs(&self) -> Arc<dyn Programs>;

    /// An attempt at a connection begins. A server has one at a time.
    fn begins(&self, server: &str, config: &McpServer, origin: Origin);

    /// A message is on its way to the server.
    fn asks(&self, server: &str, message: Value);

    /// One has come from it.
    fn hears(&self, server: &str, message: Value);

    /// The message of this id did not reach it.
    fn failed(&self, server: &str, id: Value, end: End);

    /// The connection is no more, or never was.
    fn ended(&self, server: &str, end: End);
}

/// How a connection ended, or what became of a message that could not be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// We ended it.
    Ours,
    Exit(Exit),
    /// It hung up.
    Closed,
    /// Nobody was there, or the way to it was cut.
    Unreachable,
    TooLong,
    Flood,
    Status(u16),
    /// It does not know the session any more, so that it has not looked at what it was asked.
    SessionOver,
    /// It was never begun.
    Unbegun,
}

impl End {
    pub(super) fn of(lost: &Lost) -> Self {
        match lost {
            Lost::Ended(exit) => Self::Exit(*exit),
            Lost::TooLong => Self::TooLong,
            Lost::Flood => Self::Flood,
            Lost::Status { status } => Self::Status(*status),
            Lost::Closed | Lost::Deaf => Self::Closed,
            Lost::Unreachable(_) => Self::Unreachable,
            Lost::SessionOver => Self::SessionOver,
            Lost::NotStarted { .. } | Lost::Late | Lost::Unspoken { .. } | Lost::Moved(_) => {
                Self::Unbegun
            }
        }
    }
}

pub(super) fn sent(message: &TxJsonRpcMessage<RoleClient>) -> Value {
    serde_json::to_value(message).expect("messages have only string keys")
}

/// Tells what was received from a server, or that nothing more will be.
pub(super) fn tell(ear: &dyn Ear, server: &str, message: &RxJsonRpcMessage<RoleClient>) {
    let mut message = serde_json::to_value(message).expect("messages have only string keys");
    if message["error"]["data"][CLOSED].is_u64() {
        return ear.failed(server, message["id"].take(), End::Closed);
    }
    ear.hears(server, message);
}
