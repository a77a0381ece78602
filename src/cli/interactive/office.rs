//! What is typed after a slash: the commands of `nexus3 rpc`, with what they print kept for the screen.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use clap::error::ErrorKind;
use clap::{FromArgMatches, Subcommand};

use crate::cli::connection::Connection;
use crate::cli::inside::Unheard;
use crate::cli::rpc;
use crate::cli::{Failed, config, init, output};
use crate::client::NexusClient;
use crate::id::AgentId;
use crate::terminal::commands::{Command, Does, Subject, Takes};
use crate::terminal::core::Input;
use crate::terminal::drive::Office;
use crate::terminal::history::History;
use crate::terminal::line::Tone;
use crate::terminal::shell::Screen;
use crate::world::{BoxFuture, Entry, Kind, World};

/// Where the terminal does not tell.
const COLUMNS_USUAL: u16 = 80;

pub struct Desk {
    connection: Arc<Connection>,
    directory: Option<String>,
    history: History,
    /// How wide the screen is now.
    columns: fn() -> u16,
}

impl Desk {
    /// Of the terminal that this program runs in.
    pub fn new(connection: &Connection, directory: Option<String>) -> Self {
        let columns = || Screen::size().map_or(COLUMNS_USUAL, |size| size.columns);
        Self::on(connection, directory, columns)
    }

    /// Of any terminal.
    pub fn on(connection: &Connection, directory: Option<String>, columns: fn() -> u16) -> Self {
        let history = History::new(connection.world.clone(), connection.home.clone());
        Self { connection: Arc::new(connection.unsignalled()), directory, history, columns }
    }
}

/// Runs the commands of a terminal in a world whose screen is somebody else's.
pub fn office(
    world: &World,
    home: PathBuf,
    client: NexusClient,
    columns: fn() -> u16,
) -> Arc<dyn Office> {
    Arc::new(Desk::on(&Connection::through(world, home, client), None, columns))
}

impl Office for Desk {
    fn run(
        &self,
        command: &'static Command,
        words: Vec<String>,
        agent: Option<AgentId>,
    ) -> BoxFuture<'static, Input> {
        let connection = Arc::clone(&self.connection);
        let columns = usize::from((self.columns)().max(2)) - 1;
        Box::pin(async move {
            let work = Box::pin(run(&connection, command, words, agent));
            let (done, text) = output::kept(columns, work).await;
            match done {
                Ok(()) if text.trim().is_empty() => {
                    Input::Ran { text: "done".to_owned(), how: Tone::Dim }
                }
                Ok(()) => Input::Ran { text, how: Tone::Plain },
                Err(why) => Input::Ran { text: format!("{text}{why}"), how: Tone::Bad },
            }
        })
    }

    fn known(
        &self,
        takes: Takes,
        word: String,
        within: Option<String>,
    ) -> BoxFuture<'static, Vec<String>> {
        let connection = Arc::clone(&self.connection);
        let directory = within.or_else(|| self.directory.clone());
        Box::pin(async move {
            let found = match takes {
                Takes::Path => paths(&connection.world, directory.as_deref(), &word),
                Takes::Model => models(&connection),
                Takes::Preset => presets(&connection),
                Takes::Nothing | Takes::Agent | Takes::Session | Takes::Command => Vec::new(),
            };
            found.into_iter().filter(|name| name.starts_with(&word)).collect()
        })
    }

    fn recall(&self) -> BoxFuture<'static, Vec<String>> {
        let history = self.history.clone();
        Box::pin(async move { history.recall().await })
    }

    fn remember(&self, typed: Vec<String>) -> BoxFuture<'static, Result<(), String>> {
        let history = self.history.clone();
        Box::pin(async move { history.remember(typed).await.map_err(|error| error.to_string()) })
    }

    fn directory(&self) -> Option<String> {
        self.directory.clone()
    }
}

/// Runs a command as `nexus3 rpc` would; what it has to say about a failure is the error.
async fn run(
    connection: &Connection,
    command: &Command,
    mut words: Vec<String>,
    agent: Option<AgentId>,
) -> Result<(), String> {
    if matches!(command.does, Does::Rpc(Subject::Named | Subject::Agent) | Does::Local) {
        words = words.into_iter().map(|word| expanded(&connection.world, word)).collect();
    }
    match command.does {
        Does::Rpc(Subject::Agent | Subject::AgentText) => {
            about_agent(connection, command, &mut words, agent).await;
        }
        Does::Rpc(Subject::Named | Subject::NamedText) => {}
        Does::Local => return init(connection, words),
        Does::Agent | Does::Whisper | Does::Over | Does::Help | Does::Clear | Does::Quit => {
            unreachable!("the terminal does it itself")
        }
    }
    // A server that is gone is waited for, not replaced by another.
    if matches!(command.name, "list" | "create") {
        words.push("--no-start".to_owned());
    }
    match parse(command.name, &words) {
        Ok(parsed) => parsed.run(connection).await.map_err(told),
        Err(error) => spoken(command.name, &error),
    }
}

/// A word as a shell would give it: `~` is where the person is at home.
fn expanded(world: &World, typed: String) -> String {
    let below = typed.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'));
    match below.zip(world.environment.var("HOME")) {
        Some((below, home)) => format!("{home}{below}"),
        None => typed,
    }
}

/// Puts the current agent first where no agent is named. A word that can be nothing else is the name of
/// one, also of one that is not there.
async fn about_agent(
    connection: &Connection,
    command: &Command,
    words: &mut Vec<String>,
    current: Option<AgentId>,
) {
    let listed = connection.client.list_agents().await.map(|listed| listed.agents);
    let agents = listed.unwrap_or_default();
    let named = words
        .first()
        .is_some_and(|word| agents.iter().any(|entry| entry.agent_id.as_str() == word.as_str()));
    if !named && let Some(current) = current {
        let text = command.does == Does::Rpc(Subject::AgentText);
        let mut with_current = words.clone();
        with_current.insert(0, current.to_string());
        let fits = |words: &[String]| parse(command.name, words).is_ok();
        if text || fits(&with_current) || !fits(words) {
            *words = with_current;
        }
    }
    if command.does == Does::Rpc(Subject::AgentText) && words.len() > 2 {
        let text = words.split_off(1).join(" ");
        words.push(text);
    }
}

fn parse(name: &str, words: &[String]) -> Result<rpc::Command, clap::Error> {
    let grammar = rpc::Command::augment_subcommands(clap::Command::new(""));
    let grammar = grammar.no_binary_name(true).disable_help_subcommand(true);
    let words = std::iter::once(name).chain(words.iter().map(String::as_str)).map(OsString::from);
    let matches = grammar.try_get_matches_from(words)?;
    rpc::Command::from_arg_matches(&matches)
}

/// What is said in place of a command: help that was asked for, or what is wrong with it. Commands begin
/// with a slash here.
fn spoken(name: &str, error: &clap::Error) -> Result<(), String> {
    let text = error.to_string().replace("Usage: ", "Usage: /").replace("nexus3 rpc ", "/");
    let text = text.replace("try '--help'", &format!("try /{name} --help"));
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            output::line(text.trim_end());
            Ok(())
        }
        _ => {
            let wrong = text.trim_end();
            Err(format!("✗ {}", wrong.strip_prefix("error: ").unwrap_or(wrong)))
        }
    }
}

fn init(connection: &Connection, words: Vec<String>) -> Result<(), String> {
    let grammar = <init::Arguments as clap::Args>::augment_args(clap::Command::new("init"));
    let matches = grammar.no_binary_name(true).try_get_matches_from(words);
    let parsed = matches.and_then(|matches| init::Arguments::from_arg_matches(&matches));
    match parsed {
        Ok(arguments) => {
            init::run(&connection.world, &arguments).map_err(|error| told(Failed::Other(error)))
        }
        Err(error) => spoken("init", &error),
    }
}

/// Why a command failed; it has said the rest.
fn told(failed: Failed) -> String {
    match failed {
        Failed::Other(error) | Failed::NoServer(error) | Failed::Authentication(error) => {
            let causes: Vec<String> = error.chain().map(ToString::to_string).collect();
            format!("✗ {}", causes.join(": "))
        }
        Failed::Interrupted => "✗ interrupted".to_owned(),
        Failed::Silently | Failed::NoServerFound => String::new(),
    }
}

/// The names that a path can go on with.
fn paths(world: &World, directory: Option<&str>, begun: &str) -> Vec<String> {
    let (above, _) =
        begun.rsplit_once('/').map_or(("", begun), |(above, name)| (&begun[..=above.len()], name));
    let here = directory.map(PathBuf::from).or_else(|| world.environment.current_dir().ok());
    let Some(place) = here.map(|here| here.join(expanded(world, above.to_owned()))) else {
        return Vec::new();
    };
    let canonical = world.fs.canonical(&place);
    let entries = canonical.and_then(|place| world.fs.dir(&place)?.list()).unwrap_or_default();
    let leads_on = |entry: &Entry| match entry.kind {
        Kind::Dir => true,
        Kind::Link => {
            let target = world.fs.canonical(&place.join(&entry.name));
            target.and_then(|target| world.fs.dir(&target)).is_ok()
        }
        Kind::File | Kind::Other => false,
    };
    let name = |entry: Entry| {
        let end = if leads_on(&entry) { "/" } else { "" };
        Some(format!("{above}{}{end}", entry.name.to_str()?))
    };
    let mut names: Vec<String> = entries.into_iter().filter_map(name).collect();
    names.sort();
    names
}

fn models(connection: &Connection) -> Vec<String> {
    let loaded = config::load(&connection.world, &connection.home, None, Vec::new());
    let Ok(loaded) = loaded else {
        return Vec::new();
    };
    let providers = loaded.config.providers.values();
    let own = providers.flat_map(|provider| provider.models.keys().cloned());
    // It is built in.
    own.chain(["demo".to_owned()]).collect()
}

fn presets(connection: &Connection) -> Vec<String> {
    let built_in = ["yolo", "trusted", "sandboxed", "worker"].map(str::to_owned);
    let loaded = config::load(&connection.world, &connection.home, None, Vec::new());
    let own = loaded.map(|loaded| loaded.config.permissions.presets).unwrap_or_default();
    built_in.into_iter().chain(own.into_keys()).collect()
}

impl Connection {
    /// The same, where signals are for somebody else.
    fn unsignalled(&self) -> Self {
        let mut connection = self.with(self.client.clone());
        connection.world = World { signals: Arc::new(Unheard), ..self.world.clone() };
        connection
    }
}
