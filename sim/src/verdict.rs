//! Whether a scenario fails, and at what: one question for everybody who searches for failures or
//! makes them small. It plays the scenario and nothing else; what to do about it is for others.

use std::any::Any;
use std::collections::BTreeSet;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::{Deserialize, Serialize};

use crate::play::{self, Played, Sought};
use crate::scenario::{Invariant, Problem, Scenario};

/// What a failure is about. Two failing scenarios fail alike if they share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Invariant(Invariant),
    /// Something that the file expects of a step or of its end.
    Expectation,
    /// The server does not come to rest once nothing disturbs it, or does not end.
    Rest,
    /// The server, or a part of the simulation, has panicked.
    Panic,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Invariant(invariant) => invariant.name(),
            Self::Expectation => "expectation",
            Self::Rest => "rest",
            Self::Panic => "panic",
        })
    }
}

/// How one run of a scenario is judged.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// What the failures are about; empty for a good run.
    pub kinds: BTreeSet<Kind>,
    /// A sentence each.
    pub failures: Vec<String>,
    /// How the run went; `None` where a panic ended it.
    pub played: Option<Played>,
}

impl Verdict {
    pub fn is_good(&self) -> bool {
        self.kinds.is_empty()
    }

    /// Whether it fails at something that another one fails at.
    pub fn fails_like(&self, kinds: &BTreeSet<Kind>) -> bool {
        self.kinds.intersection(kinds).next().is_some()
    }
}

/// Plays a scenario with its own seed and judges it as its file says. One at a time in a process.
pub fn of(scenario: &Scenario) -> Verdict {
    judged(|| play::play(scenario, scenario.seed))
}

/// The same, and what happened as values.
pub fn of_recorded(scenario: &Scenario) -> Verdict {
    judged(|| play::play_recorded(scenario, scenario.seed, None))
}

/// The same, no further than it takes to see what is sought.
pub fn of_seeking(scenario: &Scenario, sought: Sought) -> Verdict {
    judged(|| play::play_seeking(scenario, scenario.seed, sought))
}

fn judged(play: impl FnOnce() -> Played) -> Verdict {
    match catch_unwind(AssertUnwindSafe(play)) {
        Ok(played) => Verdict {
            kinds: played.kinds.clone(),
            failures: played.failures.clone(),
            played: Some(played),
        },
        Err(panic) => Verdict {
            kinds: BTreeSet::from([Kind::Panic]),
            failures: vec![format!("a panic: {}", words(panic.as_ref()))],
            played: None,
        },
    }
}

/// The same for a text, which may be no scenario at all.
pub fn of_text(file_name: &str, text: &str) -> Result<Verdict, Vec<Problem>> {
    Scenario::parse(file_name, text).map(|scenario| of(&scenario))
}

fn words(panic: &(dyn Any + Send)) -> &str {
    let whole = panic.downcast_ref::<String>().map(String::as_str);
    whole.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without words")
}
