//! The server in virtual time: how much of it passes in a second, and how many turns.
//! Each lane runs on one thread, so the figures are per core.

use std::path::Path;
use std::time::Instant;

use anyhow::Context as _;
use nexus3_sim::load::{Carried, Lane, Load, carry};
use nexus3_sim::play::{self, Played};
use nexus3_sim::scenario::Scenario;

use crate::Bench;
use crate::measure::{Bound, Row, Spread, Unit, alone};

const SEED: u64 = 1;
/// Of each run of the crash sweep.
const CRASHES: u64 = 3;

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
        let what = format!("simulation, {agents} × {turns} × 20: turns, {lane:?}");
        let bound = Bound::OursAtLeast(target, Unit::PerSecond);
        let row = Row::absolute(what, Unit::PerSecond, found, bound);
        rows.push(if is_brief { row.but_not_yet("a brief run has a smaller load") } else { row });
    }
    Ok(rows)
}

/// Runs of a hundred turns, each with three crashes at durable points that no other run has, and with
/// all invariants.
pub(crate) async fn crashes(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    // Runs are alike, so that a few say as much as many.
    let runs = if bench.pairs < 10 { 3 } else { 30 };
    let found = alone(bench, async || {
        let seconds = tokio::task::spawn_blocking(move || crash(runs)).await??;
        Ok(runs as f64 / seconds)
    })
    .await?;
    // The target is that of a sweep on two cores, which works in a process for each.
    let bound = Bound::OursAtLeast(6.0, Unit::PerSecond);
    let what = "crash sweep, 100 turns with 3 crashes: runs on one core of two".to_owned();
    Ok(vec![Row::absolute(what, Unit::PerSecond, found, bound)])
}

fn crash(runs: u64) -> anyhow::Result<f64> {
    let points = judged(&hundred_turns(&[]))?.points;
    let started = Instant::now();
    for run in 0..runs {
        // Spread over the whole run, each time elsewhere.
        let at = |crash| (points * (crash * runs + run)) / (CRASHES * runs) + 1;
        let crashes: Vec<u64> = (0..CRASHES).map(at).collect();
        judged(&hundred_turns(&crashes))?;
    }
    Ok(started.elapsed().as_secs_f64())
}

fn judged(text: &str) -> anyhow::Result<Played> {
    let scenario = Scenario::parse("hundred turns", text)
        .map_err(|problems| anyhow::anyhow!("{}", problems[0]))?;
    let played = play::play(&scenario, SEED);
    anyhow::ensure!(played.failures.is_empty(), "{}", played.failures.join("; "));
    Ok(played)
}

/// Four agents that have 25 turns each, one after the other, over pipes.
fn hundred_turns(crashes: &[u64]) -> String {
    let head = "schema = 1\nabout = \"A hundred turns.\"\nlane = \"pipes\"\n\
                judge = \"invariants\"\nlimit = \"1h\"\n\
                [[model]]\nsays = [\"It \", \"is \", \"done.\"]\ntimes = \"always\"\n";
    let agents = (1..=4).map(|agent| {
        format!(
            "[[step]]\ncall = \"create_agent\"\nparams = {{ agent_id = \"a{agent}\" }}\n\
             [[step]]\nrepeat = 25\ncall = \"send\"\nagent = \"a{agent}\"\n\
             params = {{ content = \"Do it\" }}\n"
        )
    });
    let crashes = crashes.iter().map(|point| {
        format!("[[fault]]\non = \"point:{point}\"\nkind = \"crash\"\nfor = \"100ms\"\n")
    });
    std::iter::once(head.to_owned()).chain(agents).chain(crashes).collect()
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
