//! What clients did, as steps: each waits for what it came after.
//!
//! A call that was still open when the next step began goes on in the background. A step that came after
//! an event waits for that event, one that came after the end of another call for that end, and every one
//! for the step before it; the time that it came later is slept before.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::expected::{self, plain, plain_members};
use super::order::{Asked, Moment, Order, Waiting, rounded};
use super::servers;
use super::trigger::{self, name};
use crate::code::Code;
use crate::provider::script::Time;
use crate::record::form::{Confirm, File, Files, Step, Yes};
use crate::record::hidden::Hidden;
use crate::record::note::{Call, CallEnd, Client, Number, RefusedRequest, Shown, Stream};
use crate::record::text::fits_toml;

/// What is closer together happened at once.
const DELAY_MIN: Duration = Duration::from_millis(10);
/// The hosts of a scenario that are no clients.
const TAKEN: [&str; 3] = ["server", "model", "mcp"];
/// The status of a call that was answered, be it with an error.
const ANSWERED: u16 = 200;
/// The call that connects to an MCP server.
const CONNECT: &str = "mcp_connect";

#[derive(Debug, Default)]
pub(super) struct Acts {
    /// In their order.
    list: Vec<Act>,
    calls: BTreeMap<Number, u64>,
    streams: BTreeMap<Number, Open>,
    /// How many hosts there are besides those that are called as their clients.
    others: u64,
    /// How many confirmations were looked for.
    looks: u64,
    /// What ends from then on ends with the server.
    is_stopped: bool,
    /// The number of the last event of earlier servers.
    newest_before: u64,
    /// How many answers were to confirmations that an earlier server asked for.
    strangers: u64,
    /// How many calls were refused for what another did while they were under way.
    lost_races: u64,
}

/// An open stream and the host that reads it.
#[derive(Debug)]
struct Open {
    client: Client,
    host: Host,
}

#[derive(Debug)]
pub(super) struct Act {
    pub(super) began: Moment,
    /// None while it is open.
    pub(super) ended: Option<Moment>,
    /// Whether somebody was in a turn when it began.
    pub(super) at_work: bool,
    host: Host,
    client: Client,
    pub(super) step: Step,
}

/// Who plays a step: the client itself, or somebody in its name, whose connections end apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Host {
    Own,
    Other(u64),
}

impl Acts {
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// The server begins; an earlier one has told events up to this number.
    pub(super) fn begins(&mut self, newest_before: u64) {
        self.newest_before = newest_before;
    }

    /// What goes another way in a replay, or is not there.
    pub(super) fn unlike(&self) -> impl Iterator<Item = String> {
        let strangers = "Answers to confirmations of an earlier server, which are not here";
        let races = "Calls that lost a race with another, which they may win in a replay";
        let told = [(strangers, self.strangers), (races, self.lost_races)];
        let told = told.into_iter().filter(|(_, count)| *count > 0);
        told.map(|(what, count)| format!("{what}: {count}."))
    }

    pub(super) fn call(
        &mut self,
        number: Number,
        moment: Moment,
        call: &Call,
        order: &mut Order,
        hidden: &Hidden,
    ) {
        let asked = call.params.get("confirm_id").and_then(Value::as_str);
        let asked = asked.filter(|_| call.method == "confirm").and_then(|id| order.answer(id));
        let mut step = Step {
            call: Some(plain(&hidden.text(&call.method))),
            agent: call.agent.as_deref().map(|agent| plain(&hidden.text(agent))),
            params: plain_members(&hidden.members(&call.params)),
            ..Step::default()
        };
        match asked {
            None => {}
            Some(asked) if asked.waiting == Waiting::Yes => {
                // What is waited for in any case is not waited for twice.
                let before = self.list.last().map(|act| act.ended.unwrap_or(act.began).at);
                let since = before.unwrap_or_default().max(asked.since.at);
                step = confirmed(step, &asked, moment.at.saturating_sub(since));
            }
            Some(asked) => {
                let name = self.known(&asked);
                step.params.insert("confirm_id".to_owned(), format!("${{{name}}}").into());
            }
        }
        if call.method == CONNECT {
            servers::simulated(&mut step.params);
        }
        expected::name_request(&mut step, number);
        self.calls.insert(number, moment.place);
        let at_work = order.is_running();
        self.list.push(Act { ended: None, at_work, ..Act::at_once(moment, &call.by, step) });
    }

    /// The name of a confirmation's id in the replay, which has another one: a look at what waits finds
    /// it, right after the question.
    fn known(&mut self, asked: &Asked) -> String {
        if let Some(found) = self.list.iter().find(|act| act.finds(asked)) {
            return found.step.save.keys().next().cloned().unwrap_or_default();
        }
        self.looks += 1;
        let name = format!("confirmation_{}", self.looks);
        let pointer = format!("/confirmations/{}/confirm_id", asked.before);
        let step = Step {
            call: Some("list_confirmations".to_owned()),
            agent: asked.agent.clone(),
            save: BTreeMap::from([(name.clone(), pointer)]),
            ..Step::default()
        };
        let client = Client { name: "operator".to_owned(), acting_as: None };
        self.insert(Act::at_once(asked.since, &client, step));
        name
    }

    pub(super) fn ended(
        &mut self,
        number: Number,
        moment: Moment,
        end: &CallEnd,
        order: &Order,
        hidden: &Hidden,
    ) {
        let Some(place) = self.calls.remove(&number) else { return };
        let left = matches!(end, CallEnd::Left);
        if left && self.is_stopped {
            return;
        }
        let host = if left { self.other() } else { Host::Own };
        let Some(act) = self.list.iter_mut().rev().find(|act| act.began.place == place) else {
            return;
        };
        // Whoever leaves ends what is still open then.
        let place_of_end = if left { moment.place + 1 } else { moment.place };
        act.ended = Some(Moment { place: place_of_end, ..moment });
        match end {
            CallEnd::Result(_) if act.answers_a_stranger() => {
                self.strangers += 1;
                self.list.retain(|act| act.began.place != place);
            }
            CallEnd::Result(result) => {
                expected::of_result(&mut act.step, result, hidden);
                let made = result.get("agent_id").and_then(Value::as_str);
                let is_made = act.step.call.as_deref() == Some("create_agent");
                let began = act.began;
                let made = made.filter(|_| is_made).and_then(|agent| order.created(agent, began));
                self.happened_at(place, made);
                self.accepted(place, order);
            }
            CallEnd::Error(error) => {
                act.step.expect_error = Map::from_iter([("code".to_owned(), error.code.into())]);
                self.accepted(place, order);
                self.refused_at(place, moment, error.code, order);
            }
            CallEnd::Refused { http, code } => {
                act.step.expect_http = Some(*http);
                act.step.expect_error = Map::from_iter([("code".to_owned(), (*code).into())]);
                self.refused_at(place, moment, *code, order);
            }
            CallEnd::Left => {
                act.host = host;
                let client = act.client.clone();
                let step = Step { disconnect: Some(Yes), ..Step::default() };
                self.list.push(Act { host, at_work: true, ..Act::at_once(moment, &client, step) });
            }
        }
    }

    /// A request that was refused before it became a call is sent again as it was, but for its keys.
    pub(super) fn refused(&mut self, moment: Moment, request: &RefusedRequest, hidden: &Hidden) {
        let RefusedRequest { client, head, shown, body, status } = request;
        let body = hidden.text(body);
        let token = match shown {
            Shown::Nothing => "",
            Shown::Token => "authorization: Bearer ${token}\r\n",
            Shown::AnotherToken => "authorization: Bearer another\r\n",
            Shown::NoToken => "authorization: other\r\n",
        };
        let length = match body.len() {
            0 => String::new(),
            length => format!("content-length: {length}\r\n"),
        };
        let (head, body) = (plain(&hidden.text(head)), plain(&body));
        let step = Step {
            raw: Some(format!("{head}{token}{length}connection: close\r\n\r\n{body}")),
            expect_http: Some(*status),
            ..Step::default()
        };
        let client = Client { name: client.clone(), acting_as: None };
        self.list.push(Act::at_once(moment, &client, step));
    }

    /// Of several that ask an agent at the same time, the one that was accepted first came first.
    fn accepted(&mut self, place: u64, order: &Order) {
        let Some(act) = self.list.iter().find(|act| act.began.place == place) else { return };
        let id = act.step.params.get("request_id").and_then(Value::as_str);
        let queued = id.and_then(|id| order.queued(act.step.agent.as_deref(), id));
        self.happened_at(place, queued);
    }

    /// Of several that are under way at the same time, the one that had its effect first came first.
    fn happened_at(&mut self, place: u64, effect: Option<Moment>) {
        let act = self.list.iter_mut().find(|act| act.began.place == place);
        let Some((act, effect)) = act.zip(effect) else { return };
        if effect > act.began {
            act.began = effect;
            self.list.sort_by_key(|act| act.began);
        }
    }

    /// A call that was refused for what was there, or was not, has changed nothing: of those that were
    /// made at the same time it comes after all that had been done by its end. One that had its agent
    /// come back before it was refused has lost a race with another.
    fn refused_at(&mut self, place: u64, ended: Moment, code: i64, order: &Order) {
        let is_of_state = [Code::InvalidParams, Code::Conflict].map(Code::number).contains(&code);
        let index = self.list.iter().position(|act| act.began.place == place);
        let Some(index) = index.filter(|_| is_of_state) else { return };
        let act = &self.list[index];
        let named = act.step.params.get("agent_id").and_then(Value::as_str);
        if named.is_some_and(|agent| order.came_back(agent, (act.began, ended))) {
            let began = act.began;
            let is_beside = |act: &Act| act.is_open_at(began) && act.began.place != place;
            self.lost_races += u64::from(self.list.iter().any(is_beside));
            return;
        }
        let early = (code != Code::Conflict.number()).then(|| self.too_early(index, ended, order));
        let last = Moment { place: ended.place - 1, ..ended };
        self.list[index].began = early.flatten().unwrap_or(last);
        self.list.sort_by_key(|act| act.began);
    }

    /// The moment before those calls that make what a refused one did not find: they were under way when
    /// it was refused, and nothing had been told since they began.
    fn too_early(&self, index: usize, refused: Moment, order: &Order) -> Option<Moment> {
        let Act { began, step, .. } = &self.list[index];
        let began = *began;
        // Another that was refused had no effect either.
        let effective = self.list.iter().filter(|act| act.step.expect_error.is_empty());
        let ends = effective.filter_map(|act| act.ended).filter(|ended| *ended < began);
        let since = ends.chain(order.told_before(refused)).max();
        let is_unseen = |act: &&Act| {
            let made = made_by(&act.step);
            act.is_open_at(refused) && act.began < began && made.iter().any(|it| names(step, it))
        };
        let unseen = self.list.iter().filter(is_unseen);
        let unseen = unseen.map(|act| act.began).filter(|began| Some(*began) > since).min()?;
        Some(Moment { place: unseen.place - 1, ..unseen })
    }

    pub(super) fn opened(
        &mut self,
        number: Number,
        moment: Moment,
        stream: &Stream,
        hidden: &Hidden,
    ) {
        let Stream { by, agent, after } = stream;
        // Closing one stream closes all of a host.
        let is_taken = |open: &Open| open.client.name == by.name && open.host == Host::Own;
        let host = if self.streams.values().any(is_taken) { self.other() } else { Host::Own };
        let mut watch = Map::new();
        if let Some(agent) = agent {
            watch.insert("agent".to_owned(), plain(&hidden.text(agent)).into());
        }
        if let Some(after) = after {
            // The events of a replay are numbered from its beginning on.
            watch.insert("after".to_owned(), after.saturating_sub(self.newest_before).into());
        }
        let step = Step { watch: Some(watch), ..Step::default() };
        self.list.push(Act { host, ..Act::at_once(moment, by, step) });
        self.streams.insert(number, Open { client: by.clone(), host });
    }

    pub(super) fn closed(&mut self, number: Number, moment: Moment) {
        let Some(Open { client, host }) = self.streams.remove(&number) else { return };
        if self.is_stopped {
            return;
        }
        let client = Client { acting_as: None, ..client };
        let step = Step { unwatch: Some(Yes), ..Step::default() };
        self.list.push(Act { host, ..Act::at_once(moment, &client, step) });
    }

    /// A signal asks the server to stop.
    pub(super) fn stopped(&mut self, moment: Moment, at_work: bool) {
        self.is_stopped = true;
        let client = Client { name: "operator".to_owned(), acting_as: None };
        let step = Step { stop: Some("SIGTERM"), ..Step::default() };
        // It goes on until the server has ended, and others may still ask it something.
        self.list.push(Act { at_work, ended: None, ..Act::at_once(moment, &client, step) });
    }

    /// An MCP server is there, which whoever connects to it waits for.
    pub(super) fn connected(&mut self, (began, ended): (Moment, Moment), server: &str) {
        let connects = |act: &Act| {
            act.ended.is_none()
                && act.step.call.as_deref() == Some(CONNECT)
                && act.step.params.get("name").is_some_and(|name| *name == server)
        };
        if self.list.iter().any(connects) {
            return;
        }
        let client = Client { name: "operator".to_owned(), acting_as: None };
        let step = Step {
            call: Some(CONNECT.to_owned()),
            params: Map::from_iter([("name".to_owned(), server.into())]),
            expect: Some(json!({ "connected": true })),
            ..Step::default()
        };
        self.list.push(Act { ended: Some(ended), ..Act::at_once(began, &client, step) });
    }

    /// Somebody other than the server and its programs has changed a file.
    pub(super) fn changed(&mut self, moment: Moment, path: String, file: File) {
        let name = "editor".to_owned();
        let client = Client { name, acting_as: None };
        let file = match file {
            File::Text(text) => File::Text(plain(&text)),
            File::TextWithMode { text, mode } => File::TextWithMode { text: plain(&text), mode },
            File::Repeated { .. }
            | File::Base64 { .. }
            | File::Dir { .. }
            | File::Symlink { .. }
            | File::Remove { .. } => file,
        };
        let step = Step { files: Files::from([(path, file)]), ..Step::default() };
        self.insert(Act::at_once(moment, &client, step));
    }

    /// What is noticed only later finds its place.
    fn insert(&mut self, act: Act) {
        self.list.push(act);
        self.list.sort_by_key(|act| act.began);
    }

    fn other(&mut self) -> Host {
        self.others += 1;
        Host::Other(self.others)
    }

    /// When which act ended.
    pub(super) fn ends(&self) -> BTreeMap<Moment, usize> {
        let acts = self.list.iter().enumerate();
        acts.filter_map(|(index, act)| Some((act.ended?, index))).collect()
    }

    /// The steps as a file has them. Answers of models wait for those of these names; they spoke then.
    pub(super) fn steps(
        &self,
        order: &Order,
        (awaited, words): (&BTreeSet<&str>, &BTreeSet<Moment>),
    ) -> Vec<Step> {
        let triggers = trigger::of(&self.list, order, words);
        let named: BTreeSet<usize> = triggers.iter().filter_map(|trigger| trigger.end).collect();
        let mut steps = Vec::new();
        for (index, act) in self.list.iter().enumerate() {
            let mut step = act.step.clone();
            act.played_by(&mut step);
            step.name = Some(name(index))
                .filter(|name| named.contains(&index) || awaited.contains(name.as_str()));
            step.background = self.goes_on(index).then_some(Yes);
            // How it ends is not known, as long as the server does not end it.
            if act.ended.is_none() && step.call.is_some() && !self.is_stopped {
                step.expect_http = Some(ANSWERED);
            }
            if !fits_toml(&step.params) {
                let params = std::mem::take(&mut step.params);
                step.params_json = Some(Value::Object(params).to_string());
            }
            if step.confirm.is_none() {
                steps.extend(triggers[index].set(&mut step));
            }
            steps.push(step);
        }
        steps
    }

    /// Whether something was done before an act had ended.
    fn goes_on(&self, index: usize) -> bool {
        let act = &self.list[index];
        match self.list.get(index + 1) {
            Some(next) => act.is_open_at(next.began),
            None => act.ended.is_none() && act.step.stop.is_none(),
        }
    }
}

/// The names of what a call makes, which nobody finds before.
fn made_by(step: &Step) -> Vec<&str> {
    let keys: &[&str] = match step.call.as_deref() {
        Some("create_agent") => &["agent_id"],
        Some("load_session") => &["agent_id", "session_name"],
        Some("save_session") => &["session_name"],
        Some("clone_session") => &["dest_session"],
        Some("rename_session") => &["new_name"],
        Some(CONNECT) => &["name"],
        Some(_) | None => &[],
    };
    keys.iter().filter_map(|key| step.params.get(*key)?.as_str()).collect()
}

/// Whether a call is about somebody or something of this name.
fn names(step: &Step, name: &str) -> bool {
    step.agent.as_deref() == Some(name) || step.params.values().any(|value| *value == name)
}

/// The answer to a confirmation that waits for it.
fn confirmed(step: Step, asked: &Asked, waited: Duration) -> Step {
    let decision = step.params.get("decision").and_then(Value::as_str);
    let confirm = Confirm {
        tool: plain(&asked.tool),
        decision: decision.unwrap_or_default().to_owned(),
        agent: step.agent.unwrap_or_default(),
        delay: (waited >= DELAY_MIN).then(|| Time(rounded(waited))),
    };
    Step { confirm: Some(confirm), ..Step::default() }
}

impl Act {
    /// One that is over as soon as it is begun, by the client itself.
    fn at_once(moment: Moment, client: &Client, step: Step) -> Self {
        let (began, ended, client) = (moment, Some(moment), client.clone());
        Self { began, ended, at_work: false, host: Host::Own, client, step }
    }

    /// Whether it is the look that finds a confirmation.
    fn finds(&self, asked: &Asked) -> bool {
        self.began == asked.since && !self.step.save.is_empty()
    }

    /// Whether it answers a confirmation that nobody has asked for here.
    fn answers_a_stranger(&self) -> bool {
        let id = self.step.params.get("confirm_id").and_then(Value::as_str);
        self.step.call.as_deref() == Some("confirm") && id.is_some_and(|id| !id.starts_with("${"))
    }

    pub(super) fn is_open_at(&self, moment: Moment) -> bool {
        self.ended.is_none_or(|ended| ended > moment)
    }

    fn played_by(&self, step: &mut Step) {
        let Client { name, acting_as } = &self.client;
        let in_host = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let own: String = name.chars().map(|c| if in_host(c) { c } else { '-' }).collect();
        let host = match self.host {
            Host::Own if TAKEN.contains(&own.as_str()) => format!("{own}-client"),
            Host::Own => own,
            Host::Other(number) => format!("{own}-{number}"),
        };
        let speaks = step.call.is_some() || step.watch.is_some() || step.confirm.is_some();
        if speaks && host != *name {
            step.headers.insert("x-nexus-client".to_owned(), plain(name));
        }
        if let Some(agent) = acting_as.as_ref().filter(|_| speaks) {
            step.headers.insert("x-nexus-agent".to_owned(), agent.to_string());
        }
        step.client = Some(host);
    }
}
