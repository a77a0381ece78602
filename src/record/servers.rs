//! What is said with MCP servers, as notes. The variables and headers of a server are secrets, which the
//! notes tell so that they can be hidden wherever they stand.

use std::sync::Arc;

use secrecy::SecretString;
use serde_json::Value;

use super::Recorder;
use super::note::{Conversation, What};
use crate::config::McpServer;
use crate::tool::mcp::{Ear, End, Origin};
use crate::world::Programs;

impl Ear for Recorder {
    fn programs(&self) -> Arc<dyn Programs> {
        Arc::clone(&self.shared.world.programs)
    }

    fn begins(&self, server: &str, config: &McpServer, origin: Origin) {
        let secrets = config.secrets().into_iter().map(SecretString::from).collect();
        self.said(server, Conversation::Begins { transport: config.transport(), origin, secrets });
    }

    fn asks(&self, server: &str, message: Value) {
        self.said(server, Conversation::Asks(message));
    }

    fn hears(&self, server: &str, message: Value) {
        self.said(server, Conversation::Hears(message));
    }

    fn failed(&self, server: &str, id: Value, end: End) {
        self.said(server, Conversation::Failed { id, end });
    }

    fn ended(&self, server: &str, end: End) {
        self.said(server, Conversation::Ended(end));
    }
}

impl Recorder {
    /// Who hears MCP servers.
    pub fn mcp_ear(&self) -> Arc<dyn Ear> {
        Arc::new(self.clone())
    }

    fn said(&self, server: &str, what: Conversation) {
        self.note(What::Mcp(server.to_owned(), what));
    }
}
