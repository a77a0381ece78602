//! Memory: what a server holds idle, and what each idle agent adds. Sizes hold from machine to
//! machine, so these targets are absolute; the ratio to the yardstick stands beside them.

use std::time::Duration;

use anyhow::ensure;
use serde_json::json;

use super::{create_agents, destroy_agents, path};
use crate::Bench;
use crate::child::Target;
use crate::load::{Connection, get, knows, rpc};
use crate::measure::{Bound, Figures, Row, Unit};
use crate::yardstick::Yardstick;

const AGENTS: usize = 1000;
const SETTLE: Duration = Duration::from_millis(50);
const KIB: f64 = 1024.0;
const MIB: f64 = 1024.0 * KIB;

pub(crate) async fn per_agent(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    let mock = Yardstick::mock(1).start()?;
    let like = Yardstick::bareactor();
    let (mut sizes, mut given_back) = (Vec::new(), Vec::new());
    for _ in 0..bench.pairs {
        // Processes are new in every pair: memory that was given back once is cheap to get again.
        let server = bench.server(mock.port, &like).await?;
        let ours = agents_come_and_go(&server).await?;
        drop(server);
        let bareactor = like.start()?;
        let theirs = agents_come_and_go(&bareactor).await?;
        sizes.push((ours.0, theirs.0));
        given_back.push((ours.1, theirs.1));
    }
    Ok(vec![
        Row::new(
            "memory per idle agent, 1,000 agents",
            "bareactor",
            Unit::Bytes,
            &Figures::of(&sizes),
            Bound::OursAtMost(16.0 * KIB, Unit::Bytes),
        ),
        Row::new(
            "memory given back after destroy",
            "bareactor",
            Unit::Share,
            &Figures::of(&given_back),
            Bound::OursAtLeast(0.8, Unit::Share),
        )
        .without_ratio(),
    ])
}

/// Bytes for each agent, and the share of them that is back after all were destroyed.
async fn agents_come_and_go(target: &Target) -> anyhow::Result<(f64, f64)> {
    // The first call pays for what all later ones share.
    let first = create_agents(target, 1).await?;
    destroy_agents(target, &first).await?;
    let before = target.resident_bytes()?;
    let ids = create_agents(target, AGENTS).await?;
    let full = target.resident_bytes()?;
    destroy_agents(target, &ids).await?;
    // Tasks may end a moment after their agents are gone.
    tokio::time::sleep(SETTLE).await;
    let after = target.resident_bytes()?;
    ensure!(full > before, "agents take no memory: were they created?");
    Ok(((full - before) / AGENTS as f64, (full - after) / (full - before)))
}

pub(crate) async fn idle(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    let mock = Yardstick::mock(1).start()?;
    let like = Yardstick::bare(200);
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for _ in 0..bench.pairs {
        let server = bench.server(mock.port, &like).await?;
        let bare = like.start()?;
        answered(&bare).await?;
        let yardstick = bare.resident_bytes()?;
        before.push((server.resident_bytes()?, yardstick));
        if let Some(bytes) = after_first_count(&server).await? {
            after.push((bytes, yardstick));
        }
    }
    let idle = Row::new(
        "memory of the idle server",
        "bare",
        Unit::Bytes,
        &Figures::of(&before),
        Bound::OursAtMost(14.0 * MIB, Unit::Bytes),
    );
    let what = "memory after the first token count";
    let counted = if after.is_empty() {
        Row::not_yet(what, "bare", "≤ 80.0 MiB", "no get_tokens")
    } else {
        let bound = Bound::OursAtMost(80.0 * MIB, Unit::Bytes);
        Row::new(what, "bare", Unit::Bytes, &Figures::of(&after), bound)
    };
    Ok(vec![idle, counted])
}

async fn answered(target: &Target) -> anyhow::Result<()> {
    let request = get(target, "/healthz");
    let (status, _) = Connection::open(target).await?.exchange(&request).await?;
    ensure!(status == 200, "/healthz answers {status}");
    Ok(())
}

/// What the server holds once it has counted tokens; `None` where it cannot.
async fn after_first_count(server: &Target) -> anyhow::Result<Option<f64>> {
    let agent = path(&create_agents(server, 1).await?[0]);
    if !knows(server, &agent, "get_tokens").await? {
        return Ok(None);
    }
    let request = rpc(server, &agent, "get_tokens", &json!({}));
    Connection::open(server).await?.call(&request).await?;
    Ok(Some(server.resident_bytes()?))
}
