//! The invariants: what holds in every run, whatever its file says. Each is a [`Check`] that hears of
//! everything observed, in order, looks around after every step, and once more at the end.
//! They only look: nothing here calls the server, takes virtual time or writes a line of the run.

mod among; // what agents ask of each other
mod answers; // one answer to each send
mod budget; // how long a model request is
mod bounds; // nothing is left, and no limit is exceeded
mod ceiling; // nobody beyond what is theirs
mod confirmations; // one decision for each question
mod conversation; // a model request as messages
mod decided; // answers go to whoever asked
mod demoted; // less than before ends what needs more
mod durable; // what was told stays
mod escapes; // no child without its parent
mod events; // streams tell everything once
mod families; // who was made below whom
mod handoffs; // nobody works for nobody
mod journal; // kept events as turns
mod once; // no effect twice
mod order; // one turn at a time, in order
mod programs; // what a program may reach
mod pairs; // each tool call with its result
mod promises; // what a server can promise
mod recorded; // no secret in a recording
mod reference; // a simple model of the pool
mod repeats; // no answer asked for again
mod roots; // nobody's root moves
mod saved; // sessions as their agents are
mod schema; // answers and events as published
mod sessions; // what was saved and loaded
mod shares; // no family has more than it was given
mod sound; // what the database alone must keep
mod spans; // tool calls from start to end
mod targets; // nobody asks what is not its to ask
mod told; // what clients asked for and were told
mod waiting; // nobody waits for ever
mod window; // no request too long, no secret anywhere

use std::collections::BTreeSet;
use std::fmt;

use secrecy::SecretString;

use super::checker::Survey;
use super::director::{Made, Sending};
use super::kept::Kept;
use super::log::Log;
use super::observed::Observation;
use super::server::ProcessState;
use super::transcript::Transcript;
use crate::disk::Disk;
use crate::scenario::{Invariant, Scenario};

/// What is known of a run at one moment, from outside.
#[derive(Debug)]
pub struct Seen<'a> {
    /// Which start of the server is the last.
    pub server_start: u64,
    pub server: ProcessState,
    /// Connections that the server has open, and how many of them it accepted.
    pub connections: usize,
    pub accepted: usize,
    /// Processes of programs that run.
    pub processes: usize,
    pub sendings: &'a [Sending],
    /// All calls of clients, in the order in which they were made.
    pub calls: &'a [Made],
    /// Bytes that clients sent as they are.
    pub raw: &'a [String],
    /// Ids of agents that were destroyed or renamed: another may have the id of one by now.
    pub destroyed: &'a BTreeSet<String>,
    /// Every token there was.
    pub tokens: Vec<SecretString>,
    pub transcript: &'a Transcript,
    pub log: &'a Log,
    pub disk: &'a Disk,
}

/// How a run ended.
#[derive(Debug)]
pub struct End<'a> {
    /// What the server at rest says; `None` where it could not be asked.
    pub survey: Option<&'a Survey>,
    /// Paths that a clean end does not leave behind; `None` where the server did not end.
    pub left_behind: Option<Vec<String>>,
}

/// One invariant. What it returns does not hold, a sentence each; the same sentence counts once.
pub trait Check {
    fn invariant(&self) -> Invariant;

    /// Whether a file may say that it does not hold there.
    fn standing(&self) -> Standing {
        Standing::Ignorable
    }

    /// Hears of something, in the order in which it happened.
    fn on(&mut self, _: &Observation, _: &Seen<'_>) -> Vec<String> {
        Vec::new()
    }

    /// Looks at what already must hold while the run goes on.
    fn after_step(&mut self, _: &Seen<'_>) -> Vec<String> {
        Vec::new()
    }

    /// Looks at what must hold once all has come to rest.
    fn at_end(&mut self, _: &Seen<'_>, _: &End<'_>) -> Vec<String> {
        Vec::new()
    }

    /// Compares with what the database keeps, once the server has ended.
    fn at_rest(&mut self, _: &Kept, _: &Seen<'_>, _: &End<'_>) -> Vec<String> {
        Vec::new()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    Ignorable,
    Always,
}

/// What does not hold, with the invariant it belongs to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    pub invariant: Invariant,
    pub standing: Standing,
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invariant {}: {}", self.invariant.name(), self.what)
    }
}

/// All invariants of one run, with what they have found.
pub struct Invariants {
    checks: Vec<Box<dyn Check>>,
    found: Vec<Violation>,
}

impl fmt::Debug for Invariants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Invariants").field("found", &self.found).finish_non_exhaustive()
    }
}

impl Invariants {
    pub fn new(scenario: &Scenario) -> Self {
        let checks: Vec<Box<dyn Check>> = vec![
            Box::new(pairs::Pairs),
            Box::new(answers::Answers::new(scenario)),
            Box::new(order::Order::default()),
            Box::new(once::Once::default()),
            Box::new(repeats::Repeats::default()),
            Box::new(durable::Durable::new(scenario)),
            Box::new(reference::Reference::new(scenario)),
            Box::new(events::Events::new(scenario)),
            Box::new(ceiling::Ceiling::new(scenario)),
            Box::new(window::Window::new(scenario)),
            Box::new(recorded::Recorded::new(scenario)),
            Box::new(bounds::Bounds::new(scenario)),
            Box::new(handoffs::Handoffs::new(scenario)),
            Box::new(waiting::Waiting::new(scenario)),
            Box::new(shares::Shares::new(scenario)),
            Box::new(demoted::Demoted::new(scenario)),
            Box::new(roots::Roots::new(scenario)),
            Box::new(saved::Saved::new(scenario)),
            Box::new(escapes::Escapes::new(scenario)),
            Box::new(confirmations::DecidedOnce),
            Box::new(confirmations::NothingPending),
            Box::new(confirmations::OneWinner),
            Box::new(confirmations::StaysDecided),
            Box::new(decided::Decided::default()),
            Box::new(targets::Targets::new(scenario)),
            Box::new(schema::Schema),
        ];
        Self { checks, found: Vec::new() }
    }

    pub fn on(&mut self, observation: &Observation, seen: &Seen<'_>) {
        self.each(|check| check.on(observation, seen));
    }

    pub fn after_step(&mut self, seen: &Seen<'_>) {
        self.each(|check| check.after_step(seen));
    }

    pub fn at_end(&mut self, seen: &Seen<'_>, end: &End<'_>) {
        self.each(|check| check.at_end(seen, end));
    }

    pub fn at_rest(&mut self, kept: &Kept, seen: &Seen<'_>, end: &End<'_>) {
        self.each(|check| check.at_rest(kept, seen, end));
    }

    pub fn has_found(&self, invariant: Invariant) -> bool {
        self.found.iter().any(|violation| violation.invariant == invariant)
    }

    /// What does not hold and may not be broken, in the order in which it was found.
    pub fn found(self, ignored: impl Fn(Invariant) -> bool) -> Vec<Violation> {
        let counts = |violation: &Violation| match violation.standing {
            Standing::Ignorable => !ignored(violation.invariant),
            Standing::Always => true,
        };
        self.found.into_iter().filter(counts).collect()
    }

    fn each(&mut self, mut look: impl FnMut(&mut dyn Check) -> Vec<String>) {
        for check in &mut self.checks {
            for what in look(check.as_mut()) {
                let (invariant, standing) = (check.invariant(), check.standing());
                let violation = Violation { invariant, standing, what };
                if !self.found.contains(&violation) {
                    self.found.push(violation);
                }
            }
        }
    }
}

/// What the tests of the invariants are made of.
#[cfg(test)]
#[path = "seen_tests.rs"]
mod seen_tests;
