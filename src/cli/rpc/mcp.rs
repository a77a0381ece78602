//! The MCP servers of a running server: `mcp list`, `connect`, `disconnect`, `status`.

use std::collections::BTreeMap;

use anyhow::Context;
use clap::{Args, Subcommand};

use crate::cli::connection::Connection;
use crate::cli::{Failed, output};
use crate::config::McpServerForm;
use crate::id::AgentId;
use crate::rpc::method::{McpConnectParams, McpNameParams, McpServerEntry, McpStatusResult};
use crate::tool::mcp::Status;

/// Shows and changes which MCP servers the server is connected to
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    nexus3 rpc mcp list\n  \
    nexus3 rpc mcp connect files --command mcp-files --arg /srv\n  \
    nexus3 rpc mcp connect search --mcp-url http://127.0.0.1:3001/mcp --agent-id scout\n  \
    nexus3 rpc mcp status files\n  \
    nexus3 rpc mcp disconnect files")]
pub struct Mcp {
    #[command(subcommand)]
    act: Act,
}

#[derive(Debug, Subcommand)]
enum Act {
    /// Lists the MCP servers with the tools that agents see
    List,
    /// Connects to one: as mcp.json has it or, with --command or --mcp-url, to another
    Connect(Connect),
    /// Ends a connection and everything it runs
    Disconnect {
        /// What it is called
        name: String,
    },
    /// Tells how one is, with the last lines of its error output
    Status {
        /// What it is called
        name: String,
    },
}

#[derive(Debug, Args)]
struct Connect {
    /// What it is called, or is to be
    name: String,
    /// The program to start
    #[arg(long, value_name = "PROGRAM")]
    command: Option<String>,
    /// An argument of the program; can be given again
    #[arg(long = "arg", value_name = "ARG", allow_hyphen_values = true, requires = "command")]
    args: Vec<String>,
    /// A variable for the program, as NAME=VALUE; can be given again
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair, requires = "command")]
    env: Vec<(String, String)>,
    /// Where the program runs
    #[arg(long, value_name = "DIR", requires = "command")]
    cwd: Option<String>,
    /// Where it is reached by streamable HTTP
    // Every command has a `--url`, which says where our own server is.
    #[arg(long, value_name = "URL", conflicts_with_all = ["command", "args", "env", "cwd"])]
    mcp_url: Option<String>,
    /// A header for it, as NAME=VALUE; can be given again
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair, requires = "mcp_url")]
    header: Vec<(String, String)>,
    /// Only this agent sees it, and it ends with the agent
    #[arg(long, value_name = "ID")]
    agent_id: Option<AgentId>,
}

fn pair(text: &str) -> anyhow::Result<(String, String)> {
    let (name, value) = text.split_once('=').context("write it as NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

impl Mcp {
    pub async fn run(self, connection: &Connection) -> Result<(), Failed> {
        let client = &connection.client;
        match self.act {
            Act::List => {
                let list = connection.answered(client.mcp_list_servers().await).await?;
                connection.show(&list, || table(&list.servers));
            }
            Act::Connect(connect) => return connect.run(connection).await,
            Act::Disconnect { name } => {
                let ended = client.mcp_disconnect(&McpNameParams { name }).await;
                let ended = connection.answered(ended).await?;
                connection.show(&ended, String::new);
            }
            Act::Status { name } => {
                let status = client.mcp_status(&McpNameParams { name }).await;
                let status = connection.answered(status).await?;
                connection.show(&status, || whole(&status));
            }
        }
        Ok(())
    }
}

impl Connect {
    async fn run(self, connection: &Connection) -> Result<(), Failed> {
        let Self { name, command, args, env, cwd, mcp_url: url, header, agent_id } = self;
        let (env, headers): (BTreeMap<_, _>, BTreeMap<_, _>) =
            (env.into_iter().collect(), header.into_iter().collect());
        let is_given = command.is_some() || url.is_some();
        let form = McpServerForm { kind: None, command, args, env, cwd, url, headers };
        let config = is_given.then_some(form);
        let params = McpConnectParams { name, config, agent_id };
        let connected = connection.client.mcp_connect(&params).await;
        let connected = connection.answered(connected).await?;
        connection.show(&connected, || connected.tools.join("\n"));
        if connected.connected {
            return Ok(());
        }
        let why = connected.error.as_deref().unwrap_or("it is not connected");
        output::note(format_args!("{}", output::plain(why)));
        for line in &connected.stderr {
            output::note(format_args!("  {}", output::plain(line)));
        }
        Err(Failed::Silently)
    }
}

/// All that is known of one, each part under its own line.
fn whole(status: &McpStatusResult) -> String {
    let mut lines = vec![table(std::slice::from_ref(&status.entry))];
    let parts = [
        ("tools", &status.entry.tools),
        ("left out", &status.refused),
        ("error output", &status.stderr),
    ];
    for (title, told) in parts.into_iter().filter(|(_, told)| !told.is_empty()) {
        lines.push(format!("{title}:"));
        lines.extend(told.iter().map(|line| format!("  {}", output::plain(line))));
    }
    lines.join("\n")
}

fn table(servers: &[McpServerEntry]) -> String {
    if servers.is_empty() {
        return "there are no MCP servers".to_owned();
    }
    let head = ["SERVER", "TRANSPORT", "STATUS", "TOOLS", "AGENT", "ERROR"];
    let rows = servers.iter().map(|server| {
        [
            output::plain(&server.name),
            server.transport.clone(),
            status(server.status).to_owned(),
            server.tools.len().to_string(),
            server.agent_id.as_ref().map(ToString::to_string).unwrap_or_default(),
            output::plain(server.error.as_deref().unwrap_or_default()),
        ]
    });
    output::table(head, rows)
}

fn status(status: Status) -> &'static str {
    match status {
        Status::Connecting => "connecting",
        Status::Connected => "connected",
        Status::Failed => "failed",
        Status::Disconnected => "disconnected",
    }
}
