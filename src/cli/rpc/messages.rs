//! Conversations: `send`, `cancel`, `messages`, `compact`.

use clap::Args;

use crate::cli::connection::Connection;
use crate::cli::conversation::told;
use crate::cli::{Failed, output, waiting};
use crate::id::{AgentId, RequestId};
use crate::rpc::method::{CancelResult, CompactParams, GetMessagesParams, SendParams};

/// Sends a message to an agent and prints the answer
///
/// The first interrupt (Ctrl-C) cancels the turn, a second one leaves.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    nexus3 rpc send scout 'What is in this directory?'\n  \
    nexus3 rpc send scout 'Take your time' --no-wait --request-id r1")]
pub struct Send {
    /// Its id
    agent: AgentId,
    /// What it is told
    content: String,
    /// Names the turn: sent again, the same id gives the same answer
    #[arg(long, value_name = "ID", value_parser = RequestId::parse)]
    request_id: Option<RequestId>,
    /// Who sends it
    #[arg(long, value_name = "NAME")]
    source: Option<String>,
    /// The agent in whose name it is sent
    #[arg(long, value_name = "ID")]
    source_agent_id: Option<AgentId>,
    /// Prints the request id and leaves
    #[arg(long)]
    no_wait: bool,
    /// Seconds for waiting and turn together
    #[arg(long, value_name = "S")]
    timeout: Option<f64>,
}

impl Send {
    pub async fn run(self, connection: &Connection) -> Result<(), Failed> {
        // In any case it has a name, by which it can be cancelled.
        let request_id = match self.request_id {
            Some(request_id) => request_id,
            None => connection.client.draw_request_id()?,
        };
        let params = SendParams {
            content: self.content,
            request_id: Some(request_id),
            source: self.source,
            source_agent_id: self.source_agent_id,
            wait: self.no_wait.then_some(false),
            timeout: self.timeout,
        };
        let sent = waiting::send(connection, &self.agent, &params).await?;
        waiting::tell(connection, &sent)
    }
}

/// Cancels what an agent is doing: one request, or everything running and waiting
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  nexus3 rpc cancel scout\n  nexus3 rpc cancel scout r1")]
pub struct Cancel {
    /// Its id
    agent: AgentId,
    /// The request [default: all of them]
    #[arg(value_name = "REQUEST_ID", value_parser = RequestId::parse)]
    request_id: Option<RequestId>,
}

impl Cancel {
    pub async fn run(self, connection: &Connection) -> Result<(), Failed> {
        let cancelling = connection.client.cancel(&self.agent, self.request_id);
        let cancelled = connection.answered(cancelling.await).await?;
        let (done, ids) = match &cancelled {
            CancelResult::One { cancelled, request_id, .. } => (*cancelled, vec![request_id]),
            CancelResult::All { cancelled, request_ids } => {
                (*cancelled, request_ids.iter().collect())
            }
        };
        let lines = || ids.iter().map(|id| id.as_str()).collect::<Vec<_>>().join("\n");
        connection.show(&cancelled, || if done { lines() } else { String::new() });
        if done {
            return Ok(());
        }
        output::note("nothing to cancel: it is not known, or has ended");
        Err(Failed::Silently)
    }
}

/// Prints the conversation of an agent
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    nexus3 rpc messages scout\n  \
    nexus3 rpc messages scout --offset 200 --limit 50 --json")]
pub struct Messages {
    /// Its id
    agent: AgentId,
    /// The first message to show, from 0
    #[arg(long, value_name = "N")]
    offset: Option<u64>,
    /// How many to show, at most 2000 [default: 200]
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
}

impl Messages {
    pub async fn run(self, connection: &Connection) -> Result<(), Failed> {
        let params = GetMessagesParams { offset: self.offset, limit: self.limit };
        let page = connection.client.get_messages(&self.agent, &params).await;
        let page = connection.answered(page).await?;
        connection.show(&page, || {
            let told = page.messages.iter().map(|message| told(message.index, &message.message));
            told.collect::<Vec<_>>().join("\n")
        });
        connection.tell_rest(page.offset, page.messages.len(), page.total);
        Ok(())
    }
}

/// Has a summary take the place of an agent's older messages
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  nexus3 rpc compact scout")]
pub struct Compact {
    /// Its id
    agent: AgentId,
    /// Only where the conversation is long enough for it to be due
    #[arg(long)]
    no_force: bool,
}

impl Compact {
    pub async fn run(self, connection: &Connection) -> Result<(), Failed> {
        let params = CompactParams { force: self.no_force.then_some(false) };
        let compacting = connection.client.compact(&self.agent, &params);
        let compacted = waiting::shown("waiting for the summary", compacting).await;
        let compacted = connection.answered(compacted).await?;
        // The name of a reason, as words.
        let why = compacted.reason.as_deref().unwrap_or_default().replace('_', " ");
        connection.show(&compacted, || match (compacted.tokens_before, compacted.tokens_after) {
            (Some(before), Some(after)) => format!("{before} tokens before, {after} after"),
            _ => format!("not compacted: {why}"),
        });
        Ok(())
    }
}
