//! What came of the runs of a sweep, as it is told. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::verdict::Kind;

/// One run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    pub file: String,
    pub seed: u64,
    pub turns: u64,
    pub virtual_ms: u64,
    /// Stands for what it came to.
    pub end_state: u64,
    /// How often each mark was reached.
    pub marks: BTreeMap<String, u64>,
    /// The event at which it parts from the undisturbed run; `None` where it never does.
    pub parts_at: Option<String>,
    pub found: Option<Found>,
}

/// A run that is not as it must be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    pub file: String,
    pub seed: u64,
    pub kinds: BTreeSet<Kind>,
    pub failures: Vec<String>,
    pub led_to_it: Vec<String>,
    /// The scenario that fails alone.
    pub kept: PathBuf,
    /// The command that shows it again.
    pub again: String,
}

/// What came of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OfFile {
    pub runs: u64,
    pub violations: u64,
    /// How many runs came to each end state, with the first seed that did.
    #[serde(skip)]
    pub ends: BTreeMap<u64, (u64, u64)>,
    /// How many runs parted from the undisturbed one at each event.
    pub parts: BTreeMap<String, u64>,
}

/// What came of all runs.
#[derive(Clone, Debug, Default)]
pub struct Sum {
    pub runs: u64,
    turns: u64,
    virtual_ms: u64,
    pub files: BTreeMap<String, OfFile>,
    pub marks: BTreeMap<String, u64>,
    /// By file and seed: the order in which processes end says nothing.
    found: BTreeMap<(String, u64), Found>,
}

impl Sum {
    pub fn add(&mut self, run: Run) {
        self.runs += 1;
        self.turns += run.turns;
        self.virtual_ms += run.virtual_ms;
        for (mark, count) in run.marks {
            *self.marks.entry(mark).or_default() += count;
        }
        let file = self.files.entry(run.file.clone()).or_default();
        file.runs += 1;
        file.violations += u64::from(run.found.is_some());
        let (count, first) = file.ends.entry(run.end_state).or_insert((0, run.seed));
        *count += 1;
        *first = run.seed.min(*first);
        if let Some(event) = run.parts_at {
            *file.parts.entry(event).or_default() += 1;
        }
        if let Some(found) = run.found {
            self.found.insert((run.file, run.seed), found);
        }
    }

    pub fn is_good(&self) -> bool {
        self.found.is_empty()
    }

    pub fn found(&self) -> impl Iterator<Item = &Found> {
        self.found.values()
    }

    /// How many runs failed at what.
    pub fn kinds(&self) -> BTreeMap<Kind, u64> {
        let mut kinds = BTreeMap::new();
        for kind in self.found.values().flat_map(|found| &found.kinds) {
            *kinds.entry(*kind).or_default() += 1;
        }
        kinds
    }

    /// How many ends the runs of each file came to, and where most of them part from the undisturbed.
    pub fn census(&self) -> Vec<String> {
        let told = |(file, of): (&String, &OfFile)| {
            let most = of.parts.iter().max_by_key(|(_, count)| **count);
            let parts = most.map(|(event, count)| format!(", {count} part at {event}"));
            let (runs, ends) = (of.runs, of.ends.len());
            format!("ends   {file}: {runs} runs, {ends} end states{}", parts.unwrap_or_default())
        };
        self.files.iter().map(told).collect()
    }

    /// Which of these marks no run has reached.
    pub fn unreached(&self, wanted: &[String]) -> Vec<String> {
        wanted.iter().filter(|mark| !self.marks.contains_key(*mark)).cloned().collect()
    }

    fn end_states(&self) -> usize {
        self.files.values().map(|file| file.ends.len()).sum()
    }

    pub fn progress(&self, wall: Duration) -> String {
        format!(
            "{} runs, {} violations, {:.1} runs/s",
            self.runs,
            self.found.len(),
            self.rate(wall)
        )
    }

    pub fn rates(&self, wall: Duration) -> String {
        let seconds = wall.as_secs_f64().max(0.001);
        #[expect(clippy::cast_precision_loss, reason = "a rate needs no 64 bits")]
        let [turns, virtual_ms] = [self.turns, self.virtual_ms].map(|count| count as f64 / seconds);
        format!(
            "{:.1} runs/s, {turns:.0} turns/s, {:.0} virtual seconds per second",
            self.rate(wall),
            virtual_ms / 1000.0
        )
    }

    fn rate(&self, wall: Duration) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a rate needs no 64 bits")]
        let runs = self.runs as f64;
        runs / wall.as_secs_f64().max(0.001)
    }
}

impl fmt::Display for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { runs, found, files, .. } = self;
        write!(f, "{runs} runs, {} violations", found.len())?;
        for (kind, count) in self.kinds() {
            write!(f, ", {count} of {kind}")?;
        }
        write!(f, ", {} end states of {} scenarios", self.end_states(), files.len())
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FAILED {} seed {}", self.file, self.seed)?;
        for failure in &self.failures {
            write!(f, "\n    {failure}")?;
        }
        for line in &self.led_to_it {
            write!(f, "\n      {line}")?;
        }
        write!(f, "\n    again: {}", self.again)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Invariant;

    fn run(seed: u64, end_state: u64, found: Option<Found>) -> Run {
        Run {
            file: "x.toml".to_owned(),
            seed,
            turns: 3,
            virtual_ms: 500,
            end_state,
            marks: [("fault:crash".to_owned(), 2)].into(),
            parts_at: (seed > 1).then(|| "event 2, turn_queued of scout".to_owned()),
            found,
        }
    }

    fn found(seed: u64) -> Found {
        Found {
            file: "x.toml".to_owned(),
            seed,
            kinds: BTreeSet::from([Kind::Invariant(Invariant::Once), Kind::Rest]),
            failures: vec!["invariant once: twice".to_owned()],
            led_to_it: vec!["1.000s  server    listens".to_owned()],
            kept: PathBuf::from("found/x.toml"),
            again: "nexus3-sim run found/x.toml --trace".to_owned(),
        }
    }

    #[test]
    fn runs_add_up_in_whatever_order_they_end() {
        let runs = [run(1, 7, None), run(2, 8, Some(found(2))), run(3, 7, Some(found(3)))];
        let told = |runs: Vec<Run>| {
            let mut sum = Sum::default();
            for run in runs {
                sum.add(run);
            }
            let found: Vec<String> = sum.found().map(ToString::to_string).collect();
            (sum.to_string(), sum.census(), found.join("\n"))
        };
        let (line, census, failed) = told(runs.to_vec());
        assert_eq!(line, "3 runs, 2 violations, 2 of once, 2 of rest, 2 end states of 1 scenarios");
        assert_eq!(
            census,
            ["ends   x.toml: 3 runs, 2 end states, 2 part at event 2, turn_queued of scout"]
        );
        assert!(failed.starts_with(
            "FAILED x.toml seed 2\n    invariant once: twice\n      1.000s  server    listens\n    \
             again: nexus3-sim run found/x.toml --trace\nFAILED x.toml seed 3"
        ));
        assert_eq!(told(runs.into_iter().rev().collect()), (line, census, failed));
    }

    #[test]
    fn marks_that_no_run_reached_are_named() {
        let mut sum = Sum::default();
        sum.add(run(1, 7, None));
        let wanted = ["fault:crash", "retry:late"].map(str::to_owned);
        assert_eq!(sum.unreached(&wanted), ["retry:late"]);
    }

    #[test]
    fn a_run_reads_as_it_was_told() {
        let run = run(2, u64::MAX, Some(found(2)));
        let line = serde_json::to_string(&run).unwrap();
        assert_eq!(serde_json::from_str::<Run>(&line).unwrap(), run);
    }
}
