//! Scenarios with what a seed makes go wrong around them: from a file, a profile and a seed comes an
//! *effective scenario*, an ordinary file with its faults, delays and pauses written out, so that
//! whatever it finds can be found again with that file alone. It plays nothing but the file itself,
//! once, to learn where in it something can happen.

mod ground; // a scenario and what happens in it undisturbed
mod profile; // what may go wrong, as data
mod draw; // chance
mod faults; // what is drawn for hosts, links and the disk
mod models; // what is drawn for models
mod clients; // what is drawn for clients
mod team; // a workload that is made up

pub use ground::{Ground, GroundError};
pub use profile::{Profile, ProfileError, Promised};
pub use team::{NAME as TEAM, team};

use draw::Draw;

use crate::scenario::{Document, Judge, Scenario};

/// A scenario as a seed and a profile make it.
pub fn effective(ground: &Ground, profile: &Profile, seed: u64) -> Document {
    let mut document = ground.document.clone();
    let about = document.get("about").and_then(toml::Value::as_str).unwrap_or_default();
    document.set("about", format!("{about} ({}, seed {seed})", profile.name));
    document.set("seed", i64::try_from(seed).unwrap_or(i64::MAX));
    match profile.judge {
        Judge::Everything => {}
        Judge::Invariants => {
            document.set("judge", "invariants");
            without_expectations(&mut document);
        }
    }
    // A stream for each part: more of one shifts no other.
    let draw =
        |part: &str| Draw::new(seed, &format!("{part} of {} in {}", ground.name, profile.name));
    models::disturb(&mut document, &profile.model, &mut draw("models"));
    clients::disturb(&mut document, &profile.client, ground, &mut draw("clients"));
    faults::add(&mut document, &profile.fault, ground, &mut draw("faults"));
    if document.get("lane").is_some() || draw("lane").happens(profile.pipes) {
        over_pipes(&mut document);
    }
    document
}

/// Takes the network out, where nothing needs it.
fn over_pipes(document: &mut Document) {
    document.set("lane", "pipes");
    if Scenario::parse("over pipes", &document.text()).is_err() {
        document.remove("lane");
    }
}

/// Nobody asks for them any more, and what is read less is understood sooner.
fn without_expectations(document: &mut Document) {
    let mut steps = document.list("step");
    for step in &mut steps {
        // A step that is meant to be wrong says so with the error it expects.
        for key in ["expect", "expect_http", "expect_body"] {
            step.remove(key);
        }
    }
    document.set_list("step", steps);
    let ignored = document.get("expect").and_then(|expect| expect.get("ignore")).cloned();
    document.remove("expect");
    if let Some(ignored) = ignored {
        document.set("expect", toml::Table::from_iter([("ignore".to_owned(), ignored)]));
    }
}

#[cfg(test)]
#[path = "explore_tests.rs"]
mod tests;
