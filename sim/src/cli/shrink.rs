//! `nexus3-sim shrink`: the smallest scenario that still fails.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::Args;

use super::{Verdict, output, read};
use crate::scenario::Document;
use crate::shrink::{self, Aim, Judge, Runs, Size};
use crate::verdict;

/// More virtual time than a run takes.
const LONGEST: Duration = Duration::from_hours(24);
/// What can happen at a durable point.
const AT_POINT: [&str; 2] = ["power_loss", "crash"];

/// Makes a failing scenario small: prints the smallest one that still violates the same.
///
/// Steps, faults, agents, model entries, files, texts and times go or get simpler as long as it fails.
/// The same file and seed come to the same end. An invariant that is violated is kept; an expectation
/// that is not met may be unmet for another reason in the end, so look at what is left.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The scenario file
    file: PathBuf,
    /// Another seed than the file's
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// The durable point at which `crash` found it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    point: Option<u64>,
    /// At most so many runs
    #[arg(long, value_name = "N", default_value_t = 5000, value_parser = clap::value_parser!(u64).range(1..))]
    runs: u64,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<Verdict> {
    let file = arguments.file.display().to_string();
    if let Err(verdict) = read(&arguments.file) {
        return Ok(verdict);
    }
    let Some(First { document, aim, virtual_time }) = first_failing(arguments, &file)? else {
        output::note(&format!("{file} does not fail so: there is nothing to make small"));
        return Ok(Verdict::Usage);
    };
    let before = Size::of(&document);
    let runs = Runs::new(aim, virtual_time, &file, arguments.runs);
    let mut judge = Told { runs, size: before };
    let mut small = shrink::shrink(document.clone(), &mut judge);
    if !judge.runs.is_true_of(&small) {
        output::note("it comes to rest after all: once more, with more patience");
        judge = Told { runs: judge.runs.patient(), size: before };
        small = shrink::shrink(document, &mut judge);
    }
    let after = Size::of(&small);
    output::text(&small.text());
    let spent = if judge.runs.is_spent() { "; more runs may make it smaller" } else { "" };
    output::note(&format!(
        "{} lines of steps and faults, before {}; {} lines in all, before {}; {} runs{spent}",
        after.steps_and_faults,
        before.steps_and_faults,
        after.lines,
        before.lines,
        judge.runs.played
    ));
    Ok(Verdict::Good)
}

/// The file as it was asked for, and what is to be kept of its failure.
struct First {
    document: Document,
    aim: Aim,
    virtual_time: Duration,
}

/// `None` where it does not fail.
fn first_failing(arguments: &Arguments, file: &str) -> anyhow::Result<Option<First>> {
    let text = std::fs::read_to_string(file).with_context(|| format!("{file} cannot be read"))?;
    let mut document = Document::parse(&text)?;
    if let Some(seed) = arguments.seed {
        document.set("seed", i64::try_from(seed).context("a file has no room for this seed")?);
    }
    let documents = match arguments.point {
        None => vec![document],
        Some(point) => AT_POINT.iter().map(|kind| struck(&document, kind, point)).collect(),
    };
    for document in documents {
        let verdict = match verdict::of_text(file, &document.text()) {
            Ok(verdict) => verdict,
            Err(problems) => anyhow::bail!("{}", problems[0]),
        };
        if let Some(aim) = Aim::of(&verdict) {
            for failure in &verdict.failures {
                output::note(&format!("  {failure}"));
            }
            // A panic that ended it says nothing of its time.
            let virtual_time = verdict.played.map_or(LONGEST, |played| played.virtual_time);
            return Ok(Some(First { document, aim, virtual_time }));
        }
    }
    Ok(None)
}

/// A file with a crash of its server at a durable point, judged as `crash` does.
fn struck(document: &Document, kind: &str, point: u64) -> Document {
    let mut struck = document.clone();
    let mut faults = struck.list("fault");
    let mut fault = toml::Table::new();
    for (key, value) in
        [("on", format!("point:{point}").as_str()), ("kind", kind), ("for", "500ms")]
    {
        fault.insert(key.to_owned(), value.into());
    }
    faults.push(fault);
    struck.set_list("fault", faults);
    struck.set("judge", "invariants");
    struck
}

/// Tells how far it has come.
struct Told {
    runs: Runs,
    /// The smallest so far.
    size: Size,
}

impl Judge for Told {
    fn fails(&mut self, candidate: &Document) -> Option<Document> {
        let failing = self.runs.fails(candidate)?;
        let size = Size::of(&failing);
        if size.lines < self.size.lines {
            self.size = size;
            output::note(&format!("{:>6} lines after {} runs", size.lines, self.runs.played));
        }
        Some(failing)
    }
}
