//! What is typed after a slash: the commands of `nexus3 rpc`, with what they print kept for the screen.

use std::path::PathBuf;
use std::sync::Arc;

use super::slash::{about_agent, parse, parse_init, spoken, with_text};
use crate::cli::connection::Connection;
use crate::cli::inside::Unheard;
use crate::cli::output::Hint;
use crate::cli::{Failed, config, init, output};
use crate::client::{ClientError, NexusClient};
use crate::config::words::meant;
use crate::id::{AgentId, RequestId};
use crate::terminal::commands::{Command, Does, Subject, Takes};
use crate::terminal::history::History;
use crate::terminal::interrupt::Interrupt;
use crate::terminal::line::Tone;
use crate::terminal::office::{Office, Told};
use crate::terminal::shell::Screen;
use crate::world::{BoxFuture, Entry, Kind, Signals, World};

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
        let connection = Arc::new(connection.signalled_by(Arc::new(Unheard)));
        Self { connection, directory, history, columns }
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
        interrupt: Interrupt,
    ) -> BoxFuture<'static, Told> {
        let connection = self.connection.signalled_by(Arc::new(interrupt));
        let columns = usize::from((self.columns)().max(2)) - 1;
        Box::pin(async move {
            let work = Box::pin(run(&connection, command, words, agent));
            let (done, text) = output::kept(columns, work).await;
            match done {
                Ok(()) if text.trim().is_empty() => {
                    Told { text: "done".to_owned(), how: Tone::Dim }
                }
                Ok(()) => Told { text, how: Tone::Plain },
                Err(why) => Told { text: format!("{text}{why}"), how: Tone::Bad },
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
            let agents = agents(connection).await;
            if command.name == "cancel" {
                is_known(connection, &words, &agents, agent.as_ref()).await?;
            }
            words = about_agent(command, words, &agents, agent.as_ref());
        }
        Does::Rpc(Subject::NamedText) => words = with_text(words),
        Does::Rpc(Subject::Named) => {}
        Does::Local => return init(connection, command, &words),
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
        Err(error) => spoken(command, &error),
    }
}

async fn agents(connection: &Connection) -> Vec<String> {
    let listed = connection.client.list_agents().await.map(|listed| listed.agents);
    let listed = listed.unwrap_or_default();
    listed.iter().map(|entry| entry.agent_id.to_string()).collect()
}

/// One word after `/cancel` is an agent, or a request of the current one. What is neither is a name that
/// was mistyped, which cancels nothing of anybody.
async fn is_known(
    connection: &Connection,
    words: &[String],
    agents: &[String],
    current: Option<&AgentId>,
) -> Result<(), String> {
    let ([word], Some(current)) = (words, current) else {
        return Ok(());
    };
    let (false, Ok(request)) = (agents.contains(word), RequestId::parse(word)) else {
        return Ok(());
    };
    let Err(ClientError::Rpc { .. }) = connection.client.get_request(current, request).await else {
        return Ok(());
    };
    let names: Vec<&str> = agents.iter().map(String::as_str).collect();
    let near = meant(word, &names).map(|name| format!("; did you mean `{name}`?"));
    let near = near.unwrap_or_default();
    Err(format!("✗ neither an agent nor a request of {current} is called {word}{near}"))
}

/// A word as a shell would give it: `~` is where the person is at home.
fn expanded(world: &World, typed: String) -> String {
    let below = typed.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'));
    match below.zip(world.environment.var("HOME")) {
        Some((below, home)) => format!("{home}{below}"),
        None => typed,
    }
}

fn init(connection: &Connection, command: &Command, words: &[String]) -> Result<(), String> {
    match parse_init(words) {
        Ok(arguments) => {
            init::run(&connection.world, &arguments).map_err(|error| told(Failed::Other(error)))
        }
        Err(error) => spoken(command, &error),
    }
}

/// Why a command failed, and below it what can be done about it here; it has said the rest.
fn told(failed: Failed) -> String {
    let (error, hint) = match failed {
        Failed::NoServer(error) => {
            (error, Some("this terminal goes on by itself once it is there again"))
        }
        Failed::Authentication(error) => {
            (error, Some("leave with /quit, and name its token with --api-key"))
        }
        Failed::Other(error) => (error, None),
        Failed::Interrupted => return "✗ cancelled".to_owned(),
        Failed::Silently | Failed::NoServerFound => return String::new(),
    };
    let own = error.downcast_ref::<Hint>().map(|Hint(hint)| hint.clone());
    let causes = error.chain().skip(usize::from(own.is_some())).map(ToString::to_string);
    let causes = causes.collect::<Vec<_>>().join(": ");
    match hint.map(str::to_owned).or(own) {
        Some(hint) => format!("✗ {causes}\n  {hint}"),
        None => format!("✗ {causes}"),
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
    /// The same, where the signals of this program are for somebody else.
    fn signalled_by(&self, signals: Arc<dyn Signals>) -> Self {
        let mut connection = self.with(self.client.clone());
        connection.world = World { signals, ..self.world.clone() };
        connection
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_comes_before_what_can_be_done_about_it() {
        let error = anyhow::anyhow!("refused").context("no server answers");
        let hinted = |hint: &str| {
            let error = anyhow::anyhow!("refused").context("no server answers");
            error.context(Hint(hint.to_owned()))
        };
        let told_of = [
            (
                Failed::NoServer(hinted("start one with `nexus3 serve`")),
                "✗ no server answers: refused\n  this terminal goes on by itself once it is there again",
            ),
            (Failed::Other(hinted("look first")), "✗ no server answers: refused\n  look first"),
            (Failed::Other(error), "✗ no server answers: refused"),
        ];
        for (failed, expected) in told_of {
            assert_eq!(told(failed), expected);
        }
    }
}
