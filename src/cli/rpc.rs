//! `nexus3 rpc …`: talks to a running server.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::{Value, json};

use super::output::Hint;
use super::{Failed, home, output};
use crate::client::{ClientError, Detection, NexusClient, find_token};
use crate::home::DEFAULT_PORT;
use crate::id::{AgentId, ConfirmId, RequestId};
use crate::limits::AUTO_REQUEST_ID_HEX;
use crate::rpc::method::{
    AgentEntry, AgentStatus, ConfirmParams, ConfirmationEntry, CreateAgentParams,
    DestroyAgentParams, InitialResponse, Limits, SendParams, SendResult,
};
use crate::world::{Use, World};

/// Talks to a running server.
#[derive(Debug, Args)]
#[command(after_help = "Exit codes: 0 done, 1 failed, 2 usage, 3 no server, 4 authentication.")]
pub struct Arguments {
    #[command(flatten)]
    server: ServerArguments,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Args)]
struct ServerArguments {
    /// The server's port
    #[arg(long, global = true, value_name = "N", default_value_t = DEFAULT_PORT)]
    port: u16,
    /// The token [default: `$NEXUS3_API_KEY`, or the token file in the server's home]
    #[arg(long, global = true, value_name = "TOKEN")]
    api_key: Option<String>,
    /// The server's home, where its token file is [default: `$NEXUS3_HOME`, or ~/.nexus3]
    #[arg(long, global = true, value_name = "DIR")]
    home: Option<PathBuf>,
    /// Prints the server's result as JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Tells what answers on the port; exit code 0 only for a NEXUS3 server
    #[command(after_help = "Example:\n  nexus3 rpc detect --port 9000 && echo there")]
    Detect,
    /// Lists the agents
    #[command(after_help = "Example:\n  nexus3 rpc list --json")]
    List,
    /// Creates an agent and prints its id
    #[command(after_help = "Examples:\n  \
        nexus3 rpc create scout --cwd src\n  \
        nexus3 rpc create team --preset trusted --max-agents 5 --max-tokens 200000\n  \
        nexus3 rpc create . --initial-message 'Hello' --wait-for-initial-response")]
    Create(CreateArguments),
    /// Sends a message to an agent and prints the answer
    #[command(after_help = "Examples:\n  \
        nexus3 rpc send scout 'What is in this directory?'\n  \
        nexus3 rpc send scout 'Take your time' --no-wait --request-id r1")]
    Send(SendArguments),
    /// Destroys an agent and its descendants
    #[command(after_help = "Example:\n  nexus3 rpc destroy scout")]
    Destroy {
        /// Its id
        agent: AgentId,
        /// Leaves its children alive
        #[arg(long)]
        no_cascade: bool,
    },
    /// Lists the tool calls of an agent that wait until somebody confirms them
    #[command(after_help = "Example:\n  nexus3 rpc confirmations scout")]
    Confirmations {
        /// Its id
        agent: AgentId,
    },
    /// Decides whether a tool call that waits may run
    #[command(after_help = "Example:\n  nexus3 rpc confirm scout 0123456789abcdef allow_once")]
    Confirm {
        /// Its id
        agent: AgentId,
        /// What `confirmations` names it
        confirm_id: ConfirmId,
        /// One of its options: `allow_once`, `allow_file`, `allow_dir`, `allow_exec_cwd`, deny
        decision: String,
    },
    /// Stops the server
    #[command(after_help = "Example:\n  nexus3 rpc shutdown --port 9000")]
    Shutdown,
    /// Calls any method with JSON params
    #[command(
        after_help = "Example:\n  nexus3 rpc call get_messages '{\"limit\": 5}' --agent scout"
    )]
    Call {
        /// The method's name
        method: String,
        /// Its params, as one JSON object
        #[arg(default_value = "{}")]
        params: String,
        /// The agent whose method it is
        #[arg(long, value_name = "ID")]
        agent: Option<AgentId>,
    },
}

#[derive(Debug, Args)]
struct CreateArguments {
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
    /// Sends it this message at once
    #[arg(long, value_name = "TEXT")]
    initial_message: Option<String>,
    /// Waits for the answer and prints it
    #[arg(long, requires = "initial_message")]
    wait_for_initial_response: bool,
}

#[derive(Debug, Args)]
struct SendArguments {
    /// Its id
    agent: AgentId,
    /// What it is told
    content: String,
    /// Names the turn: sent again, the same id gives the same answer
    #[arg(long, value_name = "ID")]
    request_id: Option<String>,
    /// Who sends it
    #[arg(long, value_name = "NAME")]
    source: Option<String>,
    /// Prints the request id and leaves
    #[arg(long)]
    no_wait: bool,
    /// Seconds for waiting and turn together
    #[arg(long, value_name = "S")]
    timeout: Option<f64>,
}

pub async fn run(world: &World, arguments: Arguments) -> Result<(), Failed> {
    let Arguments { server, command } = arguments;
    let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), server.port);
    let client = NexusClient::new(Arc::clone(&world.net), address, None).named("cli");
    if let Command::Detect = command {
        return detect(&client, server.port, server.json).await;
    }
    let home = home(world, server.home)?;
    let token = match find_token(world, &home, server.port, server.api_key) {
        Ok(token) => token,
        Err(error) => return Err(Failed::Authentication(error.into())),
    };
    let client = NexusClient::on(world, address, token).named("cli");
    command.run(world, &client, server.json).await
}

async fn detect(client: &NexusClient, port: u16, as_json: bool) -> Result<(), Failed> {
    let detection = client.detect().await;
    if as_json {
        output::json(&json!({"port": port, "detection": detection}));
    } else {
        output::line(detection.name());
    }
    match detection {
        Detection::NexusServer => Ok(()),
        Detection::NoServer | Detection::OtherService | Detection::Timeout | Detection::Error => {
            Err(Failed::Silently)
        }
    }
}

impl Command {
    async fn run(self, world: &World, client: &NexusClient, as_json: bool) -> Result<(), Failed> {
        match self {
            Self::Detect => unreachable!("it needs no token and was answered before"),
            Self::List => {
                let list = client.list_agents().await.map_err(failed)?;
                show(as_json, &list, || table(&list.agents));
            }
            Self::Create(arguments) => {
                let created = client.create_agent(&arguments.params()).await.map_err(failed)?;
                show(as_json, &created, || created.agent_id.to_string());
                match &created.response {
                    None => {}
                    Some(InitialResponse::Result(result)) => tell(as_json, result)?,
                    Some(InitialResponse::Error(error)) => {
                        return Err(failed(ClientError::Rpc { error: error.clone() }));
                    }
                }
            }
            Self::Send(arguments) => {
                let (agent, params) = arguments.params(world)?;
                let sent = send(world, client, &agent, &params).await?;
                if as_json {
                    output::json(&sent);
                }
                tell(as_json, &sent)?;
            }
            Self::Destroy { agent, no_cascade } => {
                let params =
                    DestroyAgentParams { agent_id: agent.clone(), cascade: Some(!no_cascade) };
                let destroyed = client.destroy_agent(&params).await.map_err(failed)?;
                show(as_json, &destroyed, || lines(&destroyed.destroyed));
                if !destroyed.success {
                    output::note(format_args!("there is no agent {agent}"));
                    return Err(Failed::Silently);
                }
            }
            Self::Confirmations { agent } => {
                let list = client.list_confirmations(&agent).await.map_err(failed)?;
                show(as_json, &list, || confirmations(&list.confirmations));
            }
            Self::Confirm { agent, confirm_id, decision } => {
                let params = ConfirmParams { confirm_id, decision };
                let decided = client.confirm(&agent, &params).await.map_err(failed)?;
                show(as_json, &decided, || decided.decision.name().to_owned());
                if !decided.accepted {
                    let by = &decided.resolved_by;
                    output::note(format_args!("it was decided before, by {by}"));
                    return Err(Failed::Silently);
                }
            }
            Self::Shutdown => {
                let stopping = client.shutdown_server().await.map_err(failed)?;
                show(as_json, &stopping, || stopping.message.clone());
            }
            Self::Call { method, params, agent } => {
                let params: Value =
                    serde_json::from_str(&params).context("the params are no JSON")?;
                let result = client.call_by_name(agent.as_ref(), &method, params).await;
                output::json(&result.map_err(failed)?);
            }
        }
        Ok(())
    }
}

impl CreateArguments {
    fn params(self) -> CreateAgentParams {
        let some = |list: Vec<String>| (!list.is_empty()).then_some(list);
        let limits = Limits {
            max_agents: self.max_agents,
            max_turns: self.max_turns,
            max_tokens: self.max_tokens,
            deadline_s: self.deadline_s,
        };
        CreateAgentParams {
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
        }
    }
}

impl SendArguments {
    /// With a request id in any case, so that the turn can be cancelled by it.
    fn params(self, world: &World) -> anyhow::Result<(AgentId, SendParams)> {
        let drawn = || world.chance.hex(Use::RequestId, AUTO_REQUEST_ID_HEX);
        let request_id = RequestId::parse(&self.request_id.unwrap_or_else(drawn))?;
        let params = SendParams {
            content: self.content,
            request_id: Some(request_id),
            source: self.source,
            source_agent_id: None,
            wait: self.no_wait.then_some(false),
            timeout: self.timeout,
        };
        Ok((self.agent, params))
    }
}

/// Sends and waits. The first signal cancels the turn; the caller of this leaves at the second.
async fn send(
    world: &World,
    client: &NexusClient,
    agent: &AgentId,
    params: &SendParams,
) -> Result<SendResult, Failed> {
    let sending = client.send(agent, params);
    let mut sending = std::pin::pin!(sending);
    tokio::select! {
        biased;
        sent = &mut sending => return sent.map_err(failed),
        () = world.signals.stop() => {}
    }
    output::note("cancelling the turn; interrupt again to leave at once");
    client.cancel(agent, params.request_id.clone()).await.map_err(failed)?;
    match sending.await.map_err(failed)? {
        SendResult::Cancelled { .. } => Err(Failed::Interrupted),
        // It was faster than the cancellation.
        sent @ (SendResult::Completed { .. } | SendResult::Accepted { .. }) => Ok(sent),
    }
}

fn show(as_json: bool, result: &impl Serialize, text: impl FnOnce() -> String) {
    if as_json {
        output::json(result);
        return;
    }
    let text = text();
    if !text.is_empty() {
        output::line(text);
    }
}

/// Prints what came of a send, unless its JSON says so already. A turn that was cancelled has failed.
fn tell(as_json: bool, sent: &SendResult) -> Result<(), Failed> {
    let text = match sent {
        SendResult::Completed { content, .. } => content.clone(),
        SendResult::Accepted { request_id, .. } => request_id.to_string(),
        SendResult::Cancelled { request_id, .. } => {
            output::note(format_args!("the turn was cancelled: {request_id}"));
            return Err(Failed::Silently);
        }
    };
    if !as_json {
        output::line(text);
    }
    Ok(())
}

fn lines(ids: &[AgentId]) -> String {
    ids.iter().map(AgentId::as_str).collect::<Vec<_>>().join("\n")
}

fn table(agents: &[AgentEntry]) -> String {
    if agents.is_empty() {
        return "no agents".to_owned();
    }
    let head = ["AGENT", "STATUS", "PRESET", "MODEL", "MESSAGES", "CWD"].map(str::to_owned);
    let rows = agents.iter().map(|agent| {
        let status = match agent.status {
            AgentStatus::Idle => "idle",
            AgentStatus::Running => "running",
            AgentStatus::WaitingConfirmation => "waiting_confirmation",
        };
        [
            agent.agent_id.to_string(),
            status.to_owned(),
            agent.preset.to_string(),
            agent.model.to_string(),
            agent.message_count.to_string(),
            agent.cwd.to_string(),
        ]
    });
    columns(&std::iter::once(head).chain(rows).collect::<Vec<_>>())
}

fn confirmations(waiting: &[ConfirmationEntry]) -> String {
    if waiting.is_empty() {
        return "nothing waits for a confirmation".to_owned();
    }
    let head = ["CONFIRMATION", "TOOL", "TARGET", "OPTIONS", "UNTIL"].map(str::to_owned);
    let rows = waiting.iter().map(|entry| {
        let options: Vec<_> = entry.options.iter().map(|option| option.name()).collect();
        [
            entry.confirm_id.to_string(),
            entry.tool.name.clone(),
            entry.target.clone().unwrap_or_default(),
            options.join(","),
            entry.expires_at.to_string(),
        ]
    });
    columns(&std::iter::once(head).chain(rows).collect::<Vec<_>>())
}

fn columns<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..N).filter_map(width).collect();
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn failed(error: ClientError) -> Failed {
    let hint = "start one with `nexus3 serve`, or name its port with --port";
    match &error {
        ClientError::NoServer { .. } => Failed::NoServer(with_hint(error, hint)),
        refused if refused.is_authentication() => {
            let hint = "the server did not accept the token: see --api-key and --home";
            Failed::Authentication(with_hint(error, hint))
        }
        ClientError::Timeout { .. }
        | ClientError::Protocol { .. }
        | ClientError::Refused { .. }
        | ClientError::Rpc { .. }
        | ClientError::Unnamed => Failed::Other(error.into()),
    }
}

fn with_hint(error: ClientError, hint: &str) -> anyhow::Error {
    anyhow::Error::from(error).context(Hint(hint.to_owned()))
}
