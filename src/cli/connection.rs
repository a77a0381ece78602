//! Which server a command talks to, with which token, and how it shows what it gets.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, Subcommand};
use secrecy::SecretString;
use serde::Serialize;

use super::output::Hint;
use super::{Failed, config, home, output};
use crate::client::{ClientError, NexusClient, find_token, local_address};
use crate::config::words::meant;
use crate::home::DEFAULT_PORT;
use crate::id::AgentId;
use crate::rpc::code::Code;
use crate::rpc::method::ListSessionsParams;
use crate::world::World;

/// Which server, for commands that print no result of one.
#[derive(Clone, Debug, Args)]
pub struct Place {
    /// The server's port [default: `server.port` of the configuration, or 8765]
    #[arg(long, global = true, value_name = "N", conflicts_with = "url")]
    port: Option<u16>,
    /// The server's address, which is on this machine: `http://localhost:8765`
    #[arg(long, global = true, value_name = "URL", value_parser = local_address)]
    url: Option<SocketAddr>,
    /// The token [default: `$NEXUS3_API_KEY`, or the token file in the server's home]
    #[arg(long, global = true, value_name = "TOKEN")]
    api_key: Option<String>,
    /// The server's home, where its token file is [default: `$NEXUS3_HOME`, or ~/.nexus3]
    #[arg(long, global = true, value_name = "DIR")]
    home: Option<PathBuf>,
}

#[derive(Clone, Debug, Args)]
pub struct Flags {
    #[command(flatten)]
    place: Place,
    /// Prints the server's result as JSON
    #[arg(long, global = true)]
    json: bool,
}

impl From<Place> for Flags {
    fn from(place: Place) -> Self {
        Self { place, json: false }
    }
}

// No doc comment: clap would take it for the help of the command.
#[derive(Debug, Args)]
pub struct Connected<C: Subcommand> {
    #[command(flatten)]
    pub server: Flags,
    #[command(subcommand)]
    pub command: C,
}

/// A server that a command may talk to; whether it is there shows with the first call.
#[derive(Debug)]
pub struct Connection {
    pub world: World,
    pub home: PathBuf,
    pub client: NexusClient,
    flags: Flags,
}

impl Flags {
    /// Of a command that has flags of its own.
    pub fn of(
        port: Option<u16>,
        url: Option<SocketAddr>,
        api_key: Option<String>,
        home: Option<PathBuf>,
    ) -> Self {
        Self::from(Place { port, url, api_key, home })
    }

    /// Whether somebody said which server.
    pub fn names_a_server(&self) -> bool {
        self.place.port.is_some() || self.place.url.is_some()
    }

    /// The same for the server on this port.
    #[must_use]
    pub fn at_port(&self, port: u16) -> Self {
        let place = Place { port: Some(port), url: None, ..self.place.clone() };
        Self { place, ..self.clone() }
    }

    /// Where the server is: given, or where one that is started here would listen.
    pub fn address(&self, world: &World) -> anyhow::Result<SocketAddr> {
        let local = |port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
        if let Some(given) = self.place.url.or(self.place.port.map(local)) {
            return Ok(given);
        }
        let configured = config::load(world, &self.home(world)?, None, Vec::new());
        let server = configured
            .map_err(|error| error.context(Hint("or name the server with --port".to_owned())))?
            .config
            .server;
        // Any port at all is none that could be asked for.
        let port = if server.port == 0 { DEFAULT_PORT } else { server.port };
        Ok(SocketAddr::new(server.host, port))
    }

    pub fn as_json(&self) -> bool {
        self.json
    }

    /// A client without a token.
    pub fn stranger(&self, world: &World) -> anyhow::Result<NexusClient> {
        Ok(NexusClient::on(world, self.address(world)?, None).named("cli"))
    }

    pub fn home(&self, world: &World) -> anyhow::Result<PathBuf> {
        home(world, self.place.home.clone())
    }

    /// The token for the server on a port.
    pub fn token(&self, world: &World, port: u16) -> Result<Option<SecretString>, Failed> {
        let home = self.home(world)?;
        find_token(world, &home, port, self.place.api_key.clone())
            .map_err(|error| Failed::Authentication(error.into()))
    }

    pub fn connect(&self, world: &World) -> Result<Connection, Failed> {
        let (address, home) = (self.address(world)?, self.home(world)?);
        let token = self.token(world, address.port())?;
        let (flags, there) = (self.clone(), world.clone());
        let find = move || flags.token(&there, address.port()).ok().flatten();
        let client = NexusClient::on(world, address, token).named("cli").renewing(find);
        Ok(Connection { world: world.clone(), home, client, flags: self.clone() })
    }
}

impl Connection {
    /// To the server that a client talks to.
    pub fn through(world: &World, home: PathBuf, client: NexusClient) -> Self {
        let flags = Flags::of(None, Some(client.address()), None, Some(home.clone()));
        Self { world: world.clone(), home, client, flags }
    }

    /// The same with another client.
    pub fn with(&self, client: NexusClient) -> Self {
        let (world, home) = (self.world.clone(), self.home.clone());
        Self { world, home, client, flags: self.flags.clone() }
    }

    /// The same with a client of another name.
    pub fn named(&self, name: &str) -> Self {
        self.with(self.client.clone().named(name))
    }

    /// The same server, which was started meanwhile and has another token now.
    pub fn again(&self) -> Result<Self, Failed> {
        self.flags.connect(&self.world)
    }

    pub fn as_json(&self) -> bool {
        self.flags.json
    }

    /// Prints a result: as JSON where that was asked for, else as this text, if there is any.
    pub fn show(&self, result: &impl Serialize, text: impl FnOnce() -> String) {
        if self.as_json() {
            output::json(result);
            return;
        }
        let text = text();
        if !text.is_empty() {
            output::line(text);
        }
    }

    /// Tells a person where a list goes on of which this part was shown.
    pub fn tell_rest(&self, offset: u64, shown: usize, total: usize) {
        let (end, total) = (offset + shown as u64, total as u64);
        if !self.as_json() && shown > 0 && end < total {
            output::note(format_args!("{} more: go on with --offset {end}", total - end));
        }
    }

    /// What a call gave, or what its failure means for the command.
    pub async fn answered<T>(&self, answer: Result<T, ClientError>) -> Result<T, Failed> {
        match answer {
            Ok(result) => Ok(result),
            Err(error) => Err(self.failed(error).await),
        }
    }

    /// There is no such agent.
    pub async fn no_agent(&self, agent: &AgentId) -> Failed {
        self.failed(ClientError::Rpc { error: Code::gone(agent) }).await
    }

    /// An agent that is not there may be called otherwise.
    async fn failed(&self, error: ClientError) -> Failed {
        let Some(unknown) = unknown_agent(&error) else {
            return failed(error);
        };
        let Ok(listed) = self.client.list_agents().await else {
            return failed(error);
        };
        // Those that are only on disk come back when they are asked for by name.
        let stored = self.client.list_sessions(&ListSessionsParams::default()).await;
        let stored = stored.map(|stored| stored.sessions).unwrap_or_default();
        let ids = listed.agents.iter().map(|agent| agent.agent_id.as_str());
        let ids: Vec<&str> =
            ids.chain(stored.iter().map(|session| session.name.as_str())).collect();
        match meant(unknown.as_str(), &ids) {
            Some(id) => Failed::Other(anyhow::anyhow!("{error}; did you mean `{id}`?")),
            None => failed(error),
        }
    }
}

/// The agent that a server says it does not have.
fn unknown_agent(error: &ClientError) -> Option<AgentId> {
    let (ClientError::Rpc { error } | ClientError::Refused { error, .. }) = error else {
        return None;
    };
    AgentId::parse(error.message.strip_prefix("Agent not found: ")?).ok()
}

/// What a failed call means for a command, without asking the server anything more.
pub fn failed(error: ClientError) -> Failed {
    let hint = "start one with `nexus3 serve`, or name its port with --port";
    match &error {
        ClientError::NoServer { .. } => Failed::NoServer(with_hint(error, hint)),
        refused if refused.is_authentication() => {
            let hint = "the server did not accept the token: see --api-key and --home";
            Failed::Authentication(with_hint(error, hint))
        }
        ClientError::Rpc { error: told } | ClientError::Refused { error: told, .. } => {
            let data = |name: &str| told.data.as_ref()?.get(name)?.as_str().map(str::to_owned);
            if let Some(known) = data("suggestion") {
                return Failed::Other(anyhow::anyhow!("{error}; did you mean `{known}`?"));
            }
            match data("hint") {
                Some(hint) => Failed::Other(with_hint(error, &hint)),
                None => Failed::Other(error.into()),
            }
        }
        ClientError::Timeout { .. } => {
            let hint = "it may still do what it was asked to: look before you ask again";
            Failed::Other(with_hint(error, hint))
        }
        ClientError::Protocol { .. } | ClientError::Unnamed => Failed::Other(error.into()),
    }
}

fn with_hint(error: ClientError, hint: &str) -> anyhow::Error {
    anyhow::Error::from(error).context(Hint(hint.to_owned()))
}
