//! Which agents there are: `list`, `create`, `destroy`, `status`.

use clap::Args;
use serde_json::json;

use crate::cli::background::Start;
use crate::cli::connection::Connection;
use crate::cli::{Failed, output, waiting};
use crate::client::ClientError;
use crate::id::AgentId;
use crate::rpc::method::{
    AgentEntry, AgentStatus, AgentSummary, CreateAgentParams, DestroyAgentParams, InitialResponse,
    Limits, SummariesParams,
};

/// Lists the agents
///
/// Where no server runs, one is started in the background.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  nexus3 rpc list --json")]
pub struct List {
    #[command(flatten)]
    start: Start,
}

impl List {
    pub async fn run(self, connection: &Connection) -> Result<(), Failed> {
        let list = self.start.call(connection, |client| Box::pin(client.list_agents())).await?;
        connection.show(&list, || table(&list.agents));
        Ok(())
    }
}

/// Creates an agent and prints its id
///
/// Where no server runs, one is started in the background.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    nexus3 rpc create scout --cwd src\n  \
    nexus3 rpc create team --preset trusted --max-agents 5 --max-tokens 200000\n  \
    nexus3 rpc create . --initial-message 'Hello' --wait-for-initial-response")]
pub struct Create {
    /// Its name; `.` for the next temporary one [default: drawn by the server]
    #[arg(value_name = "ID", conflicts_with = "agent_id")]
    position: Option<String>,
    /// The same as ID
    #[arg(long, value_name = "ID")]
    agent_id: Option<String>,
    /// yolo, trusted, sandboxed, worker, or one of the configuration
    #[arg(long)]
    preset: Option<String>,
    /// What its model is told first [default: built in]
    #[arg(long, value_name = "TEXT")]
    system_prompt: Option<String>,
    /// Its working directory [default: the parent's, else the server's]
    #[arg(long, value_name = "DIR")]
    cwd: Option<String>,
    /// Where a sandboxed agent may write; may be given several times
    #[arg(long, value_name = "PATH")]
    allowed_write_paths: Vec<String>,
    /// An alias of the configuration, or provider/model-id
    #[arg(long)]
    model: Option<String>,
    /// Takes a tool away; may be given several times
    #[arg(long, value_name = "TOOL")]
    disable_tools: Vec<String>,
    /// The agent whose child it becomes, below its level [default: none]
    #[arg(long, value_name = "ID")]
    parent_agent_id: Option<AgentId>,
    #[command(flatten)]
    limits: LimitFlags,
    /// Sends it this message at once
    #[arg(long, value_name = "TEXT")]
    initial_message: Option<String>,
    /// Waits for the answer and prints it
    #[arg(long, requires = "initial_message")]
    wait_for_initial_response: bool,
    #[command(flatten)]
    start: Start,
}

// No doc comment: clap would take it for the help of the whole command.
#[derive(Debug, Args)]
struct LimitFlags {
    /// At most so many agents at a time: itself and all below it
    #[arg(long, value_name = "N")]
    max_agents: Option<u64>,
    /// At most so many turns, of itself and all below it
    #[arg(long, value_name = "N")]
    max_turns: Option<u64>,
    /// At most so many tokens, in and out, of itself and all below it
    #[arg(long, value_name = "N")]
    max_tokens: Option<u64>,
    /// The time for itself and all below it, from now on
    #[arg(long, value_name = "S")]
    deadline_s: Option<f64>,
}

impl Create {
    pub async fn run(self, connection: &Connection) -> Result<(), Failed> {
        let (params, start) = self.params();
        let created = start
            .call(connection, |client| {
                // It is sent again where a server had to be started first.
                let (client, params) = (client.clone(), params.clone());
                Box::pin(async move {
                    let creating = client.create_agent(&params);
                    waiting::shown("waiting for its first answer", creating).await
                })
            })
            .await?;
        connection.show(&created, || created.agent_id.to_string());
        match &created.response {
            None => Ok(()),
            // Its JSON has been shown with the rest.
            Some(InitialResponse::Result(result)) if connection.as_json() => waiting::judge(result),
            Some(InitialResponse::Result(result)) => waiting::tell(connection, result),
            Some(InitialResponse::Error(error)) => {
                connection.answered(Err(ClientError::Rpc { error: error.clone() })).await
            }
        }
    }

    fn params(self) -> (CreateAgentParams, Start) {
        let some = |list: Vec<String>| (!list.is_empty()).then_some(list);
        let LimitFlags { max_agents, max_turns, max_tokens, deadline_s } = self.limits;
        let limits = Limits { max_agents, max_turns, max_tokens, deadline_s };
        let params = CreateAgentParams {
            agent_id: self.position.or(self.agent_id),
            preset: self.preset,
            system_prompt: self.system_prompt,
            cwd: self.cwd,
            allowed_write_paths: some(self.allowed_write_paths),
            model: self.model,
            disable_tools: some(self.disable_tools),
            parent_agent_id: self.parent_agent_id,
            initial_message: self.initial_message,
            wait_for_initial_response: self.wait_for_initial_response.then_some(true),
            limits: Some(limits).filter(|limits| !limits.is_none()),
        };
        (params, self.start)
    }
}

/// Destroys an agent and its descendants
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  nexus3 rpc destroy scout")]
pub struct Destroy {
    /// Its id
    agent: AgentId,
    /// Leaves its children alive
    #[arg(long)]
    no_cascade: bool,
}

impl Destroy {
    pub async fn run(self, connection: &Connection) -> Result<(), Failed> {
        let Self { agent, no_cascade } = self;
        let params = DestroyAgentParams { agent_id: agent.clone(), cascade: Some(!no_cascade) };
        let destroyed = connection.answered(connection.client.destroy_agent(&params).await).await?;
        let ids = || destroyed.destroyed.iter().map(AgentId::as_str).collect::<Vec<_>>();
        connection.show(&destroyed, || ids().join("\n"));
        if destroyed.success { Ok(()) } else { Err(connection.no_agent(&agent).await) }
    }
}

/// Shows an agent: what it is doing, its tokens and its conversation
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  nexus3 rpc status scout --json")]
pub struct Status {
    /// Its id
    agent: AgentId,
}

impl Status {
    pub async fn run(self, connection: &Connection) -> Result<(), Failed> {
        let client = &connection.client;
        // One that is only on disk is brought back, as by every request to it.
        connection.answered(client.get_context(&self.agent).await).await?;
        let params = SummariesParams { include_tokens: Some(true), include_context: Some(true) };
        let listed = connection.answered(client.get_agent_summaries(&params).await).await?;
        let mut agents = listed.agents.into_iter();
        match agents.find(|summary| summary.entry.agent_id == self.agent) {
            Some(summary) => {
                connection.show(&summary, || status(&summary));
                Ok(())
            }
            // It went in between.
            None => Err(connection.no_agent(&self.agent).await),
        }
    }
}

fn table(agents: &[AgentEntry]) -> String {
    if agents.is_empty() {
        return "no agents".to_owned();
    }
    let head = ["AGENT", "STATUS", "PRESET", "MODEL", "MESSAGES", "CWD"];
    let rows = agents.iter().map(|agent| {
        [
            agent.agent_id.to_string(),
            status_name(agent.status).to_owned(),
            agent.preset.to_string(),
            agent.model.to_string(),
            agent.message_count.to_string(),
            output::plain(&agent.cwd),
        ]
    });
    output::table(head, rows)
}

fn status_name(status: AgentStatus) -> &'static str {
    match status {
        AgentStatus::Idle => "idle",
        AgentStatus::Running => "running",
        AgentStatus::WaitingConfirmation => "waiting_confirmation",
    }
}

/// What a person wants to know first; `--json` has the rest.
fn status(summary: &AgentSummary) -> String {
    let entry = &summary.entry;
    let mut facts = vec![
        ("agent", entry.agent_id.to_string()),
        ("status", status_name(entry.status).to_owned()),
        ("model", entry.model.to_string()),
        ("preset", format!("{} ({})", entry.preset, json_word(&entry.permission_level))),
        ("cwd", output::plain(&entry.cwd)),
        ("messages", entry.message_count.to_string()),
    ];
    let mut more = |name, value: Option<String>| facts.extend(value.map(|value| (name, value)));
    more("tokens", summary.tokens.as_ref().map(|t| format!("{} of {}", t.total, t.budget)));
    more("parent", entry.parent_agent_id.as_ref().map(ToString::to_string));
    more("children", (entry.child_count > 0).then(|| entry.child_count.to_string()));
    more("request", entry.active_request_id.as_ref().map(ToString::to_string));
    more("waiting", (entry.queued > 0).then(|| entry.queued.to_string()));
    output::facts(&facts)
}

/// A word of the protocol as people read it.
fn json_word(value: &impl serde::Serialize) -> String {
    json!(value).as_str().unwrap_or_default().to_owned()
}
