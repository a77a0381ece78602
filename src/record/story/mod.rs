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
mod servers; // what MCP servers did
mod trigger; // what a step waits for

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use self::acts::Acts;
use self::answers::{Answers, Patience};
use self::disk::{Change, Disk, When};
use self::earlier::Earlier;
use self::order::{Moment, Order};
use self::runs::Runs;
use self::servers::Servers;
use super::Setting;
use super::form::File;
use super::hidden::{Hidden, PROJECT};
use super::note::{Call, Conversation, Event, Found, LeftOut, Note, Ran, Sighting, What};
use super::text::{Text, table};
use crate::provider::script::{After, Time};

/// What a recording has come to.
#[derive(Debug)]
pub(super) struct Story {
    hidden: Hidden,
    flags: Vec<&'static str>,
    earlier: Earlier,
    left_out: BTreeMap<LeftOut, u64>,
    /// Calls that a disk failed, which is sound in a replay.
    failed_by_disk: u64,
    config: Map<String, Value>,
    order: Order,
    acts: Acts,
    answers: Answers,
    runs: Runs,
    servers: Servers,
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
        let found = found.as_ref();
        let providers = config.providers.values().chain(found.map(|(_, provider)| provider));
        Self {
            config: hidden.members(&config::written(&config, found)),
            hidden,
            flags,
            earlier: Earlier::new(now),
            left_out: BTreeMap::new(),
            failed_by_disk: 0,
            order: Order::default(),
            acts: Acts::default(),
            answers: Answers::new(Patience::of(&providers)),
            runs: Runs::default(),
            servers: Servers::default(),
            disk: Disk::new(now),
            bytes: 0,
        }
    }

    /// Takes in a note. Returns how much of the room for the contents of files it did not need.
    pub(super) fn on(&mut self, note: Note) -> usize {
        self.bytes = self.bytes.saturating_add(note.bytes());
        self.take(note);
        let again = self.disk.again();
        self.bytes = self.bytes.saturating_sub(again.bytes);
        again.content
    }

    fn take(&mut self, note: Note) {
        self.learn_keys(&note.what);
        let Note { at, what } = note;
        let hidden = &self.hidden;
        match what {
            What::Begins(newest) => {
                self.order = Order::default();
                self.acts.begins(newest);
            }
            What::Earlier(agent, earlier) => {
                let earlier = earlier.as_ref().map(|(earlier, _)| earlier.as_ref());
                self.earlier.was_there(&agent, earlier, hidden);
            }
            What::CallBegan(number, call) => {
                self.earlier_named_in(&call);
                let hidden = &self.hidden;
                let moment = self.order.begins(at);
                self.acts.call(number, moment, &call, &mut self.order, hidden);
            }
            What::CallEnded(number, end) => {
                let moment = self.order.ends(at);
                self.failed_by_disk += u64::from(end.is_of_the_disk());
                self.acts.ended(number, moment, &end, &self.order, hidden);
            }
            What::Refused(request) => {
                let moment = self.order.begins(at);
                self.acts.refused(moment, &request, hidden);
            }
            What::LeftOut(what) => *self.left_out.entry(what).or_default() += 1,
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
                let moment = self.order.passes(at);
                self.answers.asked(number, moment, (agent.as_str(), view), hidden);
            }
            What::Said(number, piece) => self.answers.said(number, self.order.passes(at), piece),
            What::Answered(number, answer) => {
                self.answers.answered(number, self.order.passes(at), &answer, hidden);
            }
            What::Unasked(number) => self.answers.unasked(number),
            What::ProgramStarted(number, words, now) => {
                self.runs.started(number, &words, now, hidden);
            }
            What::ProgramEnded(number, ran) => self.runs.ended(number, &ran, hidden),
            What::Mcp(server, what) => self.conversed(at, &server, &what),
            What::Stops => {
                let moment = self.order.begins(at);
                self.acts.stopped(moment, self.order.is_running());
            }
            What::File(sighting) => {
                let change = self.disk.saw(at, sighting, &mut self.runs, hidden);
                self.changed(change);
            }
            What::Listed(listing) => {
                let changes = self.disk.listed(at, listing, &mut self.runs, hidden);
                self.changed(changes);
            }
        }
    }

    /// What comes from outside may bring keys that nobody told the server of.
    fn learn_keys(&mut self, what: &What) {
        match what {
            What::CallBegan(_, call) => self.learn_keys_of(call.params.values()),
            What::Mcp(_, Conversation::Hears(message)) => self.learn_keys_of([message]),
            What::File(Sighting { found: Found::Content(content), .. }) => {
                self.hidden.learn_from(&String::from_utf8_lossy(content));
            }
            What::ProgramEnded(_, Ran { stdout, stderr, .. }) => {
                for (head, _, tail) in [stdout.parts(), stderr.parts()] {
                    self.hidden.learn_from(&String::from_utf8_lossy(&head));
                    self.hidden.learn_from(&String::from_utf8_lossy(&tail));
                }
            }
            What::Earlier(_, Some((earlier, _))) => {
                let said = serde_json::to_value(&earlier.session.messages).unwrap_or_default();
                self.learn_keys_of([&said]);
            }
            What::Begins(_)
            | What::Earlier(_, None)
            | What::CallEnded(..)
            | What::Refused(_)
            | What::LeftOut(_)
            | What::StreamOpened(..)
            | What::StreamClosed(_)
            | What::Event(_)
            | What::Asked(..)
            | What::Said(..)
            | What::Answered(..)
            | What::Unasked(_)
            | What::ProgramStarted(..)
            | What::File(_)
            | What::Listed(_)
            | What::Mcp(..)
            | What::Stops => {}
        }
    }

    fn learn_keys_of<'v>(&mut self, values: impl IntoIterator<Item = &'v Value>) {
        for value in values {
            match value {
                Value::String(text) => self.hidden.learn_from(text),
                Value::Array(items) => self.learn_keys_of(items),
                Value::Object(members) => {
                    for (name, value) in members {
                        // As it would be written down.
                        if let Value::String(text) = value {
                            self.hidden.learn_from(&format!("{name}: {text}"));
                        }
                        self.learn_keys_of([value]);
                    }
                }
                Value::Null | Value::Bool(_) | Value::Number(_) => {}
            }
        }
    }

    fn changed(&mut self, changes: impl IntoIterator<Item = Change>) {
        for Change { when, path, file } in changes {
            let moment = match when {
                When::At(time, last) => self.order.around(time, last),
                When::Between(last, missed) => self.order.between(last, missed),
            };
            self.acts.changed(moment, path, file);
        }
    }

    fn conversed(&mut self, at: Duration, server: &str, what: &Conversation) {
        if let Conversation::Begins { secrets, .. } = what {
            self.hidden.learn(secrets);
        }
        if self.servers.said(at, server, what) {
            let moments = (self.order.begins(at), self.order.ends(at));
            self.acts.connected(moments, server);
        }
    }

    fn happened(&mut self, at: Duration, event: &Event) {
        if let Some(agent) = &event.agent {
            self.earlier.needs(agent.as_str());
        }
        self.order.event(at, event);
    }

    /// Somebody who is only named in a call is there for it.
    fn earlier_named_in(&mut self, call: &Call) {
        let named = NAMING.iter().filter_map(|key| call.params.get(*key)?.as_str());
        for name in named.chain(call.agent.as_deref()) {
            self.earlier.needs(name);
        }
        if let Some(request) = call.params.get("request_id").and_then(Value::as_str) {
            self.earlier.names(request);
        }
    }

    /// What stands at the top of the file, for people.
    fn comment(&self, text: &mut Text, state: State) {
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
        let missing = self.earlier.missing().into_iter().chain(self.servers.missing());
        let unlike = self.unlike().into_iter().chain(self.acts.unlike());
        let unlike = unlike.chain(self.answers.unlike()).chain(self.runs.unlike());
        let unlike = unlike.chain(self.disk.unlike());
        for missing in missing.chain(self.refusals()).chain(unlike) {
            text.comment(&missing);
        }
    }

    /// The whole file.
    pub(super) fn text(&self, state: State) -> String {
        let mut text = Text::default();
        self.comment(&mut text, state);
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
        // The project is there anyhow.
        let is_given = |path: &String, file: &File| path == PROJECT && *file == File::PLAIN_DIR;
        files.retain(|path, file| !is_given(path, file) && !self.earlier.is_session(path));
        files.extend(self.earlier.directories());
        files.extend(self.earlier.session_files());
        text.table("files", &table(&files));
        for agent in self.earlier.written_agents() {
            text.item("agent", &table(&agent));
        }
        let ends = self.acts.ends();
        let after = |asked, came| self.after(asked, came, &ends);
        let models: Vec<_> = self.answers.written(hidden, after).collect();
        for model in &models {
            text.item("model", &table(model));
        }
        if state != State::Whole && self.order.is_running() {
            text.item("model", &table(&Answers::silence()));
        }
        for program in self.runs.written() {
            text.item("program", &table(program));
        }
        for (server, tools) in self.servers.written(hidden) {
            text.item("mcp", &table(&server));
            for tool in tools {
                text.item_of("mcp", "tool", &table(&tool));
            }
        }
        let awaited = models.iter().filter_map(|model| model.after.as_ref()?.step.as_deref());
        let words = self.answers.words();
        for step in self.acts.steps(&self.order, (&awaited.collect(), &words)) {
            text.item("step", &table(&step));
        }
        let reason = if !self.config.contains_key("providers") {
            Some("the built-in model is in the server, where nobody sees who asks it")
        } else if !self.earlier.is_empty() {
            Some("what its agents were given by an earlier server is not seen here")
        } else {
            None
        };
        if let Some(reason) = reason {
            let ignored = json!({ "invariant": "ceiling", "reason": reason });
            text.table("expect", &table(&json!({ "ignore": [ignored] })));
        }
        // Whatever stands where nobody thought of it: names of agents and clients, for one.
        hidden.keys(&text.into_string())
    }

    /// What happened last between the question to a model and its answer.
    fn after(&self, asked: Moment, came: Moment, ends: &BTreeMap<Moment, usize>) -> Option<After> {
        // A server that waits longer for an answer gives it up.
        let latest = asked.at.saturating_add(self.answers.patience.delay_max);
        let step = ends.range(asked..came).rev().find(|(moment, _)| moment.at <= latest);
        let step = step.map(|(_, index)| trigger::name(*index));
        let event = self.order.event_between(asked.place + 1, came.place);
        let event = event.filter(|(moment, _)| moment.at <= latest).map(|(_, mark)| mark);
        (step.is_some() || event.is_some()).then(|| After {
            step,
            event: event.map(|mark| mark.name.to_owned()),
            agent: event.and_then(|mark| mark.agent.clone()),
            nth: event.map(|mark| mark.nth).filter(|nth| *nth > 1),
        })
    }

    /// What goes another way in a replay.
    fn unlike(&self) -> Option<String> {
        let calls = counted(self.failed_by_disk, "call");
        let why = "it is sound in a replay, which parts there from what happened";
        (self.failed_by_disk > 0).then(|| format!("The disk failed {calls}; {why}."))
    }

    /// What was refused and is not among the steps.
    fn refusals(&self) -> Option<String> {
        let told = self.left_out.iter().map(|(what, count)| match what {
            LeftOut::Request(status) => {
                format!("{} with HTTP {status}", counted(*count, "request"))
            }
            LeftOut::List => format!("{} with a list of params", counted(*count, "call")),
            LeftOut::Entry if *count == 1 => "1 entry of a batch".to_owned(),
            LeftOut::Entry => format!("{count} entries of batches"),
        });
        let told = told.collect::<Vec<_>>().join(", ");
        let why = "a replay could not be refused for the same";
        (!told.is_empty()).then(|| format!("Refused, and not here since {why}: {told}."))
    }

    fn about(&self) -> String {
        format!(
            "A recorded session: {} by clients, {} of models.",
            counted(self.acts.len() as u64, "step"),
            counted(self.answers.len() as u64, "answer"),
        )
    }
}

fn counted(number: u64, what: &str) -> String {
    let s = if number == 1 { "" } else { "s" };
    format!("{number} {what}{s}")
}

/// The params that name an agent.
const NAMING: [&str; 8] = [
    "agent_id",
    "parent_agent_id",
    "session_name",
    "src_session",
    "dest_session",
    "old_name",
    "new_name",
    "name",
];
/// What a replay may take longer than the session: latencies of its network, and a calm end.
const SPARE: Duration = Duration::from_mins(30);

#[cfg(test)]
#[path = "story_tests.rs"]
mod tests;
