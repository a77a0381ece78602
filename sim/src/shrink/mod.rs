//! Makes a failing scenario small: takes away and simplifies whatever it fails without, until nothing
//! more can go. It knows files as trees; whether one still fails is for a [`Judge`] to say.
//! No chance is involved: the same file comes to the same end.

mod judge; // whether a smaller one still fails
mod place; // a position in the tree of a file
mod simpler; // values with less to read

#[cfg(test)]
mod shrink_tests;

use std::collections::BTreeSet;

use toml::Value;

pub use judge::{Aim, Runs};
use place::Place;

use crate::digest::Digest;
use crate::scenario::Document;

/// Lists whose entries go together when they are about the same agent or client.
const ENTRIES: [&str; 4] = ["step", "model", "program", "fault"];
/// Keys whose values name agents and clients.
const NAMES: [&str; 3] = ["agent_id", "agent", "client"];
/// What a file cannot do without, or what says nothing about its length.
const FIXED: [&str; 4] = ["schema", "about", "seed", LANE];
const LANE: &str = "lane";

/// Whether a file says itself how it is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lane {
    Own,
    /// It is played over pipes as long as it is made small.
    Lent,
}

/// Says whether a file still fails as the first one did.
pub trait Judge {
    /// The file as it fails, perhaps with something moved to where it now belongs.
    fn fails(&mut self, candidate: &Document) -> Option<Document>;
}

/// The smallest file that was found.
pub fn shrink(document: Document, judge: &mut impl Judge) -> Document {
    let mut shrinking = Shrinking { best: document, judge, tried: BTreeSet::new() };
    shrinking.faults();
    let lane = shrinking.over_pipes();
    while shrinking.faults()
        | shrinking.names()
        | shrinking.lists()
        | shrinking.members()
        | shrinking.values()
    {}
    match lane {
        Lane::Own => {}
        Lane::Lent => shrinking.give_back_lane(),
    }
    shrinking.best
}

/// How much there is to read in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    pub lines: usize,
    /// Of these, lines of steps and faults.
    pub steps_and_faults: usize,
}

impl Size {
    pub fn of(document: &Document) -> Self {
        let mut played = Document::default();
        for key in ["step", "fault"] {
            played.set_list(key, document.list(key));
        }
        Self { lines: lines(document), steps_and_faults: lines(&played) }
    }
}

fn lines(document: &Document) -> usize {
    document.text().lines().filter(|line| !line.trim().is_empty()).count()
}

struct Shrinking<'a, J> {
    /// The smallest one so far.
    best: Document,
    judge: &'a mut J,
    /// Digests of what was tried: later rounds come to the same candidates again.
    tried: BTreeSet<u64>,
}

impl<J: Judge> Shrinking<'_, J> {
    fn attempt(&mut self, candidate: &Document) -> bool {
        let mut digest = Digest::default();
        digest.add(candidate.text().as_bytes());
        if !self.tried.insert(digest.number()) {
            return false;
        }
        let Some(failing) = self.judge.fails(candidate) else { return false };
        self.best = failing;
        true
    }

    /// Without all that is about one agent or client.
    fn names(&mut self) -> bool {
        let root = self.best.root();
        let names: BTreeSet<String> = place::all(root)
            .into_iter()
            .filter(|place| place.key().is_some_and(|key| NAMES.contains(&key)))
            .filter_map(|place| place.get(root)?.as_str().map(str::to_owned))
            .collect();
        let mut changed = false;
        for name in names {
            let mut candidate = self.best.clone();
            for key in ENTRIES {
                let mut entries = candidate.list(key);
                entries.retain(|entry| !entry.values().any(|value| says(value, &name)));
                candidate.set_list(key, entries);
            }
            changed |= self.attempt(&candidate);
        }
        changed
    }

    /// Without some faults, before anything else: most of what was drawn around a scenario has no part in
    /// what it found, and what is not disturbed is played much sooner.
    fn faults(&mut self) -> bool {
        self.entries(&Place::outermost("fault"))
    }

    /// Over pipes, where that fails as well: time in which nothing happens costs next to nothing there.
    fn over_pipes(&mut self) -> Lane {
        let mut candidate = self.best.clone();
        candidate.set(LANE, "pipes");
        let is_own = self.best.get(LANE).is_some();
        if !is_own && self.attempt(&candidate) { Lane::Lent } else { Lane::Own }
    }

    /// As it was played at first, if it still fails so.
    fn give_back_lane(&mut self) {
        let mut candidate = self.best.clone();
        candidate.remove(LANE);
        self.attempt(&candidate);
    }

    fn lists(&mut self) -> bool {
        self.each(Self::entries)
    }

    /// Without some entries of a list: all of it, then halves, then smaller pieces, then one by one.
    fn entries(&mut self, place: &Place) -> bool {
        let length = |document: &Document| {
            place.get(document.root()).and_then(Value::as_array).map_or(0, Vec::len)
        };
        let mut piece = length(&self.best);
        let mut changed = false;
        while piece > 0 {
            let mut from = 0;
            while from < length(&self.best) {
                let mut candidate = self.best.clone();
                let items = place.get_mut(candidate.root_mut()).and_then(Value::as_array_mut);
                let items = items.expect("it was just found there");
                let to = items.len().min(from + piece);
                items.drain(from..to);
                if self.attempt(&candidate) {
                    changed = true;
                } else {
                    from = to;
                }
            }
            piece /= 2;
        }
        changed
    }

    /// Without each member of each table.
    fn members(&mut self) -> bool {
        self.each(|shrinking, place| {
            let mut candidate = shrinking.best.clone();
            place.remove_member(candidate.root_mut()) && shrinking.attempt(&candidate)
        })
    }

    /// With simpler texts, times and numbers.
    fn values(&mut self) -> bool {
        self.each(|shrinking, place| {
            let mut changed = false;
            while let Some(value) = place.get(shrinking.best.root()) {
                let simpler = simpler::than(value, place);
                let found = simpler.into_iter().any(|value| {
                    let mut candidate = shrinking.best.clone();
                    let old = place.get_mut(candidate.root_mut());
                    *old.expect("it was just found there") = value;
                    shrinking.attempt(&candidate)
                });
                if !found {
                    break;
                }
                changed = true;
            }
            changed
        })
    }

    /// Does something at every place of the tree, large parts before their own parts. What is new at a
    /// place after a change is seen to as well.
    fn each(&mut self, mut act: impl FnMut(&mut Self, &Place) -> bool) -> bool {
        let mut changed = false;
        let mut index = 0;
        while let Some(place) = place::all(self.best.root()).into_iter().nth(index) {
            if !place.is_fixed(&FIXED) && act(self, &place) {
                changed = true;
                // What went may have made room for another at this place.
                let still = place::all(self.best.root());
                index += usize::from(still.get(index) == Some(&place));
            } else {
                index += 1;
            }
        }
        changed
    }
}

/// Whether a text stands anywhere in a value.
fn says(value: &Value, text: &str) -> bool {
    match value {
        Value::String(found) => found == text,
        Value::Array(items) => items.iter().any(|item| says(item, text)),
        Value::Table(members) => members.values().any(|member| says(member, text)),
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) | Value::Datetime(_) => false,
    }
}
