//! The command line: one file per subcommand. Outside the server: it may use the machine.
//! Results go to stdout, everything else to stderr.

#![expect(clippy::disallowed_types, reason = "the command line runs on the real machine only")]

mod output;
mod rpc;
mod serve;
mod trust;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::world::World;
use crate::world::real::{SUPERVISOR_COMMAND, supervise};

/// How many threads may hold blocking work at once.
const BLOCKING_THREADS_MAX: usize = 16;

#[derive(Debug, Parser)]
#[command(
    name = "nexus3",
    version,
    about = "Runs teams of LLM agents on this machine.",
    after_help = "Examples:\n  \
        nexus3 serve                       start the server on port 8765\n  \
        nexus3 rpc create --agent-id scout create an agent on it\n  \
        nexus3 rpc send scout 'Hello'      send it a message and print the answer\n  \
        nexus3 rpc shutdown                stop the server"
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::Arguments),
    Rpc(Box<rpc::Arguments>),
    Trust(trust::Arguments),
    /// Started by the server for each program of its agents, by nobody else.
    #[command(name = SUPERVISOR_COMMAND, hide = true)]
    Supervise,
}

/// The commands that use the machine through its seams.
enum Lasting {
    Serve(serve::Arguments),
    Rpc(Box<rpc::Arguments>),
    Trust(trust::Arguments),
}

/// How a command can fail, by exit code.
#[derive(Debug)]
enum Failed {
    Other(anyhow::Error),
    NoServer(anyhow::Error),
    Authentication(anyhow::Error),
    /// By a signal.
    Interrupted,
    /// The command has said what there was to say.
    Silently,
}

impl<E: Into<anyhow::Error>> From<E> for Failed {
    fn from(error: E) -> Self {
        Self::Other(error.into())
    }
}

pub fn main() -> ExitCode {
    // A wrong command line ends here, with clap's exit code 2.
    let arguments = Arguments::parse_from(spelled_out(std::env::args_os()));
    let command = match arguments.command {
        Command::Supervise => return supervise(),
        Command::Serve(arguments) => Lasting::Serve(arguments),
        Command::Rpc(arguments) => Lasting::Rpc(arguments),
        Command::Trust(arguments) => Lasting::Trust(arguments),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .max_blocking_threads(BLOCKING_THREADS_MAX)
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return told(&Failed::Other(error.into())),
    };
    let ended = runtime.block_on(run(command));
    // A blocking job that hangs must not keep the program alive.
    runtime.shutdown_background();
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failed) => told(&failed),
    }
}

/// `nexus3 --serve [PORT]` is the older spelling of `nexus3 serve [PORT]`.
fn spelled_out(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = arguments.collect();
    if arguments.get(1).is_some_and(|first| first == "--serve") {
        arguments[1] = "serve".into();
    }
    arguments
}

async fn run(command: Lasting) -> Result<(), Failed> {
    let world = crate::world::real::world()?;
    match command {
        Lasting::Serve(arguments) => serve::run(world, arguments).await,
        Lasting::Trust(arguments) => Ok(trust::run(&world, &arguments)?),
        Lasting::Rpc(arguments) => tokio::select! {
            // An answer that has come is shown, whatever the person does.
            biased;
            ended = rpc::run(&world, *arguments) => ended,
            // A send has its own way to be interrupted and takes the first signal for it.
            () = world.signals.stop() => Err(Failed::Interrupted),
        },
    }
}

fn told(failed: &Failed) -> ExitCode {
    let (code, error) = match failed {
        Failed::Other(error) => (1, Some(error)),
        Failed::NoServer(error) => (3, Some(error)),
        Failed::Authentication(error) => (4, Some(error)),
        Failed::Interrupted => (130, None),
        Failed::Silently => (1, None),
    };
    if let Some(error) = error {
        output::error(error);
    }
    ExitCode::from(code)
}

/// The home of a server or of the server a command talks to: given, `NEXUS3_HOME`, `~/.nexus3`.
fn home(world: &World, given: Option<PathBuf>) -> anyhow::Result<PathBuf> {
    let named = || world.environment.var("NEXUS3_HOME").filter(|home| !home.is_empty());
    let from_environment = || named().map(PathBuf::from);
    let home = match given.or_else(from_environment) {
        Some(home) => home,
        None => match world.environment.home_dir() {
            Some(user) => user.join(".nexus3"),
            None => {
                anyhow::bail!("there is no home directory: name a place with --home or NEXUS3_HOME")
            }
        },
    };
    Ok(world.environment.current_dir()?.join(home))
}
