//! One page about one or many runs: a lane for each client and agent, time downward, what went wrong
//! marked. Made of values, never of transcript lines; the same runs give the same bytes. Pure.

mod clock; // the server's time as virtual time
mod events; // what agents did
mod item; // what a lane shows
mod lanes; // who has a lane, and where
mod page; // all of it as HTML
mod tell; // a story as lanes and items

use serde::Serialize;

pub use item::{Fault, Item, Kind};
pub use lanes::Lane;
pub use page::html;

use crate::play::Played;
use crate::play::story::Story;

/// How much of one run is shown.
const ITEMS_MAX: usize = 20_000;
/// How many lines before a failure are shown.
const LINES_MAX: usize = 60;
/// How large a page may become; runs beyond it are told without what happened in them.
const PAGE_BYTES_MAX: usize = 40 * 1024 * 1024;

/// What a page is about.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    pub title: String,
    /// What came of all runs, a line each.
    pub summary: Vec<Row>,
    /// Those that failed first.
    pub runs: Vec<Run>,
    /// What was left out, and why; empty where nothing was.
    pub left_out: Vec<String>,
}

/// A line of the summary.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    pub group: String,
    pub name: String,
    pub told: String,
}

/// One run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Run {
    pub file: String,
    pub about: String,
    pub seed: u64,
    pub good: bool,
    /// What did not hold.
    pub failures: Vec<String>,
    /// The last lines before a failure.
    pub led_to_it: Vec<String>,
    /// The command that repeats it.
    pub again: String,
    /// Virtual time from start to end, in microseconds.
    pub lasted: u64,
    pub lanes: Vec<Lane>,
    /// By time.
    pub items: Vec<Item>,
    pub faults: Vec<Fault>,
    /// How many items are not shown.
    pub items_left_out: usize,
}

impl Run {
    /// A run that was played and recorded. `failures` are all of them, also those that are no part of
    /// how it was played.
    pub fn of(played: &Played, failures: &[String]) -> Self {
        let told = tell::told(played.story.as_ref().unwrap_or(&Story::default()));
        let lines: Vec<String> = played.transcript.lines().map(str::to_owned).collect();
        let first = lines.len().saturating_sub(LINES_MAX);
        let good = failures.is_empty();
        let led_to_it = if good { Vec::new() } else { lines[first..].to_vec() };
        let tell::Told { lanes, mut items, faults } = told;
        let items_left_out = items.len().saturating_sub(ITEMS_MAX);
        // The end is what a failure is about.
        items.drain(..items_left_out);
        Self {
            good,
            failures: failures.to_vec(),
            led_to_it,
            lasted: item::micros(played.virtual_time),
            lanes,
            items,
            faults,
            items_left_out,
            ..Self::default()
        }
    }

    /// The same without what happened in it.
    fn brief(self) -> Self {
        let items_left_out = self.items.len() + self.items_left_out;
        let (lanes, items, faults) = (Vec::new(), Vec::new(), Vec::new());
        Self { lanes, items, faults, items_left_out, ..self }
    }
}

impl Report {
    /// Those that failed first, each in full as long as there is room.
    #[must_use]
    pub fn bounded(self) -> Self {
        self.bounded_to(PAGE_BYTES_MAX)
    }

    fn bounded_to(mut self, bytes_max: usize) -> Self {
        self.runs.sort_by_key(|run| run.good);
        let (mut bytes, mut briefly) = (0, 0);
        for run in &mut self.runs {
            bytes += serde_json::to_string(run).map_or(0, |text| text.len());
            if bytes > bytes_max {
                *run = std::mem::take(run).brief();
                briefly += 1;
            }
        }
        if briefly > 0 {
            let megabytes = bytes_max / (1024 * 1024);
            let note =
                format!("{briefly} runs are told briefly: a page has {megabytes} MiB of runs");
            self.left_out.push(note);
        }
        self
    }
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod report_tests;
