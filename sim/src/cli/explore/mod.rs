//! `nexus3-sim explore`: each seed draws what goes wrong around a scenario, and the invariants judge.

mod worker; // the share of one process
mod processes; // all processes, and what they tell
mod sum; // what came of all runs
mod written; // the same for programs
mod reported; // the same as a page

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use nexus3::provider::script::Time;

use super::report::Page;
use super::seeds::Seeds;
use super::shard::Shard;
use super::{Verdict, output};
use crate::explore::{Profile, Promised};
use sum::Sum;

/// Draws latencies, orders, faults, crash points and client timing from each seed, around the given
/// scenarios in turn, and judges the invariants.
///
/// Each seed is one run: of the first file, the second, and so on. With `--team` or without a file it
/// is that of a team that is made up from the seed. What fails is written as a scenario that fails
/// alone.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The scenario files, which the seeds take in turn
    files: Vec<PathBuf>,
    /// Takes a team that is made up from the seed in turn with the files
    #[arg(long)]
    team: bool,
    /// The seeds, each of them one run
    #[arg(long, value_name = "A..B")]
    seeds: Seeds,
    /// What goes wrong: quiet, network, provider, disk, crash, chaos, or a file.toml of your own
    #[arg(long, value_name = "P", default_value = "chaos")]
    profile: String,
    /// How many processes work at it
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=256))]
    jobs: u64,
    /// Stops after so much time, such as 10m
    #[arg(long, value_name = "TIME")]
    time: Option<Time>,
    /// Goes on after a violation
    #[arg(long)]
    keep_going: bool,
    /// Fails where a mark that the profile wants was never reached, however few the runs: those that
    /// the profile says are enough fail so without being told
    #[arg(long)]
    marks: bool,
    /// Where scenarios that fail are written
    #[arg(long, value_name = "DIR", default_value = "found")]
    found: PathBuf,
    /// Writes what came of it as JSON
    #[arg(long, value_name = "F")]
    json: Option<PathBuf>,
    /// Writes what came of it as XML in the form of `JUnit`
    #[arg(long, value_name = "F")]
    junit: Option<PathBuf>,
    /// Writes a page about it: what was reached, and the runs that failed
    #[arg(long, value_name = "F.html")]
    report: Option<PathBuf>,
    /// The share of one process, as lines for the one that started it
    #[arg(long, value_name = "I/N", hide = true)]
    shard: Option<Shard>,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<Verdict> {
    for file in &arguments.files {
        if let Err(verdict) = super::read(file) {
            return Ok(verdict);
        }
    }
    let profile = profile(&arguments.profile)?;
    if let Some(shard) = arguments.shard {
        return worker::work(arguments, &profile, shard).map(|()| Verdict::Good);
    }
    let page = arguments.report.as_deref().map(Page::begin).transpose()?;
    let started = Instant::now();
    let mut sum = Sum::default();
    processes::run(arguments, &mut sum, started)?;
    for found in sum.found() {
        output::line(&found.to_string());
    }
    for line in sum.census() {
        output::line(&line);
    }
    let unreached = arguments.unreached(&profile, &sum);
    for mark in &unreached {
        output::line(&format!("mark   {mark} was never reached"));
    }
    if let Some(path) = &arguments.json {
        let json = written::json(&profile.name, &sum, started.elapsed());
        write(path, &format!("{json:#}\n"))?;
    }
    if let Some(path) = &arguments.junit {
        write(path, &written::junit(&profile.name, &sum, started.elapsed()))?;
    }
    if let Some(page) = page {
        page.finish(reported::report(&profile, &sum))?;
    }
    output::line(&sum.to_string());
    output::note(&sum.rates(started.elapsed()));
    let is_good = sum.is_good() && unreached.is_empty();
    Ok(if is_good { Verdict::Good } else { Verdict::Bad })
}

/// What a seed is played around.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Source<'a> {
    File(&'a Path),
    /// Made up from the seed.
    Team,
}

impl Arguments {
    /// What a seed is for. A file that is given alone has all seeds, so that a file and a seed are
    /// enough to see a run again.
    fn source(&self, seed: u64) -> Source<'_> {
        let files = self.files.iter().map(|file| Source::File(file));
        let team = self.team || self.files.is_empty();
        let sources: Vec<Source<'_>> = files.chain(team.then_some(Source::Team)).collect();
        let index = seed % sources.len() as u64;
        sources[usize::try_from(index).unwrap_or_default()]
    }

    /// The marks that these runs had to reach and did not.
    fn unreached(&self, profile: &Profile, sum: &Sum) -> Vec<String> {
        let is_enough =
            |promised: Promised| promised.runs <= sum.runs && promised.scenarios <= sum.files.len();
        if self.marks || profile.promised.is_some_and(is_enough) {
            sum.unreached(&profile.reaches)
        } else {
            Vec::new()
        }
    }

    /// When no further run begins.
    fn deadline(&self, started: Instant) -> Option<Instant> {
        self.time.map(|time| started + time.0.max(Duration::from_millis(1)))
    }
}

fn profile(name: &str) -> anyhow::Result<Profile> {
    if !Profile::is_file(name) {
        return Ok(Profile::built_in(name)?);
    }
    let text = std::fs::read_to_string(name).with_context(|| format!("cannot read {name}"))?;
    Ok(Profile::parse(name, &text)?)
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
