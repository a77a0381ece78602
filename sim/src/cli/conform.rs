//! `nexus3-sim conform`: a scenario's steps against a real server, with the same expectations.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use clap::Args;
use nexus3::client::{find_token, local_address};
use nexus3::world::real;

use super::ground::{self, Ground};
use super::{Verdict, output};
use crate::machine::PROJECT;
use crate::play::live::{self, Conformed, Place};
use crate::scenario::{Action, Scenario};

/// Plays a scenario's steps against a server that runs, and compares its answers with what they expect.
///
/// The server is to be started in the directory that stands for /project, with the configuration that
/// `nexus3-sim model` prints for the same file. Times are real: what is to happen within a second of
/// virtual time has to happen within a real one. What agents do with their tools is done to this machine,
/// and agents that the steps make stay.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    nexus3-sim conform http://localhost:8765 hello.toml --root work\n  \
    nexus3-sim conform http://localhost:8765 hello.toml --api-key \"$(cat ~/.nexus3/rpc-8765.token)\"")]
pub struct Arguments {
    /// Where the server is: `http://localhost:8765`
    #[arg(value_name = "URL", value_parser = local_address)]
    server: SocketAddr,
    /// The scenario file
    file: PathBuf,
    /// The directory that stands for /project [default: a temporary one]
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// The token [default: `$NEXUS3_API_KEY`, or the token file in the server's home]
    #[arg(long, value_name = "TOKEN")]
    api_key: Option<String>,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<Verdict> {
    let ground = match Ground::prepare(&arguments.file, arguments.root.as_deref())? {
        Ok(ground) => ground,
        Err(verdict) => return Ok(verdict),
    };
    let file = arguments.file.display();
    if let Some(line) = stops_or_starts(&ground.scenario) {
        anyhow::bail!(
            "{file}:{line}: this step stops or starts its server, which only `nexus3-sim run` can do"
        );
    }
    if !ground.scenario.agents.is_empty() {
        anyhow::bail!(
            "{file}: its agents were there before, and only `nexus3-sim run` can have had them there"
        );
    }
    if arguments.root.is_none() && ground.uses_project() {
        let root = ground.root.display();
        output::note(&format!(
            "{root} stands for {PROJECT}; a model that names files there needs the same `--root`"
        ));
    }
    for what in left_out(&ground.scenario) {
        output::note(&format!("left out: {what}"));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let Conformed { transcript, mut failures } = runtime.block_on(play(arguments, &ground))?;
    failures.extend(ground.unexpected());
    if failures.is_empty() {
        output::line(&format!("ok     {file}"));
        return Ok(Verdict::Good);
    }
    output::line(&format!("FAILED {file}"));
    for failure in failures {
        output::line(&format!("  {failure}"));
    }
    output::note("what happened:");
    output::note(transcript.trim_end());
    Ok(Verdict::Bad)
}

async fn play(arguments: &Arguments, ground: &Ground) -> anyhow::Result<Conformed> {
    let world = real::world().context("this machine cannot be used")?;
    let home = nexus3::cli::home(&world, None)?;
    let (given, server) = (arguments.api_key.clone(), arguments.server);
    let token = find_token(&world, &home, server.port(), given)?;
    let root = ground.root.clone();
    let put = Box::new(move |files: &_| ground::put(files, &root));
    let place = Place { net: Arc::clone(&world.net), server, token, put };
    tokio::select! {
        biased;
        () = world.signals.stop() => anyhow::bail!("stopped before the last step"),
        conformed = live::conform(&ground.scenario, place) => {
            conformed.with_context(|| format!("the server at http://{server} cannot be used"))
        }
    }
}

/// The line of a step that a real server does not obey.
fn stops_or_starts(scenario: &Scenario) -> Option<usize> {
    let step = scenario.steps.iter().find(|step| match step.action {
        Action::Stop(_) | Action::Start { .. } => true,
        Action::Call(_)
        | Action::Watch(_)
        | Action::Unwatch
        | Action::Confirm(_)
        | Action::Type(_)
        | Action::Raw(_)
        | Action::Disconnect
        | Action::Sleep(_)
        | Action::Files(_) => false,
    });
    step.map(|step| step.line)
}

/// What of the file a real server knows nothing of.
fn left_out(scenario: &Scenario) -> Vec<String> {
    let mut told = Vec::new();
    if !scenario.faults.is_empty() {
        told.push("faults: only a simulated world has them".to_owned());
    }
    if !scenario.expect.model_calls.is_empty() {
        told.push("`model_calls`: only the model host counts them".to_owned());
    }
    if scenario.models.iter().any(|model| model.after.is_some()) {
        told.push("`after` of models: they do not see the steps".to_owned());
    }
    if !scenario.programs.is_empty() {
        told.push("programs: the server runs those of this machine".to_owned());
    }
    if !scenario.mcp.is_empty() {
        told.push("MCP servers: the server has those that it is configured with".to_owned());
    }
    if !scenario.env.is_empty() || !scenario.serve.is_empty() {
        told.push("`env` and `serve`: they are up to who started the server".to_owned());
    }
    told
}
