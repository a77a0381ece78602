//! Watches the models of a run: every request becomes a line and is counted, and one without an
//! answer in the script fails the run. It is told by the model host or, where the script is played
//! inside the server, reads in the log who asked.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use nexus3::provider::script::{After, Chunks, Entry, Times, View};

use super::observed::{Observation, Observed, Request};
use super::observer::Heard;
use super::parting::Parting;
use super::story::{Gives, Happening, How};
use super::transcript::{Transcript, shown};
use crate::hosts::now;
use crate::model::{Answered, Asked, Observer, Received};
use crate::scenario::MODEL;

#[derive(Debug)]
pub struct Watching {
    transcript: Transcript,
    observed: Observed,
    heard: Heard,
    entries: Vec<Entry>,
    /// Held to add to it or to look at it; nothing is awaited under it.
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    failures: Vec<String>,
    /// How often each agent has asked.
    calls: BTreeMap<String, u64>,
    /// How often each entry has answered, by its number.
    answers: BTreeMap<usize, u64>,
    parting: Parting,
}

/// A request that a script inside the server answered, as far as the log tells of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Logged {
    pub agent: String,
    pub model: String,
    pub messages: u64,
    pub digest: u64,
    /// `None` where no entry matched.
    pub entry: Option<usize>,
}

impl Watching {
    pub fn new(
        entries: &[Entry],
        (transcript, observed, heard): (Transcript, Observed, Heard),
    ) -> Self {
        let entries = entries.to_vec();
        Self { transcript, observed, heard, entries, state: Mutex::default() }
    }

    pub fn failures(&self) -> Vec<String> {
        self.state().failures.clone()
    }

    /// Where a replay parts from its recording.
    pub fn parted(&self) -> Option<String> {
        self.state().parting.first().map(str::to_owned)
    }

    /// Compares what a model is shown with what was recorded, where something was.
    fn compare(&self, agent: &str, received: &Received<'_>, answered: &Answered) {
        let is_recording = self.entries.iter().any(|entry| entry.shown.is_some());
        let view = received.wire.and_then(|wire| View::read(wire, received.body));
        let Some(view) = view.filter(|_| is_recording) else { return };
        let entry = match answered {
            Answered::Entry { number, .. } => Some((*number, &self.entries[*number - 1])),
            Answered::Unmatched | Answered::Unreadable => None,
        };
        self.state().parting.compare(agent, view, entry);
    }

    /// How often each agent has asked a model. Every request counts, also one that was answered with
    /// a fault.
    pub fn model_calls(&self) -> BTreeMap<String, u64> {
        self.state().calls.clone()
    }

    /// The entries that could have been used more often, by number. A server that is started again
    /// begins its script anew, so an entry counts as used by all starts together.
    pub fn left_over(&self) -> Vec<usize> {
        let state = self.state();
        let is_left = |(number, entry): &(usize, &Entry)| match entry.times {
            Times::Exactly(times) => state.answers.get(number).copied().unwrap_or(0) < times,
            Times::Always => false,
        };
        (1..).zip(&self.entries).filter(is_left).map(|(number, _)| number).collect()
    }

    /// A script inside the server was asked. What the model was shown stands in no log.
    pub fn logged(&self, logged: &Logged) {
        let Logged { agent, model, messages, digest, entry } = logged;
        let answered = match entry {
            Some(number) => {
                let entry = number.checked_sub(1).and_then(|index| self.entries.get(index));
                let fault = entry.and_then(|entry| entry.fault.clone());
                Answered::Entry { number: *number, fault }
            }
            None => Answered::Unmatched,
        };
        let view = format!("{messages} messages #{:08x}", digest >> 32);
        self.note(agent, model, &view, &answered);
    }

    fn note(&self, agent: &str, model: &str, view: &str, answered: &Answered) {
        let how = match answered {
            Answered::Entry { number, fault: None } => format!("entry {number}"),
            Answered::Entry { number, fault: Some(fault) } => {
                format!("entry {number} with {}", faults(fault))
            }
            Answered::Unmatched => "no entry matches".to_owned(),
            Answered::Unreadable => "the request is none".to_owned(),
        };
        let line = format!("{agent} asks {model}: {view} → {how}");
        self.transcript.tell(now(), MODEL, &line, || Happening::Asked {
            agent: agent.to_owned(),
            model: model.to_owned(),
            shown: view.to_owned(),
            answer: how.clone(),
            how: match answered {
                Answered::Entry { fault: None, .. } => How::Good,
                Answered::Entry { .. } | Answered::Unmatched | Answered::Unreadable => How::Bad,
            },
            gives: match answered {
                Answered::Entry { number, .. } => self.gives(*number),
                Answered::Unmatched | Answered::Unreadable => Gives::default(),
            },
        });
        let mut state = self.state();
        match answered {
            Answered::Entry { number, .. } => *state.answers.entry(*number).or_default() += 1,
            Answered::Unmatched | Answered::Unreadable => {
                let failure = format!("a request of {agent} has no answer in the script: {how}");
                state.failures.push(failure);
            }
        }
        match answered {
            Answered::Entry { .. } | Answered::Unmatched => {
                *state.calls.entry(agent.to_owned()).or_default() += 1;
            }
            Answered::Unreadable => {}
        }
    }

    /// What the entry of this number answers.
    fn gives(&self, number: usize) -> Gives {
        let entry = number.checked_sub(1).and_then(|index| self.entries.get(index));
        let Some(Entry { thinks, says, asks, .. }) = entry else { return Gives::default() };
        let text = |chunks: &Option<Chunks>| match chunks {
            None => String::new(),
            Some(Chunks::One(text)) => text.clone(),
            Some(Chunks::Many(pieces)) => pieces.concat(),
        };
        let asks = asks.iter().map(|ask| (ask.tool.clone(), ask.arguments())).collect();
        Gives { thinks: text(thinks), says: text(says), asks }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Watching {
    fn is_due(&self, after: &After) -> bool {
        self.heard.has_all(after)
    }

    fn waits(&self, agent: &str, after: &After) {
        let After { step, event, agent: of, nth } = after;
        let step = step.as_ref().map(|step| format!("step `{step}`"));
        let event = event.as_ref().map(|event| {
            let of = of.as_ref().map(|of| format!(" of {of}")).unwrap_or_default();
            format!("{event} {}{of}", nth.unwrap_or(1))
        });
        let awaited: Vec<String> = step.into_iter().chain(event).collect();
        let line = format!("the answer to {agent} waits for {}", awaited.join(" and "));
        self.transcript.note(now(), MODEL, &line);
    }

    fn asked(&self, asked: &Asked, received: &Received<'_>) {
        let Asked { agent, model, answered, .. } = asked;
        let view = asked.shown();
        let (messages, digest) = (view.messages, view.digest >> 32);
        let view = format!("{messages} messages #{digest:08x}, last {}", shown(&view.last));
        self.note(agent, model, &view, answered);
        self.compare(agent, received, answered);
        self.observed.add(Observation::Asked(Request {
            agent: agent.clone(),
            headers: received.headers.clone(),
            body: received.body.clone(),
        }));
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
