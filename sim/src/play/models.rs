//! Watches the models of a run: every request becomes a line, and one without an answer in the
//! script fails the run.

use std::sync::{Mutex, PoisonError};

use super::observed::{Observation, Observed, Request};
use super::transcript::{Transcript, shown};
use crate::hosts::now;
use crate::model::{Answered, Asked, Observer, Received};
use crate::scenario::MODEL;

#[derive(Debug)]
pub struct Watching {
    transcript: Transcript,
    observed: Observed,
    /// Held to add one line; nothing is awaited under it.
    failures: Mutex<Vec<String>>,
}

impl Watching {
    pub fn new(transcript: Transcript, observed: Observed) -> Self {
        Self { transcript, observed, failures: Mutex::default() }
    }

    pub fn failures(&self) -> Vec<String> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Observer for Watching {
    fn asked(&self, asked: &Asked, received: &Received<'_>) {
        let Asked { number, agent, model, shown: view, answered } = asked;
        let how = match answered {
            Answered::Entry { number, fault: None } => format!("entry {number}"),
            Answered::Entry { number, fault: Some(fault) } => {
                format!("entry {number} with {}", faults(fault))
            }
            Answered::Unmatched => "no entry matches".to_owned(),
            Answered::Unreadable => "the request is none".to_owned(),
        };
        let line = format!(
            "{agent} asks {model}: {} messages #{:08x}, last {} → {how}",
            view.messages,
            view.digest >> 32,
            shown(&view.last)
        );
        self.transcript.note(now(), MODEL, &line);
        self.observed.add(Observation::Asked(Request {
            agent: agent.clone(),
            headers: received.headers.clone(),
            body: received.body.clone(),
        }));
        if asked.is_failure() {
            let failure = format!("request {number} of {agent} has no answer in the script: {how}");
            self.failures.lock().unwrap_or_else(PoisonError::into_inner).push(failure);
        }
    }
}

/// The faults of an entry that are set, as the file writes them.
fn faults(fault: &nexus3::provider::script::Fault) -> String {
    let mut set = serde_json::to_value(fault).expect("a fault has only string keys");
    if let Some(members) = set.as_object_mut() {
        members.retain(|_, value| !value.is_null() && *value != false);
    }
    shown(&set)
}
