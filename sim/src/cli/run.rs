//! `nexus3-sim run`: each scenario once, against its snapshot and the invariants.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;

use super::report::Page;
use super::seeds::Seeds;
use super::{Verdict, output, read, trace};
use crate::play::{self, Played, snapshot};
use crate::report::{self, Report};
use crate::scenario::{Judge, Scenario};

/// Runs each scenario once, against its snapshot and the invariants.
///
/// With a seed other than the file's the snapshot is not compared; expectations and invariants are.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The scenario files
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Another seed than the file's, or a range A..B of them
    #[arg(long, value_name = "N|A..B")]
    seed: Option<Seeds>,
    /// Keeps the transcripts of good runs as the snapshots to compare with
    #[arg(long, conflicts_with = "seed")]
    bless: bool,
    /// Prints the transcript, with all that was traced in between
    #[arg(long)]
    trace: bool,
    /// Writes a page about all runs: who did what when, and what went wrong
    #[arg(long, value_name = "F.html")]
    report: Option<PathBuf>,
    /// Where the snapshots are [default: beside the folder `scenarios`, else beside the file]
    #[arg(long, value_name = "DIR")]
    snapshots: Option<PathBuf>,
}

/// What all runs together came to.
#[derive(Debug, Default)]
struct Sum {
    runs: u32,
    failed: u32,
    turns: u64,
    virtual_time: Duration,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<Verdict> {
    let mut scenarios = Vec::new();
    for file in &arguments.files {
        match read(file) {
            Ok(scenario) => scenarios.push((file, scenario)),
            Err(verdict) => return Ok(verdict),
        }
    }
    let tracing = arguments.trace.then(trace::Tracing::default);
    let page = arguments.report.as_deref().map(Page::begin).transpose()?;
    let mut report = Report::default();
    let started = Instant::now();
    let mut sum = Sum::default();
    for (file, scenario) in &scenarios {
        let seeds = match &arguments.seed {
            Some(Seeds(seeds)) => seeds.clone(),
            None => scenario.seed..scenario.seed + 1,
        };
        for seed in seeds {
            let tracer = tracing.as_ref().map(trace::Tracing::tracer);
            let play = if page.is_some() { play::play_recorded } else { play::play_traced };
            let played = play(scenario, seed, tracer);
            if let Some(tracing) = &tracing {
                output::text(&tracing.take());
                output::text(&played.transcript);
            }
            let problems = problems(arguments, file, scenario, seed, &played)?;
            sum.add(&played, problems.is_empty());
            tell(arguments, file, seed, &played, &problems);
            if page.is_some() {
                report.runs.push(told(file, scenario, seed, &played, &problems));
            }
        }
    }
    if let Some(page) = page {
        report.title = sum.to_string();
        page.finish(report)?;
    }
    sum.tell(started.elapsed());
    Ok(if sum.failed == 0 { Verdict::Good } else { Verdict::Bad })
}

fn problems(
    arguments: &Arguments,
    file: &Path,
    scenario: &Scenario,
    seed: u64,
    played: &Played,
) -> anyhow::Result<Vec<String>> {
    let mut problems = played.failures.clone();
    if seed != scenario.seed {
        return Ok(problems);
    }
    let path = snapshot_path(file, arguments.snapshots.as_deref());
    let written = snapshot::written(&shown(file), &scenario.about, &played.transcript);
    if arguments.bless {
        if problems.is_empty() {
            let folder = path.parent().expect("a snapshot lies in a folder");
            std::fs::create_dir_all(folder)
                .and_then(|()| std::fs::write(&path, written))
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        return Ok(problems);
    }
    let kept = std::fs::read_to_string(&path).ok();
    match kept.as_deref().and_then(snapshot::transcript) {
        // It is kept to be played, not to be read: the invariants say whether it is good.
        None if scenario.judge == Judge::Invariants => {}
        None => problems.push(format!(
            "there is no snapshot {}: read the transcript with --trace, then keep it with --bless",
            path.display()
        )),
        Some(kept) => {
            if let Some(difference) = snapshot::difference(kept, &played.transcript) {
                problems.push(format!(
                    "the transcript differs from {} at {difference}\n  keep it with --bless if it is right",
                    path.display()
                ));
            }
        }
    }
    Ok(problems)
}

/// A run as the report has it.
fn told(
    file: &Path,
    scenario: &Scenario,
    seed: u64,
    played: &Played,
    problems: &[String],
) -> report::Run {
    report::Run {
        file: file.display().to_string(),
        about: scenario.about.clone(),
        seed,
        again: again(file, seed),
        ..report::Run::of(played, problems)
    }
}

/// The command that shows a run again.
fn again(file: &Path, seed: u64) -> String {
    format!("nexus3-sim run {} --seed {seed} --trace", file.display())
}

/// `scenarios/x.toml` has its snapshot in `snapshots/x.snap`, a file elsewhere in `snapshots/` beside
/// itself.
pub fn snapshot_path(file: &Path, snapshots: Option<&Path>) -> PathBuf {
    let stem = file.file_stem().unwrap_or_default();
    let name = Path::new(stem).with_added_extension("snap");
    let folder = file.parent().unwrap_or(Path::new(""));
    match snapshots {
        Some(snapshots) => snapshots.join(name),
        None if folder.ends_with("scenarios") => {
            folder.parent().unwrap_or(Path::new("")).join("snapshots").join(name)
        }
        None => folder.join("snapshots").join(name),
    }
}

/// The file as snapshots name it, the same wherever the command is run.
fn shown(file: &Path) -> String {
    let name = file.file_name().unwrap_or_default().display().to_string();
    match file.parent().and_then(Path::file_name) {
        Some(folder) => format!("{}/{name}", folder.display()),
        None => name,
    }
}

fn tell(arguments: &Arguments, file: &Path, seed: u64, played: &Played, problems: &[String]) {
    let verdict = if problems.is_empty() { "ok" } else { "FAILED" };
    let order = match &arguments.seed {
        Some(_) => format!(" order {:016x}", played.order),
        None => String::new(),
    };
    output::line(&format!("{verdict:6} {} seed {seed}{order}", file.display()));
    for problem in problems {
        output::line(&format!("  {problem}"));
    }
    if !problems.is_empty() && !arguments.trace {
        output::line(&format!("  look at it: {}", again(file, seed)));
    }
}

impl Sum {
    fn add(&mut self, played: &Played, good: bool) {
        self.runs += 1;
        self.failed += u32::from(!good);
        self.turns += played.turns;
        self.virtual_time += played.virtual_time;
    }

    fn tell(&self, wall: Duration) {
        let seconds = wall.as_secs_f64().max(0.001);
        #[expect(clippy::cast_precision_loss, reason = "a rate needs no 64 bits")]
        let turns = self.turns as f64 / seconds;
        output::line(&self.to_string());
        output::note(&format!(
            "{:.1} runs/s, {turns:.0} turns/s, {:.0} virtual seconds per second",
            f64::from(self.runs) / seconds,
            self.virtual_time.as_secs_f64() / seconds
        ));
    }
}

impl fmt::Display for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.runs - self.failed, self.failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snapshots_lie_beside_the_scenarios() {
        let path = |file: &str| snapshot_path(Path::new(file), None).display().to_string();
        assert_eq!(path("scenarios/x.toml"), "snapshots/x.snap");
        assert_eq!(path("/a/scenarios/x.y.toml"), "/a/snapshots/x.y.snap");
        assert_eq!(path("mine/x.toml"), "mine/snapshots/x.snap");
        assert_eq!(path("x.toml"), "snapshots/x.snap");
    }
}
