//! `nexus3-sim model`: a scenario's model as a real HTTP server, for whoever tests another client.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use clap::Args;
use nexus3::provider::script::Script;
use nexus3::world::real;

use super::ground::Ground;
use super::{Verdict, output};
use crate::machine::PROJECT;
use crate::model::{Answered, Asked, ModelHost, Observer, Received, Scripted};

/// Serves a scenario's model on loopback, as OpenAI's and as Anthropic's API, until Ctrl-C.
///
/// Prints the configuration of a server that asks it. Entries are used as in a run: in order, for the
/// agents they match; a request that none matches gets HTTP 500.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    nexus3-sim model hello.toml --port 9001 --root work > work.json\n  \
    cd work && nexus3 serve --config ../work.json    a server that asks it")]
pub struct Arguments {
    /// The scenario file
    file: PathBuf,
    /// The port to listen on; 0 takes any that is free
    #[arg(long, value_name = "N")]
    port: u16,
    /// The directory that stands for /project [default: a temporary one]
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<Verdict> {
    let ground = match Ground::prepare(&arguments.file, arguments.root.as_deref())? {
        Ok(ground) => ground,
        Err(verdict) => return Ok(verdict),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(serve(&ground, arguments.port))?;
    Ok(Verdict::Good)
}

async fn serve(ground: &Ground, port: u16) -> anyhow::Result<()> {
    let script = Script::new(ground.scenario.models.clone()).context("the model has no script")?;
    let script = Arc::new(Scripted::new(script, ground.scenario.aliases()));
    let world = real::world().context("this machine cannot be used")?;
    let address = (Ipv4Addr::LOCALHOST, port).into();
    let host = ModelHost::bind(world.net.as_ref(), address, script, Arc::new(Told)).await;
    let host = host.with_context(|| format!("cannot listen on port {port}; try another"))?;
    let url = format!("http://{}", host.local_addr()?);
    output::line(&format!("{:#}", ground.scenario.config_json(&url)));
    let root = ground.root.display();
    output::note(&format!("{url} answers; {root} stands for {PROJECT}; Ctrl-C ends it"));
    tokio::select! {
        biased;
        () = world.signals.stop() => {}
        () = host.run() => {}
    }
    Ok(())
}

/// Tells who asks, a line each.
struct Told;

impl Observer for Told {
    fn asked(&self, asked: &Asked, _: &Received<'_>) {
        let Asked { agent, model, answered, .. } = asked;
        let how = match answered {
            Answered::Entry { number, fault: None } => format!("entry {number}"),
            Answered::Entry { number, fault: Some(_) } => format!("entry {number} with its fault"),
            Answered::Unmatched => "no entry matches: HTTP 500".to_owned(),
            Answered::Unreadable => "the request is none to a model".to_owned(),
        };
        let who = if agent.is_empty() { "somebody" } else { agent };
        output::note(&format!("{who} asks {model}: {:?} → {how}", asked.shown().last));
    }
}
