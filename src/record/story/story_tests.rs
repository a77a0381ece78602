//! Notes in, the steps and parts of a scenario out.

use serde_json::json;
use toml::{Table, Value as Toml};

use super::*;
use crate::code::ErrorObject;
use crate::config::Config;
use crate::id::{AgentId, ConfirmId, RequestId};
use crate::policy::budget::{Bounds, KeptBudget, Presence, Used};
use crate::provider::Secrets;
use crate::provider::script::{View, Wire};
use crate::record::note::{
    Answer, AnswerEnd, Call, CallEnd, Client, Earlier, Event, Found, Head, Meaning, Piece, Ran,
    RanEnd, Sighting, Stream,
};
use crate::tool::Kept;
use crate::world::Exit;

pub(super) struct Told(Story);

impl Told {
    pub(super) fn new() -> Self {
        let setting = Setting {
            flags: Vec::new(),
            config: Config::default(),
            found: None,
            home: "/home/me/.nexus3".into(),
            cwd: "/work".into(),
        };
        let hidden = Hidden::of(Secrets::default(), [("/work".into(), "/project")].into_iter());
        Self(Story::new(hidden, setting, time(0)))
    }

    pub(super) fn at(&mut self, millis: u64, what: What) -> &mut Self {
        self.0.on(Note { at: Duration::from_millis(millis), what });
        self
    }

    pub(super) fn begins(
        &mut self,
        millis: u64,
        number: u64,
        method: &str,
        agent: Option<&str>,
    ) -> &mut Self {
        let by = Client { name: "alice".to_owned(), acting_as: None };
        let (method, agent) = (method.to_owned(), agent.map(str::to_owned));
        self.at(millis, What::CallBegan(number, Call { by, agent, method, params: Map::new() }))
    }

    pub(super) fn ends(&mut self, millis: u64, number: u64) -> &mut Self {
        self.at(millis, What::CallEnded(number, CallEnd::Result(json!({}))))
    }

    pub(super) fn event(&mut self, millis: u64, name: &'static str, meaning: Meaning) -> &mut Self {
        let agent = Some(AgentId::parse("a").unwrap());
        self.at(millis, What::Event(Event { name, agent, meaning }))
    }

    /// A program runs between these times, and says "ok".
    pub(super) fn runs(&mut self, (from, to): (u32, u32), name: &str) -> &mut Self {
        let (mut stdout, stderr) = (Kept::default(), Kept::default());
        stdout.add(b"ok");
        let (took, at) = (Duration::from_secs(1), time(to.into()));
        let end = RanEnd::Exit(Exit::Code(0));
        let number = from.into();
        self.at(
            from.into(),
            What::ProgramStarted(number, vec![name.to_owned()], time(from.into())),
        );
        self.at(to.into(), What::ProgramEnded(number, Ran { stdout, stderr, took, at, end }))
    }

    fn file(&mut self, path: &str, found: Found, modified: i64) -> &mut Self {
        self.file_with(0o644, path, found, modified)
    }

    fn file_with(&mut self, mode: u32, path: &str, found: Found, modified: i64) -> &mut Self {
        let len = match &found {
            Found::Content(content) => content.len() as u64,
            _ => 7,
        };
        let sighting = Sighting { path: path.into(), found, len, mode, modified: time(modified) };
        self.at(9000, What::File(sighting))
    }

    pub(super) fn parsed(&self) -> Table {
        self.0.text(State::Whole).parse().unwrap()
    }

    /// The steps, each with all of its keys but the client.
    pub(super) fn steps(&self) -> Vec<String> {
        let parsed = self.parsed();
        let steps = parsed.get("step").and_then(Toml::as_array).cloned().unwrap_or_default();
        let shown = |value: &Toml| match value {
            Toml::String(text) => text.clone(),
            Toml::Integer(number) => number.to_string(),
            other => other.as_bool().map_or_else(String::new, |flag| flag.to_string()),
        };
        let told = |step: &Toml| {
            let keys = step.as_table().unwrap().iter().filter(|(key, _)| *key != "client");
            let keys = keys.map(|(key, value)| format!("{key}={}", shown(value)));
            keys.collect::<Vec<_>>().join(" ")
        };
        steps.iter().map(told).collect()
    }
}

/// Milliseconds after the recording began.
pub(super) fn time(millis: i64) -> Timestamp {
    Timestamp::from_millisecond(1_800_000_000_000 + millis).unwrap()
}

#[test]
fn what_is_missing_is_said_at_the_top() {
    let mut told = Told::new();
    let lines = |story: &Story, state| {
        story.text(state).lines().take_while(|line| line.starts_with('#')).count()
    };
    assert_eq!(lines(&told.0, State::Whole), 1);
    let (gone, back) = (AgentId::parse("gone").unwrap(), AgentId::parse("a").unwrap());
    told.at(0, What::Earlier(gone, None)).at(0, What::Earlier(back, None));
    told.event(1, "agent_restored", Meaning::None);
    assert_eq!(lines(&told.0, State::Cut), 3, "only who was asked for is missed");
    assert!(told.0.text(State::Cut).contains("\n# It is cut here: "));
}

/// An agent of an earlier server, which works there.
fn earlier(id: &str, parent: Option<&str>, cwd: &str) -> What {
    let session = json!({
        "schema_version": 1,
        "agent_id": id,
        "created_at": "2026-01-01T00:00:00.000Z",
        "modified_at": "2026-01-01T00:00:00.000Z",
        "messages": [{ "role": "user", "content": "in /work" }],
        "working_directory": cwd,
        "permission_level": "trusted",
        "permission_preset": "trusted",
        "model": "default",
        "provenance": "user",
        "parent_agent_id": parent,
    });
    let budget = KeptBudget {
        agent: 1,
        parent: None,
        bounds: Bounds { max_turns: Some(5), deadline: Some(time(90_000)), ..Bounds::default() },
        own: Used { turns: 1, tokens: 20 },
        gone: Used { turns: 1, tokens: 0 },
        presence: Presence::Here,
    };
    let earlier = Earlier {
        session: serde_json::from_value(session).unwrap(),
        enabled_tools: vec!["exec".to_owned()],
        ceiling: None,
        summary: Some((1, "They work in /work.".into())),
        budget: Some(budget),
        is_saved: false,
        is_last: false,
        requests: Vec::new(),
    };
    What::Earlier(AgentId::parse(id).unwrap(), Some((Box::new(earlier), 0)))
}

#[test]
fn an_agent_that_was_there_before_is_as_it_was_once_somebody_of_its_family_is_needed() {
    let mut told = Told::new();
    told.at(0, earlier("a", None, "/work")).at(0, earlier("b", None, "/elsewhere"));
    told.at(0, earlier("c", Some("b"), "/work")).at(0, earlier("d", None, "/work"));
    told.event(5, "agent_restored", Meaning::None);
    let by = Client { name: "alice".to_owned(), acting_as: None };
    let params = json!({ "agent_id": "c" }).as_object().unwrap().clone();
    let method = "destroy_agent".to_owned();
    told.at(8, What::CallBegan(2, Call { by, agent: None, method, params }));
    let parsed = told.parsed();
    assert_eq!(parsed["files"].as_table().unwrap().keys().collect::<Vec<_>>(), ["/elsewhere"]);
    let agents = parsed["agent"].as_array().unwrap();
    let ids: Vec<_> = agents.iter().filter_map(|agent| agent["id"].as_str()).collect();
    assert_eq!(ids, ["a", "b", "c"]);
    let expected: Table = r#"
        id = "a"
        preset = "trusted"
        model = "default"
        enabled_tools = ["exec"]
        limits = { max_turns = 5, deadline = "90s" }
        used = { turns = 2, tokens = 20 }
        system_prompt = ""
        summary = { upto = 1, text = "They work in /project." }
        messages = [{ role = "user", content = "in /project" }]
    "#
    .parse()
    .unwrap();
    assert_eq!(agents[0].as_table(), Some(&expected));
    let steps = told.steps();
    assert_eq!(steps.len(), 1, "it comes back by itself: {steps:?}");
}

#[test]
fn a_confirmation_is_known_by_its_tool() {
    let mut told = Told::new();
    let confirm_id = ConfirmId::parse("0123456789abcdef").unwrap();
    told.begins(0, 1, "send", Some("a"));
    let asks = Meaning::Asks { confirm_id, tool: "exec".to_owned() };
    told.event(10, "confirmation_requested", asks);
    let by = Client { name: "alice".to_owned(), acting_as: None };
    let params = json!({ "confirm_id": "0123456789abcdef", "decision": "deny" });
    let (method, agent) = ("confirm".to_owned(), Some("a".to_owned()));
    let params = params.as_object().unwrap().clone();
    told.at(310, What::CallBegan(2, Call { by, agent, method, params }));
    told.at(320, What::CallEnded(2, CallEnd::Result(json!({ "accepted": true }))));
    let parsed = told.parsed();
    let step = &parsed["step"][1];
    assert_eq!(step["confirm"]["tool"].as_str(), Some("exec"));
    assert_eq!(step["confirm"]["delay"].as_str(), Some("300ms"));
    assert!(!told.0.text(State::Whole).contains("0123456789abcdef"));
}

#[test]
fn an_answer_that_comes_too_late_is_a_call_about_the_same_confirmation() {
    let mut told = Told::new();
    let id = "0123456789abcdef";
    told.begins(0, 1, "send", Some("a"));
    for confirm_id in ["fedcba9876543210", id] {
        let confirm_id = ConfirmId::parse(confirm_id).unwrap();
        let asks = Meaning::Asks { confirm_id, tool: "exec".to_owned() };
        told.event(10, "confirmation_requested", asks);
    }
    for (number, accepted) in [(2, true), (3, false), (4, false)] {
        let by = Client { name: "alice".to_owned(), acting_as: None };
        let params = json!({ "confirm_id": id, "decision": "deny" });
        let (method, agent) = ("confirm".to_owned(), Some("a".to_owned()));
        let params = params.as_object().unwrap().clone();
        told.at(20, What::CallBegan(number, Call { by, agent, method, params }));
        let result = json!({ "accepted": accepted, "decision": "deny", "resolved_by": "alice" });
        told.at(21, What::CallEnded(number, CallEnd::Result(result)));
    }
    let parsed = told.parsed();
    let steps = parsed["step"].as_array().unwrap();
    assert_eq!(steps.len(), 5);
    let look = &steps[1];
    assert_eq!(look["call"].as_str(), Some("list_confirmations"));
    assert_eq!(
        (look["on"].as_str(), look["nth"].as_integer()),
        (Some("event:confirmation_requested"), Some(2))
    );
    assert_eq!(look["save"]["confirmation_1"].as_str(), Some("/confirmations/1/confirm_id"));
    assert_eq!(steps[2]["confirm"]["decision"].as_str(), Some("deny"));
    for late in &steps[3..] {
        assert_eq!(late["params"]["confirm_id"].as_str(), Some("${confirmation_1}"));
        assert_eq!(late["expect"]["accepted"].as_bool(), Some(false));
    }
}

#[test]
fn of_sends_at_the_same_moment_the_one_that_was_accepted_first_comes_first() {
    let mut told = Told::new();
    told.begins(0, 1, "send", Some("a")).begins(1, 2, "send", Some("a"));
    for request_id in ["r2", "r1"] {
        let request_id = RequestId::parse(request_id).unwrap();
        told.event(2, "turn_queued", Meaning::Queued { request_id });
    }
    for (number, id) in [(1, "r1"), (2, "r2")] {
        told.at(9, What::CallEnded(number, CallEnd::Result(json!({ "request_id": id }))));
    }
    let parsed = told.parsed();
    let steps = parsed["step"].as_array().unwrap();
    let ids: Vec<_> =
        steps.iter().map(|step| step["params"]["request_id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["r2", "r1"]);
    assert_eq!(steps[1]["on"].as_str(), Some("event:turn_queued"));
}

#[test]
fn what_toml_cannot_say_is_said_as_json() {
    let mut told = Told::new();
    let by = Client { name: "alice".to_owned(), acting_as: None };
    let params = json!({ "agent_id": "a", "cwd": null, "x": "${y}" }).as_object().unwrap().clone();
    let method = "create_agent".to_owned();
    told.at(0, What::CallBegan(1, Call { by, agent: None, method, params }));
    told.at(1, What::Asked(2, AgentId::parse("a").unwrap(), None));
    for (index, arguments) in ["{\"a\":[1,null]}", "{\"a\": /work", "", "[1]"].iter().enumerate() {
        told.at(1, What::Said(2, Piece::Calls { index, tool: "echo".to_owned() }));
        let text = (*arguments).to_owned();
        told.at(1, What::Said(2, Piece::Arguments { index, text }));
    }
    let parsed = told.parsed();
    let step = &parsed["step"][0];
    assert_eq!(step["params_json"].as_str(), Some(r#"{"agent_id":"a","cwd":null,"x":"$${y}"}"#));
    assert_eq!(step.get("params"), None);
    let asks = parsed["model"][0]["asks"].as_array().unwrap();
    let texts: Vec<_> = asks.iter().map(|ask| ask.get("args_json")?.as_str()).collect();
    assert_eq!(texts, [Some("{\"a\":[1,null]}"), Some("{\"a\": /project"), None, Some("[1]")]);
}

#[test]
fn a_caller_who_leaves_does_so_in_the_replay() {
    let mut told = Told::new();
    told.begins(0, 1, "send", Some("a")).at(50, What::CallEnded(1, CallEnd::Left));
    let steps = told.parsed()["step"].as_array().unwrap().clone();
    let clients: Vec<_> = steps.iter().filter_map(|step| step["client"].as_str()).collect();
    assert_eq!(clients, ["alice-1", "alice-1"], "another connection of alice would end as well");
    assert_eq!(steps[0]["headers"]["x-nexus-client"].as_str(), Some("alice"));
    assert_eq!(steps[1]["disconnect"].as_bool(), Some(true));
}

#[test]
fn files_belong_to_who_changed_them() {
    let mut told = Told::new();
    told.begins(100, 1, "list_agents", None).ends(110, 1);
    told.runs((1000, 2000), "make");
    told.file("/work/before", Found::Content(b"old".to_vec()), -5000);
    told.file("/work/made", Found::Content(b"new".to_vec()), 1500);
    told.file("/work/edited", Found::Content(b"by hand".to_vec()), 5000);
    told.file("/work/listed", Found::File, -5000).file("/work/ours", Found::Ours, 6000);
    told.file("/work/ours", Found::File, 6000).file("/work/gone", Found::Nothing, 0);
    let parsed = told.parsed();
    let files = &parsed["files"];
    assert_eq!(files["/project/before"].as_str(), Some("old"));
    assert_eq!(files["/project/listed"]["repeat"].as_integer(), Some(7));
    assert_eq!(files.as_table().map(Table::len), Some(2));
    assert_eq!(parsed["program"][0]["writes"]["/project/made"].as_str(), Some("new"));
    let steps = parsed["step"].as_array().unwrap();
    let edited = steps.iter().find_map(|step| step.get("files")).unwrap();
    assert_eq!(edited["/project/edited"].as_str(), Some("by hand"));
}

#[test]
fn modes_are_kept_where_they_are_unusual_and_a_program_changes_them() {
    let mut told = Told::new();
    let text = |text: &str| Found::Content(text.as_bytes().to_vec());
    told.file_with(0o755, "/work/run.sh", text("exit"), -5000);
    told.file("/work/plain", text("7 bytes"), -5000).file("/work/made", Found::Ours, 100);
    told.file_with(0o700, "/work/dir", Found::Dir, -5000);
    told.file_with(0o600, "/work/bytes", Found::Content(vec![255]), -5000);
    told.runs((9500, 9600), "chmod");
    told.file_with(0o400, "/work/plain", Found::File, -5000);
    let parsed = told.parsed();
    let files = &parsed["files"];
    assert_eq!(files["/project/run.sh"]["mode"].as_integer(), Some(0o755));
    assert_eq!(files["/project/dir"]["mode"].as_integer(), Some(0o700));
    assert_eq!(files["/project/bytes"]["mode"].as_integer(), Some(0o600));
    assert_eq!(files["/project/plain"].as_str(), Some("7 bytes"));
    let changed = &parsed["program"][0]["writes"]["/project/plain"];
    assert_eq!(
        (changed["text"].as_str(), changed["mode"].as_integer()),
        (Some("7 bytes"), Some(0o400))
    );
}

#[test]
fn a_question_that_reached_nobody_is_asked_once() {
    let a = AgentId::parse("a").unwrap();
    let view = || {
        let body = json!({ "messages": [{ "role": "user", "content": "Hi" }] }).to_string();
        View::read(Wire::Openai, body.as_bytes())
    };
    let mut told = Told::new();
    told.at(0, What::Asked(1, a.clone(), view())).at(1, What::Unasked(1));
    told.at(2, What::Asked(2, a, view()));
    let models = told.parsed()["model"].as_array().unwrap().clone();
    let shown: Vec<_> = models.iter().map(|model| model["shown"].as_str()).collect();
    assert_eq!(shown, [Some("user: Hi")]);
}

#[test]
fn answers_keep_how_they_came_and_how_they_broke() {
    let mut told = Told::new();
    let answer = |end| {
        let (delay, took) = (Duration::from_millis(1250), Duration::from_millis(80));
        Answer { usage: None, finish: None, end, delay, took }
    };
    let says = |text: &str| Piece::Says(text.to_owned());
    let a = AgentId::parse("a").unwrap();
    for number in 1..=5 {
        told.at(0, What::Asked(number, a.clone(), None));
    }
    told.at(1, What::Said(2, says("In /work"))).at(1, What::Said(1, says("So")));
    told.at(1, What::Said(2, says(" I am"))).at(1, What::Answered(2, answer(AnswerEnd::Whole)));
    told.at(2, What::Answered(1, answer(AnswerEnd::Dropped)));
    let (fault, status) = (crate::provider::Fault::Status, Some(429));
    let retry_after = Some(Duration::from_secs(2));
    let (said, head) = (Some("Not in /work".to_owned()), Head::Came);
    let broke = AnswerEnd::Broke { fault, status, said, retry_after, head };
    told.at(3, What::Answered(3, answer(broke)));
    told.at(4, What::Said(4, says("Half of")));
    let parsed = told.parsed();
    let models = parsed["model"].as_array().unwrap();
    assert_eq!(models[0]["fault"]["stall"].as_integer(), Some(1), "asked first, answered later");
    assert_eq!(models[1]["says"][0].as_str(), Some("In /project"));
    assert_eq!(models[1]["delay"].as_str(), Some("1250ms"));
    assert_eq!(models[1]["pause"].as_str(), Some("80ms"));
    assert_eq!(models[2]["fault"]["retry_after"].as_str(), Some("2s"));
    assert_eq!(models[2]["fault"]["message"].as_str(), Some("Not in /project"));
    assert_eq!(models[3]["says"].as_str(), Some("Half of"), "what had come of it is kept");
    assert_eq!(models[3]["fault"]["stall"].as_integer(), Some(1));
    assert_eq!(models[4]["fault"]["stall"].as_str(), Some("headers"));
    assert_eq!(models[4]["times"].as_str(), Some("always"), "still open");
}

#[test]
fn a_change_that_is_noticed_late_may_lie_before_what_it_comes_after() {
    let mut told = Told::new();
    told.begins(0, 1, "list_agents", None).ends(1, 1).event(
        2,
        "turn_started",
        Meaning::TurnStarted,
    );
    // Somebody changed it while a call was on its way which nobody knew of yet.
    told.begins(20, 2, "list_agents", None);
    told.file("/work/a", Found::Content(b"1".to_vec()), -10_000);
    told.file("/work/a", Found::Content(b"22".to_vec()), 12).ends(30, 2);
    assert_eq!(told.0.order.event_between(9, 4), None);
    let steps = told.steps();
    assert_eq!(steps.len(), 3, "{steps:?}");
}

/// How a call ended that was refused.
fn refused(code: i64, kind: &str) -> CallEnd {
    let message = String::new();
    CallEnd::Error(ErrorObject { code, message, data: Some(json!({ "kind": kind })) })
}

#[test]
fn of_calls_at_the_same_time_the_one_that_was_refused_comes_last() {
    let mut told = Told::new();
    told.begins(0, 1, "rename_session", None).begins(1, 2, "save_session", None);
    told.at(5, What::CallEnded(1, refused(-32602, "")));
    told.ends(4, 2);
    assert_eq!(
        told.steps(),
        ["call=save_session background=true", "sleep=100ms", "call=rename_session expect_error="]
    );
}

#[test]
fn what_the_disk_failed_and_who_lost_a_race_is_said_at_the_top() {
    let mut told = Told::new();
    told.begins(0, 1, "save_session", None).at(1, What::CallEnded(1, refused(-32000, "storage")));
    let text = told.0.text(State::Whole);
    assert!(text.contains("\n# The disk failed 1 call; it is sound in a replay"), "{text}");
    assert!(!text.contains("lost a race"), "{text}");
    told.begins(10, 2, "rename_session", None);
    let by = Client { name: "alice".to_owned(), acting_as: None };
    let params = Map::from_iter([("agent_id".to_owned(), "a".into())]);
    let method = "save_session".to_owned();
    told.at(11, What::CallBegan(3, Call { by, agent: None, method, params }));
    told.event(12, "agent_restored", Meaning::None).ends(13, 2);
    told.at(14, What::CallEnded(3, refused(-32602, "")));
    let text = told.0.text(State::Whole);
    assert!(text.contains("\n# Calls that lost a race with another,"), "{text}");
}

#[test]
fn what_the_server_removed_is_no_programs_doing() {
    let mut told = Told::new();
    told.file("/work/a", Found::Content(b"1".to_vec()), -5000);
    told.at(1000, What::ProgramStarted(1, vec!["ls".to_owned()], time(1000)));
    told.file("/work/a", Found::OurRemoval, 0).file("/work/a", Found::Nothing, 0);
    assert!(!told.0.text(State::Whole).contains("remove"), "{}", told.0.text(State::Whole));
}

#[test]
fn cursors_count_from_the_beginning_of_the_recording() {
    let mut told = Told::new();
    let by = Client { name: "alice".to_owned(), acting_as: None };
    told.at(0, What::Begins(40));
    told.at(1, What::StreamOpened(1, Stream { by, agent: None, after: Some(43) }));
    assert!(told.0.text(State::Whole).contains("watch = { after = 3 }"));
}
