//! Measures the server against the yardsticks and prints one table, a row for every target.
//! A benchmark is no test: whatever the verdicts, it ends with 0 unless something broke.
//!
//! `cargo bench --bench targets -- [--brief] [--only NAME] [--pairs N]`

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a benchmark measures the machine"
)]
#![expect(clippy::cast_precision_loss, reason = "counts become figures of three digits")]

mod child; // the processes that are measured
mod load; // connections, requests, rates and waits
mod measure; // pairs, medians, verdicts
mod rows; // one section for each target
mod table; // what is printed
mod yardstick; // the small programs to compare with

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};

use crate::measure::Row;

/// Compares the server with its yardsticks.
#[derive(Debug, Parser)]
#[command(name = "targets")]
struct Options {
    /// Three short pairs: shows that everything runs, not how fast it is.
    #[arg(long)]
    brief: bool,
    /// Only the sections whose name contains this.
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// How many pairs of slices are compared.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pairs: Option<u16>,
    /// Measures yardsticks in the server's place: every ratio must come out near 1.
    #[arg(long = "self", hide = true)]
    stand_in: bool,
    /// Cargo adds this to the arguments of every benchmark.
    #[arg(long, hide = true)]
    bench: bool,
}

/// What every section needs to know about this run.
#[derive(Debug)]
pub(crate) struct Bench {
    pub(crate) pairs: usize,
    /// How long each side of a pair is loaded where a rate is measured.
    pub(crate) slice: Duration,
    /// How many calls each side of a pair makes where a wait is measured.
    pub(crate) calls: usize,
    /// Yardsticks take the server's place.
    pub(crate) stand_in: bool,
}

fn main() -> ExitCode {
    start().unwrap_or_else(|error| {
        // Nothing is left to do where even this cannot be written.
        let _ = writeln!(std::io::stderr(), "error: {error:#}");
        ExitCode::FAILURE
    })
}

fn start() -> anyhow::Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.get(1).is_some_and(|first| first == yardstick::WORD) {
        yardstick::run(&arguments[1..])?;
        return Ok(ExitCode::SUCCESS);
    }
    let options = Options::parse();
    // One thread for the load leaves the other cores to the side that is measured.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let (mut end, mut interrupt) =
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        // Leaving through an error drops the guards, and these end the children.
        tokio::select! {
            biased;
            _ = end.recv() => anyhow::bail!("asked to stop"),
            _ = interrupt.recv() => anyhow::bail!("interrupted"),
            code = run(&options) => code,
        }
    })
}

async fn run(options: &Options) -> anyhow::Result<ExitCode> {
    let names = chosen(options.only.as_deref())?;
    let bench = if options.brief {
        Bench { pairs: 3, slice: Duration::from_millis(60), calls: 5, stand_in: options.stand_in }
    } else {
        Bench {
            pairs: 15,
            slice: Duration::from_millis(300),
            calls: 20,
            stand_in: options.stand_in,
        }
    };
    let bench = Bench { pairs: options.pairs.map_or(bench.pairs, usize::from), ..bench };
    let mut table = Vec::new();
    let mut broken = false;
    for name in names {
        writeln!(std::io::stderr(), "measuring {name}")?;
        match rows::measure(name, &bench).await {
            Ok(rows) => table.extend(rows),
            Err(error) => {
                broken = true;
                table.push(Row::broken(name, &error));
            }
        }
    }
    table::print(&table, &bench).context("cannot print the table")?;
    Ok(if broken { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn chosen(only: Option<&str>) -> anyhow::Result<Vec<&'static str>> {
    let names: Vec<&str> = rows::NAMES
        .into_iter()
        .filter(|name| only.is_none_or(|part| name.contains(part)))
        .collect();
    ensure!(!names.is_empty(), "no such section; there are {}", rows::NAMES.join(", "));
    Ok(names)
}
