//! The runs of one process: each told in a line as soon as it is over.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context;

use super::sum::{Found, Run};
use super::{Arguments, Source, output};
use crate::cli::shard::Shard;
use crate::explore::{self, Ground, Profile};
use crate::scenario::Document;
use crate::verdict;

/// How many lines of a transcript are told of a run that failed.
const LINES_MAX: usize = 40;

pub fn work(arguments: &Arguments, profile: &Profile, shard: Shard) -> anyhow::Result<()> {
    let deadline = arguments.deadline(Instant::now());
    let mut grounds = BTreeMap::new();
    let seeds = arguments.seeds.0.clone();
    for seed in seeds.filter(|seed| shard.has(*seed)) {
        if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            return Ok(());
        }
        let run = match arguments.source(seed) {
            Source::File(file) => {
                if !grounds.contains_key(file) {
                    grounds.insert(file, survey(file)?);
                }
                let shown = file.display().to_string();
                one(arguments, profile, &shown, &grounds[file], seed)?
            }
            Source::Team => {
                let team = explore::team(seed).text();
                let ground = Ground::survey(explore::TEAM, &team).context("a team is wrong")?;
                one(arguments, profile, explore::TEAM, &ground, seed)?
            }
        };
        output::line(&serde_json::to_string(&run).context("a run is JSON")?);
    }
    Ok(())
}

fn survey(file: &Path) -> anyhow::Result<Ground> {
    let text = std::fs::read_to_string(file);
    let text = text.with_context(|| format!("cannot read {}", file.display()))?;
    Ground::survey(&stem(file), &text).with_context(|| format!("{} is wrong", file.display()))
}

fn stem(file: &Path) -> String {
    file.file_stem().unwrap_or_default().display().to_string()
}

/// One run, and its scenario where that fails.
fn one(
    arguments: &Arguments,
    profile: &Profile,
    shown: &str,
    ground: &Ground,
    seed: u64,
) -> anyhow::Result<Run> {
    let effective = explore::effective(ground, profile, seed);
    let text = effective.text();
    let verdict = verdict::of_text(&ground.name, &text).map_err(|problems| {
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        anyhow::anyhow!("seed {seed} makes no scenario:\n{}\n{text}", problems.join("\n"))
    })?;
    let found = if verdict.is_good() {
        None
    } else {
        let scenario = kept(arguments, profile, ground, seed, &effective)?;
        let lines = verdict.played.as_ref().map(|played| last_lines(&played.transcript));
        Some(Found {
            file: shown.to_owned(),
            seed,
            kinds: verdict.kinds.clone(),
            failures: verdict.failures.clone(),
            led_to_it: lines.unwrap_or_default(),
            again: format!("nexus3-sim run {} --trace", scenario.display()),
            kept: scenario,
        })
    };
    let played = verdict.played.as_ref();
    Ok(Run {
        file: shown.to_owned(),
        seed,
        turns: played.map_or(0, |played| played.turns),
        virtual_ms: played
            .map_or(0, |played| u64::try_from(played.virtual_time.as_millis()).unwrap_or(u64::MAX)),
        end_state: played.map_or(0, |played| played.end_state),
        marks: played.map(|played| played.marks.clone()).unwrap_or_default(),
        parts_at: played.and_then(|played| ground.parts_at(&played.journal)),
        found,
    })
}

/// Writes a scenario that fails, to fail alone.
fn kept(
    arguments: &Arguments,
    profile: &Profile,
    ground: &Ground,
    seed: u64,
    effective: &Document,
) -> anyhow::Result<PathBuf> {
    let profile = Path::new(&profile.name).file_stem().unwrap_or_default().display().to_string();
    let path = arguments.found.join(format!("{}-{profile}-{seed}.toml", ground.name));
    std::fs::create_dir_all(&arguments.found)
        .and_then(|()| std::fs::write(&path, effective.text()))
        .with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

fn last_lines(transcript: &str) -> Vec<String> {
    let lines: Vec<&str> = transcript.lines().collect();
    let first = lines.len().saturating_sub(LINES_MAX);
    lines[first..].iter().map(|line| (*line).to_owned()).collect()
}
