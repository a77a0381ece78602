//! `nexus3-sim crash`: counts the durable points of a run, then crashes at each of them.

mod points; // which points
mod told; // what came of it

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use anyhow::Context;
use clap::Args;

use super::shard::Shard;
use super::{Verdict, output, read, trace};
use crate::play::{self, Played};
use crate::scenario::Scenario;
use told::{Found, Outcome, Sum};

/// Crashes the server at every durable point of each scenario, and judges the invariants.
///
/// A durable point is a write or sync of the server's disk, logs left out. The power goes at that very
/// operation; the server is started again, and the rest of the steps is played. What steps expect is
/// not judged then: calls get no answer when their server dies.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The scenario files
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Another seed than the file's
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// How many processes work at it
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=256))]
    jobs: u64,
    /// At most so many points of each file, spread over the run by the seed
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    sample: Option<u64>,
    /// This point alone, with its transcript
    #[arg(long, value_name = "N", conflicts_with_all = ["sample", "jobs"])]
    point: Option<u64>,
    /// Prints all that is traced, too
    #[arg(long, requires = "point")]
    trace: bool,
    /// The share of one process, as lines for the one that started it
    #[arg(long, value_name = "I/N", hide = true)]
    shard: Option<Shard>,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<Verdict> {
    let mut scenarios = Vec::new();
    for file in &arguments.files {
        match read(file) {
            Ok(scenario) => scenarios.push((file.as_path(), scenario)),
            Err(verdict) => return Ok(verdict),
        }
    }
    if let Some(point) = arguments.point {
        return Ok(one(arguments, &scenarios, point));
    }
    if let Some(shard) = arguments.shard {
        for (file, scenario) in &scenarios {
            let outcome = share(arguments, file, scenario, shard);
            output::line(&serde_json::to_string(&outcome).context("an outcome is JSON")?);
        }
        return Ok(Verdict::Good);
    }
    let started = Instant::now();
    let sum = if arguments.jobs == 1 {
        let mut sum = Sum::default();
        for (file, scenario) in &scenarios {
            let outcome = share(arguments, file, scenario, Shard::WHOLE);
            tell(file, &outcome);
            sum.add(&outcome);
        }
        sum
    } else {
        in_processes(arguments)?
    };
    output::line(&sum.to_string());
    output::note(&format!("{:.1} runs/s", sum.rate(started.elapsed())));
    Ok(if sum.violations == 0 { Verdict::Good } else { Verdict::Bad })
}

/// One point of each file, told in full.
fn one(arguments: &Arguments, scenarios: &[(&Path, Scenario)], point: u64) -> Verdict {
    let tracing = arguments.trace.then(trace::Tracing::default);
    let mut verdict = Verdict::Good;
    for (file, scenario) in scenarios {
        let seed = arguments.seed.unwrap_or(scenario.seed);
        let tracer = tracing.as_ref().map(trace::Tracing::tracer);
        let played = play::play_crashing(scenario, seed, Some(point), tracer);
        if let Some(tracing) = &tracing {
            output::text(&tracing.take());
        }
        output::text(&played.transcript);
        for failure in &played.failures {
            output::line(&format!("  {failure}"));
            verdict = Verdict::Bad;
        }
        let how = if played.failures.is_empty() { "ok" } else { "FAILED" };
        output::line(&format!("{how:6} {} seed {seed} point {point}", file.display()));
    }
    verdict
}

/// Counts the points of a file and crashes at those of a share.
fn share(arguments: &Arguments, file: &Path, scenario: &Scenario, shard: Shard) -> Outcome {
    let seed = arguments.seed.unwrap_or(scenario.seed);
    let counted = play::play_crashing(scenario, seed, None, None);
    let mut outcome = Outcome { points: counted.points, ..Outcome::default() };
    if shard.is_first() && !counted.failures.is_empty() {
        outcome.found.push(found(arguments, file, seed, None, &counted));
    }
    let points = points::chosen(counted.points, arguments.sample, seed);
    for point in points.into_iter().filter(|point| shard.has(*point)) {
        let played = play::play_crashing(scenario, seed, Some(point), None);
        outcome.crashes += 1;
        if !played.failures.is_empty() {
            outcome.found.push(found(arguments, file, seed, Some(point), &played));
        }
    }
    outcome
}

fn found(
    arguments: &Arguments,
    file: &Path,
    seed: u64,
    point: Option<u64>,
    played: &Played,
) -> Found {
    let file = file.display();
    let seed_given = arguments.seed.map(|seed| format!(" --seed {seed}")).unwrap_or_default();
    let again = match point {
        Some(point) => format!("nexus3-sim crash {file} --point {point}{seed_given}"),
        None => format!("nexus3-sim run {file} --trace{seed_given}"),
    };
    Found {
        point,
        seed,
        failures: played.failures.clone(),
        led_to_it: told::around_the_crash(&played.transcript),
        again,
    }
}

fn tell(file: &Path, outcome: &Outcome) {
    let verdict = if outcome.found.is_empty() { "ok" } else { "FAILED" };
    output::line(&format!("{verdict:6} {}: {outcome}", file.display()));
    for found in &outcome.found {
        output::line(&found.to_string());
    }
}

/// All files in as many processes as were asked for, each told as soon as all have tried it.
fn in_processes(arguments: &Arguments) -> anyhow::Result<Sum> {
    let mut children: Vec<Child> =
        (0..arguments.jobs).map(|index| child(arguments, index)).collect::<Result<_, _>>()?;
    let printed = children.iter_mut().map(|child| {
        let printed = child.stdout.take().expect("a child's output is piped");
        BufReader::new(printed).lines()
    });
    let mut printed: Vec<_> = printed.collect();
    let mut sum = Sum::default();
    for file in &arguments.files {
        let mut outcome = Outcome::default();
        for lines in &mut printed {
            let line = lines.next().context("a process ended early")??;
            outcome.add(serde_json::from_str(&line).context("a process printed something else")?);
        }
        outcome.found.sort_by_key(|found| found.point);
        tell(file, &outcome);
        sum.add(&outcome);
    }
    for mut child in children {
        let status = child.wait().context("a process was lost")?;
        anyhow::ensure!(status.success(), "a process failed: {status}");
    }
    Ok(sum)
}

fn child(arguments: &Arguments, index: u64) -> anyhow::Result<Child> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let mut command = Command::new(program);
    command.arg("crash").arg("--shard").arg(format!("{index}/{}", arguments.jobs));
    for (flag, value) in [("--seed", arguments.seed), ("--sample", arguments.sample)] {
        if let Some(value) = value {
            command.arg(flag).arg(value.to_string());
        }
    }
    command.args(&arguments.files).stdout(Stdio::piped());
    command.spawn().context("cannot start another process")
}
