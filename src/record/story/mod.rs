//! Notes to a scenario: what happened becomes what a file says, part by part.
//! Pure: it never waits, and time is what the notes say.

mod acts; // what clients did
mod answers; // what models said
mod config; // what the server was configured with
mod disk; // what was there, and who changed it
mod earlier; // agents that were there before
mod expected; // what answers a replay must give
mod order; // what happened after what
mod runs; // what programs did

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use self::acts::Acts;
use self::answers::Answers;
use self::disk::Disk;
use self::earlier::Earlier;
use self::order::Order;
use self::runs::Runs;
use super::Setting;
use super::hidden::{Hidden, PROJECT};
use super::note::{Call, Event, Meaning, Note, What};
use super::text::{Text, table};
use crate::provider::script::Time;

/// What a recording has come to.
#[derive(Debug)]
pub(super) struct Story {
    hidden: Hidden,
    flags: Vec<&'static str>,
    earlier: Earlier,
    config: Map<String, Value>,
    order: Order,
    acts: Acts,
    answers: Answers,
    runs: Runs,
    disk: Disk,
    /// How much it holds, roughly.
    pub(super) bytes: usize,
}

/// Whether there is more to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    GoesOn,
    /// The server has ended.
    Whole,
    /// More happened than was written down.
    Cut,
}

impl Story {
    pub(super) fn new(hidden: Hidden, setting: Setting, now: Timestamp) -> Self {
        let Setting { flags, config, found, .. } = setting;
        Self {
            config: hidden.members(&config::written(&config, found.as_ref())),
            hidden,
            flags,
            earlier: Earlier::default(),
            order: Order::default(),
            acts: Acts::default(),
            answers: Answers::default(),
            runs: Runs::default(),
            disk: Disk::new(now),
            bytes: 0,
        }
    }

    pub(super) fn on(&mut self, note: Note) {
        self.bytes = self.bytes.saturating_add(note.bytes());
        let Note { at, what } = note;
        let hidden = &self.hidden;
        match what {
            What::Begins => self.order = Order::default(),
            What::Earlier(agent, session) => self.earlier.was_there(&agent, session, hidden),
            What::CallBegan(number, call) => {
                self.comes_back_for(at, &call);
                let hidden = &self.hidden;
                let moment = self.order.begins(at);
                self.acts.call(number, moment, &call, &mut self.order, hidden);
            }
            What::CallEnded(number, end) => {
                let moment = self.order.ends(at);
                self.acts.ended(number, moment, &end, &self.order, hidden);
            }
            What::Refused(request) => {
                let moment = self.order.begins(at);
                self.acts.refused(moment, &request, hidden);
            }
            What::StreamOpened(number, stream) => {
                let moment = self.order.begins(at);
                self.acts.opened(number, moment, &stream, hidden);
            }
            What::StreamClosed(number) => {
                let moment = self.order.begins(at);
                self.acts.closed(number, moment);
            }
            What::Event(event) => self.happened(at, &event),
            What::Asked(number, agent, view) => {
                self.answers.asked(number, agent.as_str(), view, hidden);
            }
            What::Said(number, piece) => self.answers.said(number, piece),
            What::Answered(number, answer) => self.answers.answered(number, &answer, hidden),
            What::Unasked(number) => self.answers.unasked(number),
            What::ProgramStarted(number, words, now) => {
                self.runs.started(number, &words, now, hidden);
            }
            What::ProgramEnded(number, ran) => self.runs.ended(number, &ran, hidden),
            What::Stops => {
                let moment = self.order.begins(at);
                self.acts.stopped(moment, self.order.is_running());
            }
            What::File(sighting) => {
                let change = self.disk.saw((at, sighting), &mut self.runs, hidden);
                if let Some((since, path, file)) = change {
                    self.acts.changed(self.order.at(since), path, file);
                }
            }
        }
    }

    fn happened(&mut self, at: Duration, event: &Event) {
        let agent = event.agent.as_ref().filter(|_| matches!(event.meaning, Meaning::Restored));
        // A turn that asks it brings it back in a replay as well; else somebody has to.
        let is_asked_for = !self.order.is_running();
        let back = agent.and_then(|agent| self.earlier.comes_back(agent.as_str()));
        let before = back.filter(|_| is_asked_for).map(|name| (self.order.begins(at), name));
        self.order.event(at, event);
        if let Some((began, name)) = before {
            let ended = self.order.ends(at);
            self.acts.loaded((began, ended), &name);
        }
    }

    /// Somebody who is only named in a call is there for it.
    fn comes_back_for(&mut self, at: Duration, call: &Call) {
        let named = ["agent_id", "parent_agent_id"].map(|key| call.params.get(key)?.as_str());
        for name in named.into_iter().flatten() {
            if let Some(name) = self.earlier.comes_back(name) {
                let moments = (self.order.begins(at), self.order.ends(at));
                self.acts.loaded(moments, &name);
            }
        }
    }

    /// The whole file.
    pub(super) fn text(&self, state: State) -> String {
        let mut text = Text::default();
        text.comment(&format!(
            "Recorded by nexus3 {}. `nexus3-sim run FILE --bless` replays it, tells where it parts from \
             what happened, and else keeps how it went.",
            env!("CARGO_PKG_VERSION")
        ));
        match state {
            State::GoesOn => text.comment("The server was still running."),
            State::Whole => {}
            State::Cut => text.comment("It is cut here: more happened than a recording holds."),
        }
        if let Some(missing) = self.earlier.missing() {
            text.comment(&missing);
        }
        let (hidden, lasted) = (&self.hidden, self.order.last());
        text.value("schema", &1.into());
        text.value("about", &self.about().into());
        let minutes = (lasted.as_secs() * 2).div_ceil(60);
        let limit = Time(Duration::from_mins(minutes) + SPARE).to_string();
        text.value("limit", &limit.into());
        if !self.flags.is_empty() {
            text.value("serve", &self.flags.clone().into());
        }
        if hidden.cwd != PROJECT {
            text.value("cwd", &hidden.cwd.clone().into());
        }
        text.table("config", &table(&self.config));
        let mut files = self.disk.first.clone();
        files.extend(self.earlier.files());
        text.table("files", &table(&files));
        for model in self.answers.written(hidden) {
            text.item("model", &table(&model));
        }
        for program in self.runs.written() {
            text.item("program", &table(program));
        }
        for step in self.acts.steps(&self.order) {
            text.item("step", &table(&step));
        }
        if !self.config.contains_key("providers") {
            let reason = "the built-in model is in the server, where nobody sees who asks it";
            let ignored = json!({ "invariant": "ceiling", "reason": reason });
            text.table("expect", &table(&json!({ "ignore": [ignored] })));
        }
        // Whatever stands where nobody thought of it: names of agents and clients, for one.
        hidden.keys(&text.into_string())
    }

    fn about(&self) -> String {
        let count = |number: usize, what: &str| {
            let s = if number == 1 { "" } else { "s" };
            format!("{number} {what}{s}")
        };
        format!(
            "A recorded session: {} by clients, {} of models.",
            count(self.acts.len(), "step"),
            count(self.answers.len(), "answer"),
        )
    }
}

/// What a replay may take longer than the session: latencies of its network, and a calm end.
const SPARE: Duration = Duration::from_mins(30);

#[cfg(test)]
#[path = "story_tests.rs"]
mod tests;
