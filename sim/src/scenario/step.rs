//! `[[step]]`: what a client does, and when. Reads one step; how steps refer to each other is
//! checked by `names`.

use std::collections::BTreeMap;

use nexus3::choice::Choice;
use nexus3::config::words::{nearest, quoted};
use nexus3::provider::script::Time;
use nexus3::rpc::method::{Method, Scope};
use nexus3::terminal::key::Key;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::Typing;
use super::form::{
    AfterForm, ConfirmForm, PaceForm, StepForm, TerminalForm, TokenForm, WatchForm, Yes,
};
use super::place::Place;
use super::{Files, ServeFlag, files, names, serve};

#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Where it stands in the file.
    pub line: usize,
    pub name: Option<String>,
    /// The host that plays it.
    pub client: String,
    pub when: When,
    /// How often it runs, at least once: one after another, or all at once in the background.
    pub repeat: u64,
    pub ground: Ground,
    pub action: Action,
}

/// Whether the next step waits for the end of this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ground {
    Fore,
    Back,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum When {
    AfterPrevious,
    /// Virtual time since the start.
    At(Time),
    /// When the step of this name has ended.
    After(String),
    OnEvent(EventTrigger, Turn),
}

/// Whether a step that waits for an event waits for the step before it, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    Any,
    InOrder,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventTrigger {
    pub event: String,
    /// None: any agent's.
    pub agent: Option<String>,
    /// Counts from 1.
    pub nth: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    Call(Call),
    Watch(Watch),
    Unwatch,
    Confirm(Confirm),
    Raw(Raw),
    /// At a terminal.
    Type(Typing),
    Disconnect,
    Sleep(Time),
    Stop(Signal),
    /// None: with the flags of the first start.
    Start {
        serve: Option<Vec<ServeFlag>>,
    },
    Files(Files),
}

impl Action {
    /// Whether it waits until the server is up.
    pub fn needs_server(&self) -> bool {
        match self {
            Self::Call(_) | Self::Raw(_) | Self::Stop(_) | Self::Watch(_) | Self::Confirm(_) => {
                true
            }
            // Whoever sits at a terminal types on while the server is away.
            Self::Type(typing) => typing.agent.is_some(),
            Self::Unwatch
            | Self::Disconnect
            | Self::Sleep(_)
            | Self::Start { .. }
            | Self::Files(_) => false,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    pub method: String,
    /// None: a method of the server itself.
    pub agent: Option<String>,
    pub params: Option<Map<String, Value>>,
    pub headers: BTreeMap<String, String>,
    pub token: Token,
    pub expect: Option<CallExpect>,
    pub expect_http: Option<u16>,
    /// Names for parts of the result, by JSON pointer.
    pub save: BTreeMap<String, String>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum CallExpect {
    /// The result contains this.
    Result(Value),
    /// The error object contains this.
    Error(Map<String, Value>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Token {
    /// The server's own.
    Server,
    Text(String),
    Without,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Watch {
    /// None: the global stream.
    pub agent: Option<String>,
    /// The number of an event, or names that stand for one.
    pub after: Option<String>,
    pub pace: Pace,
    pub headers: BTreeMap<String, String>,
    pub token: Token,
    /// The error object of a stream that is refused contains this.
    pub expect_error: Option<Map<String, Value>>,
    pub expect_http: Option<u16>,
}

/// How fast a client takes events from its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    AtOnce,
    Each(Time),
    Never,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Confirm {
    pub tool: String,
    pub decision: String,
    /// None: any agent's.
    pub agent: Option<String>,
    pub delay: Option<Time>,
    pub headers: BTreeMap<String, String>,
    pub token: Token,
    pub expect: Option<CallExpect>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Raw {
    pub bytes: String,
    pub expect_http: Option<u16>,
    /// A string that starts with `re:` is a regular expression over the whole body.
    pub expect_body: Option<Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum Signal {
    #[serde(rename = "SIGTERM")]
    Term,
    #[serde(rename = "SIGINT")]
    Int,
}

const CLIENT: &str = "client";

/// Each action with the keys that only some actions have.
const ACTIONS: &[(&str, &[&str])] = &[
    (
        "call",
        &[
            "agent",
            "params",
            "params_json",
            "headers",
            "token",
            "expect",
            "expect_error",
            "expect_http",
            "save",
            "background",
        ],
    ),
    ("watch", &["headers", "token", "expect_error", "expect_http"]),
    ("unwatch", &[]),
    ("confirm", &["headers", "token", "expect", "expect_error", "background"]),
    ("raw", &["expect_http", "expect_body", "background"]),
    ("terminal", &[]),
    ("disconnect", &[]),
    ("sleep", &[]),
    ("stop", &["background"]),
    ("start", &["serve"]),
    ("files", &[]),
];

/// None, with a problem added, where there is not exactly one action.
pub(super) fn read(place: &Place<'_>, mut form: StepForm) -> Option<Step> {
    let action = action_key(place)?;
    check_keys(place, action, &form);
    let when = when(place, &form);
    let step = Step {
        line: place.line(),
        name: form.name.take(),
        client: form.client.take().unwrap_or_else(|| CLIENT.to_owned()),
        when,
        repeat: form.repeat.unwrap_or(1),
        ground: if form.background { Ground::Back } else { Ground::Fore },
        action: read_action(place, form),
    };
    Some(step)
}

fn action_key(place: &Place<'_>) -> Option<&'static str> {
    let given: Vec<_> =
        ACTIONS.iter().map(|(key, _)| *key).filter(|key| place.get(key).is_some()).collect();
    let all = || {
        let all: Vec<_> = ACTIONS.iter().map(|(key, _)| *key).collect();
        all.join(", ")
    };
    match given.as_slice() {
        [action] => Some(action),
        [] => {
            place.refuse("this step does nothing", &format!("give it one of {}", all()));
            None
        }
        [first, second, ..] => {
            let message = format!("`{first}` and `{second}` are both given");
            place.refuse(&message, "make two steps of it");
            None
        }
    }
}

/// Refuses keys that another action has.
fn check_keys(place: &Place<'_>, action: &str, form: &StepForm) {
    let belong = |name: &str, key: &str| {
        ACTIONS.iter().any(|(action, keys)| *action == name && keys.contains(&key))
    };
    for (key, member) in place.members() {
        let owners: Vec<_> =
            ACTIONS.iter().map(|(name, _)| *name).filter(|name| belong(name, key)).collect();
        // `agent` also says whose events are waited for.
        let waits = key == "agent" && form.on.is_some();
        if !owners.is_empty() && !owners.contains(&action) && !waits {
            let owners: Vec<_> = owners.iter().map(|owner| format!("`{owner}`")).collect();
            let message = format!("does not belong to `{action}`");
            member.refuse_key(&message, &format!("it belongs to {}", owners.join(" and ")));
        }
    }
    let of_events = ["nth", "in_order"].into_iter().filter(|_| form.on.is_none());
    for key in of_events.filter_map(|key| place.get(key)) {
        key.refuse_key("belongs to `on`", "add `on`, or remove it");
    }
}

fn when(place: &Place<'_>, form: &StepForm) -> When {
    let given: Vec<_> =
        ["at", "after", "on"].into_iter().filter_map(|key| place.get(key)).collect();
    if let [_, second, ..] = given.as_slice() {
        second.refuse_key("of `at`, `after` and `on` a step has at most one", "keep one of them");
    }
    if let Some(time) = form.at {
        When::At(time)
    } else if let Some(name) = &form.after {
        When::After(name.clone())
    } else if let Some(on) = &form.on {
        let event = match on.strip_prefix("event:") {
            Some(event) if !event.is_empty() => {
                names::check_event(place, "on", event);
                event
            }
            Some(_) | None => {
                let message = format!("expected an event, found {}", quoted(on));
                place.refuse_at("on", &message, "write it like \"event:tool_started\"");
                ""
            }
        };
        let (event, agent) = (event.to_owned(), form.agent.clone());
        let turn = form.in_order.map_or(Turn::Any, |Yes| Turn::InOrder);
        When::OnEvent(EventTrigger { event, agent, nth: form.nth.unwrap_or(1) }, turn)
    } else {
        When::AfterPrevious
    }
}

/// The form has exactly one action.
fn read_action(place: &Place<'_>, form: StepForm) -> Action {
    if form.call.is_some() {
        return Action::Call(call(place, form));
    }
    if form.watch.is_some() {
        return Action::Watch(watch(place, form));
    }
    if form.confirm.is_some() {
        return Action::Confirm(confirm(place, form));
    }
    if let Some(TerminalForm { agent, types, key, sees }) = form.terminal {
        if let Some(name) = key.as_deref().filter(|name| Key::named(name).is_none()) {
            let hint = "write it like enter, esc, tab, up or ctrl-c";
            place.refuse_at("terminal", &format!("there is no key {}", quoted(name)), hint);
        }
        return Action::Type(Typing { agent, types, key, sees });
    }
    if let Some(bytes) = form.raw {
        let (expect_http, expect_body) = (form.expect_http, form.expect_body);
        return Action::Raw(Raw { bytes, expect_http, expect_body });
    }
    if let Some(time) = form.sleep {
        return Action::Sleep(time);
    }
    if let Some(signal) = form.stop {
        return Action::Stop(signal);
    }
    if let Some(forms) = form.files {
        return Action::Files(files::read(place, "files", forms));
    }
    if form.start.is_some() {
        let serve = form.serve.map(|words| serve::read(place, &words));
        return Action::Start { serve };
    }
    if form.disconnect.is_some() {
        return Action::Disconnect;
    }
    assert!(form.unwatch.is_some(), "a step with an action has one of them");
    Action::Unwatch
}

fn watch(place: &Place<'_>, form: StepForm) -> Watch {
    let WatchForm { agent, after, pace } =
        form.watch.expect("a watching step says what it watches");
    if let Some(AfterForm::Named(text)) = &after
        && !text.contains("${")
        && text.parse::<u64>().is_err()
        && let Some(after) = place.get("watch").and_then(|watch| watch.get("after"))
    {
        let message = format!("expected the number of an event, found {}", quoted(text));
        after.refuse(&message, "write it like 5 or \"${seq}\"");
    }
    Watch {
        agent,
        after: after.map(|after| match after {
            AfterForm::Seq(seq) => seq.to_string(),
            AfterForm::Named(text) => text,
        }),
        pace: match pace {
            None => Pace::AtOnce,
            Some(PaceForm::Time(time)) => Pace::Each(time),
            Some(PaceForm::Never) => Pace::Never,
        },
        headers: form.headers.unwrap_or_default(),
        token: token(form.token),
        expect_error: form.expect_error,
        expect_http: form.expect_http,
    }
}

fn confirm(place: &Place<'_>, form: StepForm) -> Confirm {
    let ConfirmForm { tool, decision, agent, delay } =
        form.confirm.expect("a confirming step says what it confirms");
    if form.expect_error.is_none()
        && !decision.contains("${")
        && decision.parse::<Choice>().is_err()
        && let Some(given) = place.get("confirm").and_then(|confirm| confirm.get("decision"))
    {
        let known = Choice::ALL.map(Choice::name);
        let message = format!("there is no decision {}", quoted(&decision));
        given.refuse(&message, &nearest(&decision, &known, "there are"));
    }
    Confirm {
        tool,
        decision,
        agent,
        delay,
        headers: form.headers.unwrap_or_default(),
        token: token(form.token),
        expect: form.expect.map(CallExpect::Result).or(form.expect_error.map(CallExpect::Error)),
    }
}

fn token(form: Option<TokenForm>) -> Token {
    match form {
        None => Token::Server,
        Some(TokenForm::Text(text)) => Token::Text(text),
        Some(TokenForm::Without(_)) => Token::Without,
    }
}

fn call(place: &Place<'_>, form: StepForm) -> Call {
    let params = params(place, &form);
    let StepForm { call, agent, headers, token, expect, expect_error, save, .. } = form;
    if expect.is_some() && expect_error.is_some() {
        let message = "a call has a result or an error, not both";
        place.refuse_at("expect_error", message, "keep `expect` or `expect_error`");
    }
    if save.is_some() && expect_error.is_some() {
        place.refuse_at("save", "an error has no result to save from", "remove `save`");
    }
    let may_fail = expect_error.is_some() || form.expect_http.is_some();
    let mut call = Call {
        method: call.expect("a call names its method"),
        agent,
        params,
        headers: headers.unwrap_or_default(),
        token: self::token(token),
        expect: expect.map(CallExpect::Result).or(expect_error.map(CallExpect::Error)),
        expect_http: form.expect_http,
        save: save.unwrap_or_default(),
    };
    let method = Method::ALL.iter().find(|method| method.name() == call.method);
    match method.map(|method| method.scope()) {
        // With `on` the agent is the one whose event is waited for.
        Some(Scope::Global) if form.on.is_some() => call.agent = None,
        // Whoever expects an error may ask for anything.
        Some(_) | None if may_fail || call.method.contains("${") => (),
        scope => check_method(place, &call, scope),
    }
    call
}

/// What a call is given, as TOML or as JSON says it.
fn params(place: &Place<'_>, form: &StepForm) -> Option<Map<String, Value>> {
    let Some(text) = &form.params_json else { return form.params.clone() };
    if form.params.is_some() {
        let message = "`params` and `params_json` are both given";
        place.refuse_at("params_json", message, "keep one of them");
    }
    let read = serde_json::from_str(text);
    if read.is_err() {
        let hint = "write it like '{\"agent_id\": null}'";
        place.refuse_at("params_json", "this is no JSON object", hint);
    }
    read.ok()
}

fn check_method(place: &Place<'_>, call: &Call, scope: Option<Scope>) {
    let method = quoted(&call.method);
    match (scope, &call.agent) {
        (Some(Scope::Global), None) | (Some(Scope::Agent), Some(_)) => (),
        (Some(Scope::Global), Some(_)) => place.refuse_at(
            "agent",
            &format!("{method} is a method of the server, not of an agent"),
            "remove `agent`; what the method is about goes into `params`",
        ),
        (Some(Scope::Agent), None) => place.refuse_at(
            "call",
            &format!("{method} is a method of an agent"),
            "say whose: agent = \"…\"",
        ),
        (None, _) => {
            let names: Vec<_> = Method::ALL.iter().map(|method| method.name()).collect();
            let hint = nearest(&call.method, &names, "there are");
            place.refuse_at("call", &format!("there is no method {method}"), &hint);
        }
    }
}
