//! Calls that wait until somebody decides: `confirmations`, `confirm`.

use clap::Args;

use crate::cli::connection::Connection;
use crate::cli::{Failed, output};
use crate::id::{AgentId, ConfirmId};
use crate::rpc::method::{ConfirmParams, ConfirmationEntry};

/// Lists the tool calls of an agent that wait until somebody confirms them
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  nexus3 rpc confirmations scout")]
pub struct Confirmations {
    /// Its id
    agent: AgentId,
}

impl Confirmations {
    pub async fn run(self, connection: &Connection) -> Result<(), Failed> {
        let list = connection.client.list_confirmations(&self.agent).await;
        let list = connection.answered(list).await?;
        connection.show(&list, || table(&list.confirmations));
        Ok(())
    }
}

/// Decides whether a tool call that waits may run
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  nexus3 rpc confirm scout 0123456789abcdef allow_once")]
pub struct Confirm {
    /// Its id
    agent: AgentId,
    /// What `confirmations` names it
    #[arg(value_name = "CONFIRM_ID")]
    question: ConfirmId,
    /// One of its options: `allow_once`, `allow_file`, `allow_dir`, `allow_exec_cwd`, `allow_tool`,
    /// `allow_server`, deny
    decision: String,
}

impl Confirm {
    pub async fn run(self, connection: &Connection) -> Result<(), Failed> {
        let Self { agent, question, decision } = self;
        let params = ConfirmParams { confirm_id: question, decision };
        let decided = connection.answered(connection.client.confirm(&agent, &params).await).await?;
        connection.show(&decided, || decided.decision.name().to_owned());
        if decided.accepted {
            return Ok(());
        }
        output::note(format_args!("it was decided before, by {}", decided.resolved_by));
        Err(Failed::Silently)
    }
}

fn table(waiting: &[ConfirmationEntry]) -> String {
    if waiting.is_empty() {
        return "nothing waits for a confirmation".to_owned();
    }
    let head = ["CONFIRMATION", "TOOL", "TARGET", "OPTIONS", "UNTIL"];
    let rows = waiting.iter().map(|entry| {
        let options: Vec<_> = entry.options.iter().map(|option| option.name()).collect();
        [
            entry.confirm_id.to_string(),
            output::plain(&entry.tool.name),
            output::plain(entry.target.as_deref().unwrap_or_default()),
            options.join(","),
            entry.expires_at.to_string(),
        ]
    });
    output::table(head, rows)
}
