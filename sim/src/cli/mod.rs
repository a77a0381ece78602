//! The command line of the simulation. Outside the runs: it may use the machine.
//! Exit codes: 0 all good, 1 a difference or violation, 2 a wrong command line or scenario file.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the command line reads files, starts processes and measures real time"
)]

mod conform;
mod crash;
mod explore;
mod ground; // a scenario on this machine
mod model;
mod output;
mod report; // a page about runs
mod run;
mod seeds;
mod shard;
mod shrink;
mod trace;
mod twice;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

pub use trace::Tracing;

use crate::scenario::{self, Scenario};

#[derive(Debug, Parser)]
#[command(
    name = "nexus3-sim",
    version,
    about = "Runs the NEXUS3 server in a deterministic simulation, driven by scenario files.",
    after_help = "Examples:\n  \
        nexus3-sim new hello                  writes hello.toml, a first scenario\n  \
        nexus3-sim run scenarios/*.toml       runs each against its snapshot\n  \
        nexus3-sim run hello.toml --bless     runs it and keeps its transcript\n  \
        nexus3-sim twice scenarios/*.toml     proves that runs are deterministic\n  \
        nexus3-sim crash scenarios/*.toml     crashes the server at every durable point\n  \
        nexus3-sim explore scenarios/*.toml --seeds 0..1000   searches for what nobody thought of\n  \
        nexus3-sim shrink failing.toml > small.toml           makes what it found small\n  \
        nexus3-sim model hello.toml --port 9001               its model as a real HTTP server\n  \
        nexus3-sim conform http://localhost:8765 hello.toml   its steps against a real server"
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::Arguments),
    Twice(twice::Arguments),
    Crash(crash::Arguments),
    Explore(explore::Arguments),
    Shrink(shrink::Arguments),
    Model(model::Arguments),
    Conform(conform::Arguments),
    /// Prints the JSON schema of scenario files, for editors
    Schema,
    /// Writes a first scenario file to start from
    New {
        /// The behaviour it shows; the file is NAME.toml
        name: String,
    },
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Good,
    Bad,
    /// What was asked for makes no sense.
    Usage,
}

pub fn main() -> ExitCode {
    let ended = match Arguments::parse().command {
        Command::Run(arguments) => run::run(&arguments),
        Command::Twice(arguments) => twice::run(&arguments),
        Command::Crash(arguments) => crash::run(&arguments),
        Command::Explore(arguments) => explore::run(&arguments),
        Command::Shrink(arguments) => shrink::run(&arguments),
        Command::Model(arguments) => model::run(&arguments),
        Command::Conform(arguments) => conform::run(&arguments),
        Command::Schema => {
            output::line(&format!("{:#}", scenario::schema()));
            Ok(Verdict::Good)
        }
        Command::New { name } => new(&name),
    };
    match ended {
        Ok(Verdict::Good) => ExitCode::SUCCESS,
        Ok(Verdict::Bad) => ExitCode::from(1),
        Ok(Verdict::Usage) => ExitCode::from(2),
        Err(error) => {
            output::note(&format!("error: {error:#}"));
            ExitCode::from(2)
        }
    }
}

fn new(name: &str) -> anyhow::Result<Verdict> {
    let path = PathBuf::from(format!("{name}.toml"));
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).open(&path);
    match &mut file {
        Ok(file) => std::io::Write::write_all(file, scenario::first(name).as_bytes())?,
        Err(error) => anyhow::bail!("cannot write {}: {error}", path.display()),
    }
    output::line(&format!("{} written; run it with `nexus3-sim run {0} --bless`", path.display()));
    Ok(Verdict::Good)
}

/// Reads a scenario; what is wrong with it is told and counts as usage.
fn read(path: &Path) -> Result<Scenario, Verdict> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) => {
            output::note(&format!("{}: cannot be read: {error}", path.display()));
            return Err(Verdict::Usage);
        }
    };
    Scenario::parse(&path.display().to_string(), &text).map_err(|problems| {
        for problem in problems {
            output::note(&problem.to_string());
        }
        Verdict::Usage
    })
}
