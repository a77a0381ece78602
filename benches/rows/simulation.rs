//! The server in virtual time: how much of it passes in a second, and how many turns.
//! Each lane runs on one thread, so the figures are per core.

use std::path::Path;
use std::time::Instant;

use anyhow::Context as _;
use nexus3_sim::load::{Carried, Lane, Load, carry};
use nexus3_sim::play;
use nexus3_sim::scenario::Scenario;

use crate::Bench;
use crate::measure::{Bound, Row, Spread, Unit, alone};

const SEED: u64 = 1;
/// What the loads do not have: a reader of the events that the server publishes and keeps.
const MISSING: &str = "nobody watches";

pub(crate) async fn quiet(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    let load = Load::quiet(3);
    let mut rows = Vec::new();
    for (lane, target) in [(Lane::Turmoil, 800.0), (Lane::Pipes, 50_000.0)] {
        let found = alone(bench, async || {
            let (carried, seconds) = timed(load, lane).await?;
            Ok(carried.virtual_time.as_secs_f64() / seconds)
        })
        .await?;
        let what = format!("simulation, quiet: virtual s per s, {lane:?}");
        let bound = Bound::OursAtLeast(target, Unit::PerSecond);
        rows.push(Row::absolute(what, Unit::PerSecond, found, bound));
    }
    Ok(rows)
}

pub(crate) async fn turns(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    // A few pairs are meant to be brief. Short conversations are cheaper, so they get no verdict.
    let is_brief = bench.pairs < 10;
    let (agents, turns) = if is_brief { (20, 20) } else { (100, 100) };
    let load = Load::busy(agents, turns, 20);
    let mut rows = Vec::new();
    let lanes = [(Lane::Turmoil, 1500.0), (Lane::Pipes, 3500.0), (Lane::Direct, 12_000.0)];
    for (lane, target) in lanes {
        let found = alone(bench, async || {
            let (carried, seconds) = timed(load, lane).await?;
            Ok(carried.turns as f64 / seconds)
        })
        .await?;
        let what = format!("simulation, {agents} × {turns} × 20: turns, {lane:?} ({MISSING})");
        let bound = Bound::OursAtLeast(target, Unit::PerSecond);
        let row = Row::absolute(what, Unit::PerSecond, found, bound);
        rows.push(if is_brief { row.but_not_yet("a brief run has a smaller load") } else { row });
    }
    Ok(rows)
}

/// Plays every scenario of the repository twice.
pub(crate) async fn scenarios() -> anyhow::Result<Vec<Row>> {
    let (count, seconds) = tokio::task::spawn_blocking(play_all).await??;
    let found = Spread::of(vec![seconds]);
    let bound = Bound::OursAtMost(60.0, Unit::Seconds);
    let what = format!("all of scenarios/ ({count}), twice, on one core");
    Ok(vec![Row::absolute(what, Unit::Seconds, found, bound)])
}

/// Carries a load and returns how long that took. On a thread of its own: a simulation has its own
/// runtimes, which cannot run inside another.
async fn timed(load: Load, lane: Lane) -> anyhow::Result<(Carried, f64)> {
    tokio::task::spawn_blocking(move || {
        let started = Instant::now();
        let carried = carry(&load, lane, SEED)?;
        Ok((carried, started.elapsed().as_secs_f64()))
    })
    .await?
}

fn play_all() -> anyhow::Result<(usize, f64)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    let mut count = 0;
    let mut seconds = 0.0;
    for entry in std::fs::read_dir(&folder).context("cannot list the scenarios")? {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let text = std::fs::read_to_string(&path)?;
        let name = path.display().to_string();
        let scenario = Scenario::parse(&name, &text)
            .map_err(|problems| anyhow::anyhow!("{name} has {} problems", problems.len()))?;
        let started = Instant::now();
        for _ in 0..2 {
            let played = play::play(&scenario, scenario.seed);
            anyhow::ensure!(played.failures.is_empty(), "{name}: {}", played.failures.join("; "));
        }
        seconds += started.elapsed().as_secs_f64();
        count += 1;
    }
    Ok((count, seconds))
}
