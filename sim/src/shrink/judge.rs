//! Whether a scenario still fails as the first one did: it is played, and what is violated must be the
//! same. A crash at a durable point moves along when what was done before it gets less.

use std::time::Duration;

use toml::Value;

use super::Judge;
use crate::play::Sought;
use crate::scenario::{Document, Scenario};
use crate::verdict::{self, Kind, Verdict};

/// Beyond what the first run took: something smaller that needs more time fails at something else.
const TIMES_THE_FIRST: u32 = 2;
const BEYOND_THE_FIRST: Duration = Duration::from_mins(1);
/// How long a server may take to come to rest while one is sought that never does. What still fails so
/// in the end is played once more with all the time there is.
const REST_WITHIN: Duration = Duration::from_mins(10);

/// What a smaller file must have in common with the first one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Aim {
    /// Invariants hold in every run, so that any violation of the same one is as good.
    Kind(Kind),
    /// Expectations can fail for no good reason once what they stand on is gone: at least the words of
    /// the first one must be the same.
    Words(String),
}

impl Aim {
    /// What is kept of a failure; `None` for a good run.
    pub fn of(verdict: &Verdict) -> Option<Self> {
        Some(match verdict.kinds.first()? {
            kind @ (Kind::Invariant(_) | Kind::Rest) => Self::Kind(*kind),
            Kind::Expectation | Kind::Panic => {
                Self::Words(without_place(verdict.failures.first()?).to_owned())
            }
        })
    }

    /// What a run is to show, of a file that took so long to show it first.
    fn sought(&self, first: Duration) -> Sought {
        let kind = match self {
            Self::Kind(kind) => *kind,
            Self::Words(_) => Kind::Expectation,
        };
        let within = match kind {
            Kind::Rest => REST_WITHIN,
            Kind::Invariant(_) | Kind::Expectation | Kind::Panic => {
                first * TIMES_THE_FIRST + BEYOND_THE_FIRST
            }
        };
        Sought { kind, within }
    }

    fn is_met(&self, verdict: &Verdict) -> bool {
        match self {
            Self::Kind(kind) => verdict.kinds.contains(kind),
            Self::Words(words) => {
                verdict.failures.iter().any(|failure| without_place(failure) == words)
            }
        }
    }
}

/// A step and its line have other numbers in a smaller file.
fn without_place(words: &str) -> &str {
    let placed = words.strip_prefix("step ").and_then(|rest| rest.split_once("): "));
    placed.map_or(words, |(_, what)| what)
}

/// Plays candidates, as many as it may.
#[derive(Debug)]
pub struct Runs {
    aim: Aim,
    /// What ends a run; `None` where only its own end does.
    sought: Option<Sought>,
    file_name: String,
    left: u64,
    pub played: u64,
    /// The last file that failed, with the durable points it has when nothing happens at one.
    last: Option<(Document, u64)>,
}

impl Runs {
    /// `first` is the virtual time that the first failing run took.
    pub fn new(aim: Aim, first: Duration, file_name: &str, most: u64) -> Self {
        let (sought, file_name) = (Some(aim.sought(first)), file_name.to_owned());
        Self { aim, sought, file_name, left: most, played: 0, last: None }
    }

    /// The same with as many runs as are left, each to its own end.
    #[must_use]
    pub fn patient(self) -> Self {
        Self { sought: None, last: None, ..self }
    }

    /// Whether a file fails as the first one did when it is played to its own end. It always does
    /// where runs were cut short by what they were to show.
    pub fn is_true_of(&mut self, document: &Document) -> bool {
        match self.sought {
            Some(Sought { kind: Kind::Rest, .. }) => {
                let verdict = verdict::of_text(&self.file_name, &document.text());
                self.played += 1;
                verdict.is_ok_and(|verdict| self.aim.is_met(&verdict))
            }
            Some(_) | None => true,
        }
    }

    /// Whether it stopped because it may play no more.
    pub fn is_spent(&self) -> bool {
        self.left == 0
    }

    /// `None` for what is no scenario, which costs no run.
    fn play(&mut self, document: &Document, sought: Option<Sought>) -> Option<Verdict> {
        if self.left == 0 {
            return None;
        }
        let scenario = Scenario::parse(&self.file_name, &document.text()).ok()?;
        self.left -= 1;
        self.played += 1;
        Some(match sought {
            Some(sought) => verdict::of_seeking(&scenario, sought),
            None => verdict::of(&scenario),
        })
    }

    fn meets(&mut self, document: &Document) -> bool {
        self.play(document, self.sought).is_some_and(|verdict| self.aim.is_met(&verdict))
    }

    /// The candidate with its crash as far from the end as that of the last file that failed.
    fn moved(&mut self, candidate: &Document) -> Option<Document> {
        let point = crash_point(candidate)?;
        let (last, points) = self.last.clone()?;
        if crash_point(&last) != Some(point) {
            return None;
        }
        let fewer = points.checked_sub(self.points(candidate)?)?;
        let moved = with_crash_point(candidate, point.checked_sub(fewer).filter(|to| *to > 0)?);
        (moved != *candidate).then_some(moved)
    }

    fn points(&mut self, document: &Document) -> Option<u64> {
        let mut undisturbed = document.clone();
        let mut faults = undisturbed.list("fault");
        faults.retain(|fault| point_of(fault).is_none());
        undisturbed.set_list("fault", faults);
        // To its end: all of its points count.
        self.play(&undisturbed, None)?.played.map(|played| played.points)
    }
}

impl Judge for Runs {
    fn fails(&mut self, candidate: &Document) -> Option<Document> {
        let mut failing = candidate.clone();
        if !self.meets(&failing) {
            failing = self.moved(candidate)?;
            if !self.meets(&failing) {
                return None;
            }
        }
        if crash_point(&failing).is_some() {
            self.last = self.points(&failing).map(|points| (failing.clone(), points));
        }
        Some(failing)
    }
}

const POINT: &str = "point:";

fn point_of(fault: &toml::Table) -> Option<u64> {
    fault.get("on")?.as_str()?.strip_prefix(POINT)?.parse().ok()
}

/// The durable point of the one fault that strikes at one.
fn crash_point(document: &Document) -> Option<u64> {
    let mut points = document.list("fault").into_iter().filter_map(|fault| point_of(&fault));
    points.next().filter(|_| points.next().is_none())
}

fn with_crash_point(document: &Document, point: u64) -> Document {
    let mut moved = document.clone();
    let mut faults = moved.list("fault");
    for fault in faults.iter_mut().filter(|fault| point_of(fault).is_some()) {
        fault.insert("on".to_owned(), Value::String(format!("{POINT}{point}")));
    }
    moved.set_list("fault", faults);
    moved
}
