//! `nexus3` and `nexus3 connect`: the terminal on a server that runs, or on one of its own.

mod office;
mod slash;

use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, ValueEnum};
use tokio::time::timeout;

use self::office::Desk;
pub use self::office::office;
use super::connection::{Connection, Flags};
use super::inside::Open;
use super::output::Hint;
use super::{Failed, connection, output, rpc};
use crate::client::{Detection, local_address};
use crate::id::AgentId;
use crate::terminal::CLIENT;
use crate::terminal::choose::choose;
use crate::terminal::core::{Core, Feed};
use crate::terminal::drive::{Face, Terminal};
use crate::terminal::line::{Line, Tone};
use crate::terminal::lobby::{self, Fresh, LobbyError, Wish};
use crate::terminal::screen::Foot;
use crate::terminal::shell::{self, Colours, Screen};
use crate::world::World;

/// What somebody has to know who never was here.
const WELCOME: &str = "NEXUS3 · /help · Ctrl-D leaves";

/// How long a server of our own may take to stop before whoever waits is told why.
const CLOSING_UNTOLD_MAX: Duration = Duration::from_millis(500);

// No doc comment: clap would take it for the help of the program.
#[derive(Debug, Args)]
pub struct Talk {
    /// Goes on with the last session
    #[arg(long, group = "wish")]
    resume: bool,
    /// Begins with a fresh agent
    #[arg(long, group = "wish")]
    fresh: bool,
    /// Goes on with a saved session
    #[arg(long, value_name = "NAME", group = "wish")]
    session: Option<String>,
    /// Begins with a fresh agent whose model is told this first, instead of the usual
    #[arg(long, value_name = "FILE", conflicts_with_all = ["resume", "session", "agent"])]
    template: Option<PathBuf>,
    /// Talks to this agent
    #[arg(long, value_name = "ID", group = "wish")]
    agent: Option<AgentId>,
    /// The server's port [default: `server.port` of the configuration, or 8765]
    #[arg(long, value_name = "N")]
    port: Option<u16>,
    /// The server's home [default: `$NEXUS3_HOME`, or ~/.nexus3]
    #[arg(long, value_name = "DIR")]
    home: Option<PathBuf>,
    #[command(flatten)]
    shown: Shown,
}

/// Opens a terminal on a running server
///
/// `nexus3 --connect [URL]` means the same.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    nexus3 connect\n  \
    nexus3 connect http://localhost:9000 --agent scout\n  \
    nexus3 connect --feed full")]
pub struct Connect {
    /// The server's address, which is on this machine [default: the one that runs; asks where several do]
    #[arg(value_name = "URL", value_parser = local_address)]
    url: Option<std::net::SocketAddr>,
    /// The server's port
    #[arg(long, value_name = "N", conflicts_with = "url")]
    port: Option<u16>,
    /// The token [default: `$NEXUS3_API_KEY`, or the token file in the server's home]
    #[arg(long, value_name = "TOKEN")]
    api_key: Option<String>,
    /// The server's home, where its token file is [default: `$NEXUS3_HOME`, or ~/.nexus3]
    #[arg(long, value_name = "DIR")]
    home: Option<PathBuf>,
    /// Talks to this agent [default: asks]
    #[arg(long, value_name = "ID")]
    agent: Option<AgentId>,
    #[command(flatten)]
    shown: Shown,
}

// No doc comment: clap would take it for the help of the command.
#[derive(Debug, Args)]
struct Shown {
    /// How much is shown of what agents do besides talking
    #[arg(long, value_enum, default_value = "short")]
    feed: FeedName,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum FeedName {
    /// Each call with the beginning of its result
    Full,
    /// A line for each call
    Short,
    /// Only what goes on now
    Off,
}

impl From<FeedName> for Feed {
    fn from(name: FeedName) -> Self {
        match name {
            FeedName::Full => Self::Full,
            FeedName::Short => Self::Short,
            FeedName::Off => Self::Off,
        }
    }
}

/// What a conversation begins with.
struct Beginning {
    wish: Wish,
    fresh: Fresh,
    feed: Feed,
}

impl Talk {
    pub async fn run(self, world: &World) -> Result<(), Failed> {
        refuse_pipes()?;
        let here = world.environment.current_dir()?;
        let template = self.template.as_ref().map(|file| {
            std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))
        });
        let wish = match (self.agent, self.session) {
            (Some(agent), _) => Wish::Agent(agent),
            (None, Some(name)) => Wish::Session(name),
            (None, None) if self.resume => Wish::Resume,
            (None, None) if self.fresh || self.template.is_some() => Wish::Fresh,
            (None, None) => Wish::Ask,
        };
        let fresh = Fresh {
            directory: here.to_str().map(str::to_owned),
            system_prompt: template.transpose()?,
        };
        let begin = Beginning { wish, fresh, feed: self.shown.feed.into() };
        let flags = Flags::of(self.port, None, None, self.home.clone());
        let Some(flags) = chosen(world, flags).await? else {
            return Ok(());
        };
        let connection = flags.connect(world)?;
        match connection.client.detect().await {
            Detection::NoServer => {
                let mut open = Open::start(world, &connection).await?;
                let theirs = open.connection.named(CLIENT);
                let talked = tokio::select! {
                    biased;
                    talked = Box::pin(talk(&theirs, begin)) => talked,
                    () = open.stopped() => {
                        output::note("the server has stopped");
                        return Ok(());
                    }
                };
                close(world, open).await;
                talked
            }
            Detection::OtherService => Err(something_else(&connection)),
            // Whatever is wrong with it shows with the first call.
            Detection::NexusServer | Detection::Timeout | Detection::Error => {
                Box::pin(talk(&connection.named(CLIENT), begin)).await
            }
        }
    }
}

/// Lets the server of our own end what it does, which may take as long as its grace: nobody has to wait.
async fn close(world: &World, open: Open) {
    let mut stopping = pin!(open.stop());
    if timeout(CLOSING_UNTOLD_MAX, &mut stopping).await.is_ok() {
        return;
    }
    output::note("the server ends what still runs; Ctrl-C leaves at once");
    tokio::select! {
        biased;
        () = world.signals.stop() => {}
        () = stopping => {}
    }
}

fn something_else(connection: &Connection) -> Failed {
    let address = connection.client.address();
    let error = anyhow::anyhow!("what answers at {address} is no NEXUS3 server");
    Failed::Other(error.context(Hint("name another port with --port".to_owned())))
}

/// The server that was named, the one that runs, or the one that is chosen where there are several; as it
/// was where none runs. `None` where somebody was asked which, and left.
async fn chosen(world: &World, flags: Flags) -> Result<Option<Flags>, Failed> {
    if flags.names_a_server() {
        return Ok(Some(flags));
    }
    let servers = rpc::usable(world, &flags).await?;
    match servers.as_slice() {
        [] => return Ok(Some(flags)),
        [(port, _)] => return Ok(Some(flags.at_port(*port))),
        [..] => {}
    }
    let told = |(port, agents): &(u16, usize)| match agents {
        1 => format!("port {port} (1 agent)"),
        agents => format!("port {port} ({agents} agents)"),
    };
    let items = servers.iter().map(told).collect();
    let mut screen = Screen::open(colours(world))?;
    let mut size = Screen::size()?;
    let chosen = choose(&mut screen, &mut size, "Which server?", items).await?;
    Ok(chosen.map(|item| flags.at_port(servers[item].0)))
}

impl Connect {
    pub async fn run(self, world: &World) -> Result<(), Failed> {
        refuse_pipes()?;
        let wish = self.agent.map_or(Wish::Ask, Wish::Agent);
        let here = world.environment.current_dir()?;
        let fresh = Fresh { directory: here.to_str().map(str::to_owned), system_prompt: None };
        let begin = Beginning { wish, fresh, feed: self.shown.feed.into() };
        let flags = Flags::of(self.port, self.url, self.api_key, self.home);
        let Some(flags) = chosen(world, flags).await? else {
            return Ok(());
        };
        let connection = flags.connect(world)?.named(CLIENT);
        // One that is not there is told before the terminal is taken over.
        connection.answered(connection.client.list_agents().await).await?;
        Box::pin(talk(&connection, begin)).await
    }
}

/// A person talks; a program does not.
fn refuse_pipes() -> Result<(), Failed> {
    if shell::is_terminal() {
        return Ok(());
    }
    let error = anyhow::anyhow!("this is for a terminal, and there is none");
    let hint = "from a script use `nexus3 run PROMPT` or `nexus3 rpc send ID TEXT`";
    Err(Failed::Other(error.context(Hint(hint.to_owned()))))
}

/// The whole conversation, until the person leaves or somebody ends this program.
async fn talk(connection: &Connection, begin: Beginning) -> Result<(), Failed> {
    let world = &connection.world;
    let mut screen = Screen::open(colours(world))?;
    let talking = converse(connection, begin, &mut screen);
    let talked = tokio::select! {
        // Whoever ends this program is not kept waiting by what is being said.
        biased;
        () = world.signals.stop() => Err(Failed::Interrupted),
        () = world.signals.hung_up() => Err(Failed::Interrupted),
        talked = talking => talked,
    };
    drop(screen);
    talked
}

async fn converse(
    connection: &Connection,
    begin: Beginning,
    screen: &mut Screen,
) -> Result<(), Failed> {
    let (client, world) = (&connection.client, &connection.world);
    let mut size = Screen::size()?;
    let Beginning { wish, fresh, feed } = begin;
    let now = since_1970(world);
    let entered = lobby::enter(client, screen, &mut size, wish, &fresh, now).await;
    let Some((agent, how)) = entered.map_err(failed)? else {
        return Ok(());
    };
    screen.show(&[Line::of(Tone::Dim, WELCOME)], &Foot::default())?;
    let office = Arc::new(Desk::new(connection, fresh.directory));
    let core = Core::new(size.columns, size.rows, feed);
    Terminal::new(core, client.clone(), office, screen).run(agent, how).await?;
    Ok(())
}

fn failed(error: LobbyError) -> Failed {
    match error {
        LobbyError::Client(error) => connection::failed(error),
        LobbyError::Face(error) => Failed::Other(error.into()),
    }
}

fn since_1970(world: &World) -> Duration {
    let since = world.clock.now().as_duration();
    Duration::try_from(since).unwrap_or_default()
}

fn colours(world: &World) -> Colours {
    let refused = world.environment.var("NO_COLOR").is_some_and(|no| !no.is_empty());
    if refused { Colours::Off } else { Colours::On }
}
