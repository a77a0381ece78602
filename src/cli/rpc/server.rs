//! The server itself: `detect`, `shutdown`, and `call` for anything.

use anyhow::Context;
use clap::Args;
use serde_json::{Value, json};

use crate::cli::connection::{Connection, Flags};
use crate::cli::{Failed, output};
use crate::client::Detection;
use crate::id::AgentId;
use crate::world::World;

/// Tells what answers on the port; exit code 0 only for a NEXUS3 server
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  nexus3 rpc detect --port 9000 && echo there")]
pub struct Detect {}

impl Detect {
    pub async fn run(self, world: &World, server: &Flags) -> Result<(), Failed> {
        let stranger = server.stranger(world)?;
        let detection = stranger.detect().await;
        if server.as_json() {
            let port = stranger.address().port();
            output::json(&json!({"port": port, "detection": detection}));
        } else {
            output::line(detection.name());
        }
        match detection {
            Detection::NexusServer => Ok(()),
            Detection::NoServer
            | Detection::OtherService
            | Detection::Timeout
            | Detection::Error => Err(Failed::Silently),
        }
    }
}

/// Stops the server, or marks one agent as ready for its end
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    nexus3 rpc shutdown --port 9000\n  \
    nexus3 rpc shutdown scout     the server stops once all its agents are ready")]
pub struct Shutdown {
    /// Only this agent is ready; the server stops once all are
    agent: Option<AgentId>,
}

impl Shutdown {
    pub async fn run(self, connection: &Connection) -> Result<(), Failed> {
        let client = &connection.client;
        if let Some(agent) = self.agent {
            let ready = connection.answered(client.shutdown(&agent).await).await?;
            connection.show(&ready, String::new);
            return Ok(());
        }
        let stopping = connection.answered(client.shutdown_server().await).await?;
        connection.show(&stopping, || stopping.message.clone());
        Ok(())
    }
}

/// Calls any method with JSON params
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  nexus3 rpc call get_messages '{\"limit\": 5}' --agent scout")]
pub struct Call {
    /// The method's name
    method: String,
    /// Its params, as one JSON object
    #[arg(default_value = "{}")]
    params: String,
    /// The agent whose method it is
    #[arg(long, value_name = "ID")]
    agent: Option<AgentId>,
}

impl Call {
    pub async fn run(self, connection: &Connection) -> Result<(), Failed> {
        let params: Value = serde_json::from_str(&self.params).context("the params are no JSON")?;
        let result = connection.client.call_by_name(self.agent.as_ref(), &self.method, params);
        output::json(&connection.answered(result.await).await?);
        Ok(())
    }
}
