//! The command line: one file per subcommand. Outside the server: it may use the machine.
//! Results go to stdout, everything else to stderr.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the command line runs on the real machine only"
)]

mod background;
mod config;
mod connection;
mod conversation;
pub mod doctor;
mod doctor_mcp;
mod init;
mod inside;
mod interactive;
mod layout;
mod mcp;
mod output;
mod perm;
mod rpc;
mod run;
mod serve;
mod sessions;
mod shell;
mod trust;
mod usage;
mod view;
mod waiting;
mod watch;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Parser, Subcommand};
use futures_util::future::LocalBoxFuture;
use tokio::runtime::{Builder, Runtime};

use self::connection::Connected;
pub use self::interactive::office;
use crate::world::World;
use crate::world::real::{SUPERVISOR_COMMAND, supervise};

/// How many threads may hold blocking work at once.
const BLOCKING_THREADS_MAX: usize = 16;

#[derive(Debug, Parser)]
#[command(
    name = "nexus3",
    version,
    about = "Runs teams of LLM agents on this machine. Without a command: a terminal to talk to them.",
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  \
        nexus3                                    talk, on the server that runs or one of its own\n  \
        nexus3 --resume                           go on where you left\n  \
        nexus3 run 'What is in this directory?'   one answer, from an agent of its own\n  \
        nexus3 serve                              start the server on port 8765\n  \
        nexus3 rpc create scout                   create an agent on it\n  \
        nexus3 rpc send scout 'Hello'             send it a message and print the answer\n  \
        nexus3 trace scout --follow               look at what it does\n  \
        nexus3 rpc shutdown                       stop the server"
)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    terminal: interactive::Talk,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// The terminal, which needs no command.
    #[command(skip)]
    Terminal(Box<interactive::Talk>),
    Connect(interactive::Connect),
    Serve(serve::Arguments),
    /// Talks to a running server.
    #[command(
        after_help = "Exit codes: 0 done, 1 failed, 2 usage, 3 no server, 4 authentication, \
        130 interrupted."
    )]
    Rpc(Box<Connected<rpc::Command>>),
    Run(run::Arguments),
    /// Looks at what is stored; needs no running server
    Sessions(Connected<sessions::Command>),
    Trace(watch::Trace),
    /// Explains what agents may do
    Perm(Connected<perm::Command>),
    Trust(trust::Arguments),
    Config(config::Arguments),
    Init(init::Arguments),
    Doctor(doctor::Arguments),
    Mcp(mcp::Arguments),
    Completions(shell::Completions),
    Man(shell::Man),
    /// Started by the server for each program of its agents, by nobody else.
    #[command(name = SUPERVISOR_COMMAND, hide = true)]
    Supervise,
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
    /// It has said that there is no server.
    NoServerFound,
}

impl<E: Into<anyhow::Error>> From<E> for Failed {
    fn from(error: E) -> Self {
        Self::Other(error.into())
    }
}

pub fn main() -> ExitCode {
    let arguments = match Arguments::try_parse_from(spelled_out(std::env::args_os())) {
        Ok(arguments) => arguments,
        Err(error) => return usage::told(&error),
    };
    let command = arguments.command.unwrap_or(Command::Terminal(Box::new(arguments.terminal)));
    let runtime = match &command {
        Command::Supervise => return supervise(),
        Command::Completions(completions) => return completions.run(),
        Command::Man(man) => return man.run(),
        Command::Terminal(_)
        | Command::Connect(_)
        | Command::Serve(_)
        | Command::Run(_)
        | Command::Mcp(_)
        | Command::Sessions(_) => Builder::new_multi_thread()
            .enable_all()
            .max_blocking_threads(BLOCKING_THREADS_MAX)
            // A commit wakes many agents at once. The slot runs the last of them first, and keeps it from
            // the other threads: 32 agents do a twelfth more turns without it.
            .disable_lifo_slot()
            .build(),
        // A client waits for one thing at a time: threads would only make it start later.
        Command::Rpc(_)
        | Command::Trace(_)
        | Command::Perm(_)
        | Command::Trust(_)
        | Command::Config(_)
        | Command::Init(_)
        | Command::Doctor(_) => Builder::new_current_thread().enable_all().build(),
    };
    match runtime {
        Ok(runtime) => ended(runtime, command),
        Err(error) => told(&Failed::Other(error.into())),
    }
}

/// `nexus3 --serve [PORT]` and `--connect [URL]` are older spellings of the commands.
fn spelled_out(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = arguments.collect();
    for (older, command) in [("--serve", "serve"), ("--connect", "connect")] {
        if arguments.get(1).is_some_and(|first| first == older) {
            arguments[1] = command.into();
        }
    }
    arguments
}

fn ended(runtime: Runtime, command: Command) -> ExitCode {
    let ended = runtime.block_on(run(command));
    // A blocking job that hangs must not keep the program alive.
    runtime.shutdown_background();
    match ended {
        Ok(()) => done(),
        Err(failed) => told(&failed),
    }
}

/// A command has done what it was to, and its result is written, or it is not done.
fn done() -> ExitCode {
    match output::lost() {
        None => ExitCode::SUCCESS,
        Some(error) => told(&Failed::Other(anyhow::anyhow!("cannot write the result: {error}"))),
    }
}

async fn run(command: Command) -> Result<(), Failed> {
    let world = crate::world::real::world()?;
    let signals = Arc::clone(&world.signals);
    let interruptible: LocalBoxFuture<'_, Result<(), Failed>> = match command {
        Command::Serve(arguments) => return Box::pin(serve::run(world, arguments)).await,
        // They take every interrupt themselves: the terminal has to be as it was.
        Command::Terminal(arguments) => return Box::pin(arguments.run(&world)).await,
        Command::Connect(connect) => return Box::pin(connect.run(&world)).await,
        // It takes every interrupt itself: what it has made has to go.
        Command::Run(arguments) => return Box::pin(arguments.run(&world)).await,
        Command::Mcp(arguments) => return Box::pin(arguments.run(&world)).await,
        Command::Trust(arguments) => return Ok(trust::run(&world, &arguments)?),
        Command::Config(arguments) => return Ok(config::run(&world, &arguments)?),
        Command::Init(arguments) => return Ok(init::run(&world, &arguments)?),
        Command::Rpc(arguments) => Box::pin(rpc::run(&world, *arguments)),
        Command::Sessions(sessions) => Box::pin(sessions.run(&world)),
        Command::Trace(trace) => Box::pin(trace.run(&world)),
        Command::Perm(perm) => Box::pin(perm.run(&world)),
        Command::Doctor(ref arguments) => Box::pin(doctor::run(&world, arguments)),
        Command::Completions(_) | Command::Man(_) | Command::Supervise => {
            unreachable!("they need no machine and have run by now")
        }
    };
    tokio::select! {
        // An answer that has come is shown, whatever the person does.
        biased;
        ended = interruptible => ended,
        // A send has its own way to be interrupted and takes the first signal for it.
        () = signals.stop() => Err(Failed::Interrupted),
    }
}

fn told(failed: &Failed) -> ExitCode {
    let (code, error) = match failed {
        Failed::Other(error) => (1, Some(error)),
        Failed::NoServer(error) => (3, Some(error)),
        Failed::Authentication(error) => (4, Some(error)),
        Failed::Interrupted => {
            // The terminal has written `^C` there.
            output::progress("");
            (130, None)
        }
        Failed::Silently => (1, None),
        Failed::NoServerFound => (3, None),
    };
    if let Some(error) = error {
        output::error(error);
    }
    ExitCode::from(code)
}

/// The home of a server or of the server a command talks to: given, `NEXUS3_HOME`, `~/.nexus3`.
pub fn home(world: &World, given: Option<PathBuf>) -> anyhow::Result<PathBuf> {
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
