//! What came of the crashes of a file, as it is told. Pure.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How many lines of a transcript stand before a crash and from there on.
const LINES_BEFORE: usize = 12;
const LINES_AFTER: usize = 24;
/// How a transcript tells of a crash at a point.
const CRASH: &str = "fault     point ";

/// What came of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    pub points: u64,
    /// How many of them were tried.
    pub crashes: u64,
    pub found: Vec<Found>,
}

/// A run that is not as it must be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// None for the run without a crash.
    pub point: Option<u64>,
    pub seed: u64,
    pub failures: Vec<String>,
    pub led_to_it: Vec<String>,
    /// The command that shows it again.
    pub again: String,
}

/// What came of all files.
#[derive(Clone, Debug, Default)]
pub struct Sum {
    points: u64,
    crashes: u64,
    files: u64,
    pub violations: u64,
}

impl Outcome {
    /// Takes in what another process found of the same file.
    pub fn add(&mut self, other: Self) {
        self.points = self.points.max(other.points);
        self.crashes += other.crashes;
        self.found.extend(other.found);
    }

    fn violations(&self) -> u64 {
        self.found.iter().map(|found| found.failures.len() as u64).sum()
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_points(f, self.points, self.crashes)?;
        write!(f, ", {} violations", self.violations())
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.point {
            Some(point) => write!(f, "  point {point}, seed {}:", self.seed)?,
            None => write!(f, "  without a crash, seed {}:", self.seed)?,
        }
        for failure in &self.failures {
            write!(f, "\n    {failure}")?;
        }
        for line in &self.led_to_it {
            write!(f, "\n      {line}")?;
        }
        write!(f, "\n    again: {}", self.again)
    }
}

impl Sum {
    pub fn add(&mut self, outcome: &Outcome) {
        self.points += outcome.points;
        self.crashes += outcome.crashes;
        self.files += 1;
        self.violations += outcome.violations();
    }

    pub fn rate(&self, wall: Duration) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a rate needs no 64 bits")]
        let runs = (self.crashes + self.files) as f64;
        runs / wall.as_secs_f64().max(0.001)
    }
}

impl fmt::Display for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_points(f, self.points, self.crashes)?;
        write!(f, ", {} violations", self.violations)
    }
}

fn write_points(f: &mut fmt::Formatter<'_>, points: u64, crashes: u64) -> fmt::Result {
    if points == crashes {
        write!(f, "{points} points")
    } else {
        write!(f, "{crashes} of {points} points")
    }
}

/// The lines of a transcript around its crash, or its last ones.
pub fn around_the_crash(transcript: &str) -> Vec<String> {
    let lines: Vec<&str> = transcript.lines().collect();
    let crash = lines.iter().position(|line| line.contains(CRASH)).unwrap_or(lines.len());
    let first = crash.saturating_sub(LINES_BEFORE);
    let end = lines.len().min(crash + LINES_AFTER);
    lines[first..end].iter().map(|line| (*line).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_of_several_processes_are_one() {
        let found = |point| Found {
            point: Some(point),
            seed: 7,
            failures: vec!["invariant once: twice".to_owned()],
            led_to_it: vec!["1.000s  server    listens".to_owned()],
            again: format!("nexus3-sim crash x.toml --point {point}"),
        };
        let mut outcome = Outcome { points: 3, crashes: 2, found: vec![found(1)] };
        outcome.add(Outcome { points: 3, crashes: 1, found: vec![found(2)] });
        assert_eq!(outcome.to_string(), "3 points, 2 violations");
        let text = "  point 2, seed 7:\n    invariant once: twice\n      \
                    1.000s  server    listens\n    again: nexus3-sim crash x.toml --point 2";
        assert_eq!(found(2).to_string(), text);
        let mut sum = Sum::default();
        sum.add(&outcome);
        sum.add(&Outcome { points: 10, crashes: 4, found: Vec::new() });
        assert_eq!(sum.to_string(), "7 of 13 points, 2 violations");
    }

    #[test]
    fn the_lines_around_a_crash_are_told() {
        let before = "something\n".repeat(50);
        let crash = format!("   1.000s  {CRASH}3: the process is killed\n");
        let told = around_the_crash(&format!("{before}{crash}{before}"));
        assert_eq!(told.len(), LINES_BEFORE + LINES_AFTER);
        assert_eq!(told[LINES_BEFORE], crash.trim_end());
        assert_eq!(around_the_crash("one\ntwo\n"), ["one", "two"]);
    }
}
