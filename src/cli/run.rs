//! `nexus3 run`: one message to an agent of its own, which goes with the command.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use tokio::time::timeout;

use super::connection::{Connection, Flags};
use super::{Failed, inside, output, waiting};
use crate::client::NexusClient;
use crate::id::AgentId;
use crate::rpc::method::{CreateAgentParams, DestroyAgentParams, SendParams};
use crate::world::World;

/// How long the agent may take to go.
const DESTROY_MAX: Duration = Duration::from_secs(5);

/// Asks an agent of its own, and prints the answer
///
/// It runs on the server that is there, or on one inside this command, and is destroyed at the end.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    nexus3 run 'What does this project do?'\n  \
    nexus3 run 'Fix the typo in README.md' --preset trusted\n  \
    nexus3 run 'Count the files' --cwd src --json")]
pub struct Arguments {
    #[command(flatten)]
    server: Flags,
    /// What it is told
    prompt: String,
    /// yolo, trusted, sandboxed, worker, or one of the configuration
    #[arg(long)]
    preset: Option<String>,
    /// An alias of the configuration, or provider/model-id
    #[arg(long)]
    model: Option<String>,
    /// Where it works [default: here]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
}

impl Arguments {
    pub async fn run(self, world: &World) -> Result<(), Failed> {
        let ask = async |connection: &Connection| Box::pin(self.ask(connection)).await;
        inside::anywhere(world, &self.server, ask).await
    }

    async fn ask(&self, connection: &Connection) -> Result<(), Failed> {
        let client = &connection.client;
        let here = connection.world.environment.current_dir()?;
        let cwd = self.cwd.as_ref().map_or(here.clone(), |cwd| here.join(cwd));
        let cwd = cwd.to_str().ok_or_else(|| anyhow::anyhow!("{} is not text", cwd.display()))?;
        let params = CreateAgentParams {
            agent_id: Some(".".to_owned()),
            preset: self.preset.clone(),
            model: self.model.clone(),
            cwd: Some(cwd.to_owned()),
            ..CreateAgentParams::default()
        };
        let created = connection.answered(client.create_agent(&params).await).await?;
        let agent = created.agent_id;
        let params = SendParams {
            content: self.prompt.clone(),
            request_id: Some(client.draw_request_id()?),
            ..SendParams::default()
        };
        let sent = tokio::select! {
            biased;
            sent = waiting::send(connection, &agent, &params) => sent,
            // The first interrupt is for the turn; this is the second.
            () = connection.world.signals.stop() => Err(Failed::Interrupted),
        };
        destroy(client, agent).await;
        waiting::tell(connection, &sent?)
    }
}

/// Whatever became of its turn, the agent goes. What keeps it from going is not what was asked for.
async fn destroy(client: &NexusClient, agent_id: AgentId) {
    let params = DestroyAgentParams { agent_id, cascade: Some(true) };
    let destroyed = timeout(DESTROY_MAX, client.destroy_agent(&params)).await;
    if !matches!(destroyed, Ok(Ok(_))) {
        output::note(format_args!("warning: {} may still be there", params.agent_id));
    }
}
