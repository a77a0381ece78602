//! `nexus3 perm explain`: which rule decides about a tool call. Nothing runs.

use anyhow::Context;
use clap::Subcommand;
use serde_json::json;

use super::Failed;
use super::connection::Connected;
use crate::id::AgentId;
use crate::rpc::method::ExplainPermissionParams;
use crate::world::World;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Tells how a tool call would be decided on, and by which rule; nothing runs
    #[command(after_help = "Examples:\n  \
        nexus3 perm explain scout exec\n  \
        nexus3 perm explain scout write_file '{\"path\": \"notes.md\", \"content\": \"\"}'")]
    Explain {
        /// The agent that would call it
        agent: AgentId,
        /// The tool
        tool: String,
        /// The arguments, as one JSON object [default: only the tool itself is decided on]
        arguments: Option<String>,
    },
}

impl Connected<Command> {
    pub async fn run(self, world: &World) -> Result<(), Failed> {
        let Command::Explain { agent, tool, arguments } = self.command;
        let arguments = arguments.map(|json| serde_json::from_str(&json)).transpose();
        let arguments = arguments.context("the arguments are no JSON object")?;
        let connection = self.server.connect(world)?;
        let params = ExplainPermissionParams { tool, arguments };
        let explained = connection.client.explain_permission(&agent, &params).await;
        let explained = connection.answered(explained).await?;
        connection.show(&explained, || {
            let text = |value: serde_json::Value| value.as_str().unwrap_or_default().to_owned();
            let (decision, rule) = (text(json!(explained.decision)), text(json!(explained.rule)));
            format!("{decision} by {rule}: {}", explained.reason)
        });
        Ok(())
    }
}
