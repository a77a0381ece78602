//! `nexus3 serve`: the headless server.

use std::fs::OpenOptions;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};

use super::output::Hint;
use super::{Failed, config, home, output};
use crate::client::{Detection, NexusClient};
use crate::config::{Config, Flag, LogLevel};
use crate::home::Home;
use crate::limits::TIMEOUT_SECONDS_MAX;
use crate::logs::Detail;
use crate::policy::ceiling::Yolo;
use crate::server::{Access, LogSettings, Resume, RunError, Server, Settings};
use crate::world::World;

/// Starts the server and runs it until it is stopped.
///
/// Without a configuration it runs on a built-in demo model, so that everything can be tried
/// without a key. It listens on loopback only and writes a token, which clients must show, to its
/// home. `nexus3 --serve [PORT]` means the same.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    nexus3 serve\n  \
    nexus3 serve 9000 --home /tmp/nexus\n  \
    nexus3 serve --config team.json\n  \
    nexus3 serve --idle-timeout 1800   stop half an hour after the last use\n  \
    nexus3 serve --home /tmp/fresh --record bug.toml   then: nexus3-sim run bug.toml --bless")]
pub struct Arguments {
    /// The port to listen on [default: 8765, or `server.port` of the configuration; 0: any]
    #[arg(value_name = "PORT", conflicts_with = "port")]
    position: Option<u16>,
    /// The same as PORT
    #[arg(long, value_name = "N")]
    port: Option<u16>,
    /// The server's own directory [default: `$NEXUS3_HOME`, or ~/.nexus3]
    #[arg(long, value_name = "DIR")]
    home: Option<PathBuf>,
    /// The configuration file [default: config.json in the home, if there is one]. Variables such as
    /// `NEXUS3_SERVER__PORT` win over it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Brings all agents back at the start that an earlier server had; without it each comes back
    /// with the first request to it
    #[arg(long)]
    resume: bool,
    /// Lets callers create agents without any restriction
    #[arg(long)]
    allow_yolo: bool,
    /// Asks callers for no token. For tests: every program on this machine can then use the server
    #[arg(long)]
    no_auth: bool,
    /// Stops after S seconds without a request, a running turn and a reader of events [default:
    /// `server.idle_timeout` of the configuration, or never]
    #[arg(long, value_name = "S", value_parser = seconds)]
    idle_timeout: Option<f64>,
    /// Writes what happens to FILE, which must be new, as a scenario that replays it: `nexus3-sim run
    /// FILE`. Keys are left out; what agents read and say is in it
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    #[command(flatten)]
    logs: LogArguments,
}

// No doc comment: clap would take it for the help of the whole command.
#[derive(Debug, Args)]
struct LogArguments {
    /// Another place for the logs: server.log, and a folder per agent [default: logs in the home]
    #[arg(long, value_name = "DIR")]
    log_dir: Option<PathBuf>,
    /// Writes every event of an agent, with all its fields, to verbose.md beside its context.md
    #[arg(short, long)]
    verbose: bool,
    /// Writes the traffic with providers to raw.jsonl beside an agent's context.md, without keys.
    /// What agents read and say is in it
    #[arg(long)]
    raw_log: bool,
}

pub async fn run(world: World, arguments: Arguments) -> Result<(), Failed> {
    let home = home(&world, arguments.home.clone())?;
    Home::prepare(world.fs.as_ref(), &home)?;
    let config = configuration(&world, &home, &arguments)?;
    let (address, log_level) = ((config.server.host, config.server.port), config.server.log_level);
    let dir = match arguments.logs.log_dir {
        Some(dir) => world.environment.current_dir()?.join(dir),
        None => LogSettings::in_home(&home).dir,
    };
    log(&dir, log_level, Person::Here)?;
    let record = arguments.record.map(|file| Ok(world.environment.current_dir()?.join(file)));
    let record = record.transpose().map_err(|error: io::Error| anyhow::Error::from(error))?;
    let detail = Detail { verbose: arguments.logs.verbose, raw: arguments.logs.raw_log };
    let settings = Settings {
        config,
        home,
        access: if arguments.no_auth { Access::Everybody } else { Access::TokenHolders },
        yolo: if arguments.allow_yolo { Yolo::Allowed } else { Yolo::Refused },
        resume: if arguments.resume { Resume::AtStart } else { Resume::WhenAsked },
        logs: LogSettings { dir, detail },
        record,
    };
    let server = match Server::bind(world.clone(), settings).await {
        Ok(server) => server,
        Err(error) => return Err(explained(&world, address, error).await.into()),
    };
    announce(&server);
    server.run().await;
    Ok(())
}

/// The configuration of this start, with what was left out of it told.
fn configuration(world: &World, home: &Path, arguments: &Arguments) -> anyhow::Result<Config> {
    let port = arguments.position.or(arguments.port).map(|port| Flag {
        name: "--port",
        keys: &["server", "port"],
        value: port.to_string(),
    });
    let idle_timeout = arguments.idle_timeout.map(|seconds| Flag {
        name: "--idle-timeout",
        keys: &["server", "idle_timeout"],
        value: seconds.to_string(),
    });
    let flags = port.into_iter().chain(idle_timeout).collect();
    let loaded = config::load(world, home, arguments.config.as_deref(), flags)?;
    config::tell(&loaded.notices);
    Ok(loaded.config)
}

/// A time that somebody may wait.
fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|s| *s > 0.0 && *s <= TIMEOUT_SECONDS_MAX);
    seconds.ok_or_else(|| format!("expected seconds above 0, at most {TIMEOUT_SECONDS_MAX}"))
}

/// A taken port is worth a second look: it is usually a server that was forgotten.
async fn explained(world: &World, (host, port): (IpAddr, u16), error: RunError) -> anyhow::Error {
    let taken = match &error {
        RunError::Bind { source, .. } => source.kind() == io::ErrorKind::AddrInUse,
        _ => false,
    };
    if !taken {
        return error.into();
    }
    let client = NexusClient::new(Arc::clone(&world.net), SocketAddr::new(host, port), None);
    let what = match client.detect().await {
        Detection::NexusServer => "a NEXUS3 server runs there already",
        Detection::OtherService => "another service answers there",
        Detection::NoServer | Detection::Timeout | Detection::Error => "the port is taken",
    };
    anyhow::Error::from(error).context(Hint(format!("{what}; choose another port with --port")))
}

/// Who looks at stderr.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Person {
    Here,
    /// Somebody else has the terminal.
    Elsewhere,
}

/// Logs to `server.log` in the directory of the logs, and to a person who looks.
pub fn log(logs: &Path, level: LogLevel, person: Person) -> anyhow::Result<()> {
    let make = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(logs);
    writable(make, || format!("cannot make {}", logs.display()))?;
    let path = logs.join("server.log");
    let file = OpenOptions::new().create(true).append(true).mode(0o600).open(&path);
    let file = writable(file, || format!("cannot open {}", path.display()))?;
    let level = match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    let to_file = fmt::layer().with_writer(file).with_ansi(false).with_filter(heard(level));
    let to_person = fmt::layer()
        .with_writer(io::stderr)
        .with_ansi(false)
        .with_target(false)
        .without_time()
        .with_filter(heard(if person == Person::Here { level } else { LevelFilter::OFF }));
    tracing_subscriber::registry().with(to_file).with(to_person).try_init()?;
    // What panicked and where stands in the log before the line that gives it its number.
    std::panic::set_hook(Box::new(|panic| {
        let location = panic.location().map(ToString::to_string).unwrap_or_default();
        let message = panic.payload_as_str().unwrap_or("no message");
        tracing::error!(location, "panic: {message}");
    }));
    Ok(())
}

/// Everything but what the library for MCP says: it writes down whole messages, with whatever secrets servers
/// put into them, and at any length.
fn heard(level: LevelFilter) -> Targets {
    Targets::new().with_default(level).with_target("rmcp", LevelFilter::OFF)
}

/// The first thing a server writes shows whether it can write at all.
fn writable<T>(result: io::Result<T>, what: impl FnOnce() -> String) -> anyhow::Result<T> {
    result.map_err(|error| {
        let refused = matches!(
            error.kind(),
            io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied
        );
        let error = anyhow::Error::from(error).context(what());
        let hint = "the server must be able to write there: name another place with --home";
        if refused { error.context(Hint(hint.to_owned())) } else { error }
    })
}

fn announce(server: &Server) {
    let version = env!("CARGO_PKG_VERSION");
    output::note(format_args!("nexus3 {version} listens on http://{}", server.address()));
    match server.token_path() {
        Some(path) => output::note(format_args!("token: {}", path.display())),
        None => output::note(
            "WARNING: --no-auth: every program on this machine can use this server and its agents",
        ),
    }
    if let Some(notice) = server.notice() {
        output::note(notice);
    }
}
