//! Notes in, the steps and parts of a scenario out.

use serde_json::json;
use toml::{Table, Value as Toml};

use super::*;
use crate::config::Config;
use crate::id::{AgentId, ConfirmId};
use crate::provider::Secrets;
use crate::provider::script::{View, Wire};
use crate::record::note::{
    Answer, AnswerEnd, Call, CallEnd, Client, Event, Found, Meaning, Ran, RanEnd, Sighting,
};
use crate::world::Exit;

struct Told(Story);

impl Told {
    fn new() -> Self {
        let setting = Setting {
            flags: Vec::new(),
            config: Config::default(),
            found: None,
            home: "/home/me/.nexus3".into(),
            cwd: "/work".into(),
            earlier: 0,
        };
        let hidden = Hidden::of(Secrets::default(), [("/work".into(), "/project")].into_iter());
        Self(Story::new(hidden, setting, time(0)))
    }

    fn at(&mut self, millis: u64, what: What) -> &mut Self {
        self.0.on(Note { at: Duration::from_millis(millis), what });
        self
    }

    fn begins(&mut self, millis: u64, number: u64, method: &str, agent: Option<&str>) -> &mut Self {
        let by = Client { name: "alice".to_owned(), acting_as: None };
        let (method, agent) = (method.to_owned(), agent.map(str::to_owned));
        self.at(millis, What::CallBegan(number, Call { by, agent, method, params: Map::new() }))
    }

    fn ends(&mut self, millis: u64, number: u64) -> &mut Self {
        self.at(millis, What::CallEnded(number, CallEnd::Result(json!({}))))
    }

    fn event(&mut self, millis: u64, name: &'static str, meaning: Meaning) -> &mut Self {
        let agent = Some(AgentId::parse("a").unwrap());
        self.at(millis, What::Event(Event { name, agent, meaning }))
    }

    fn file(&mut self, path: &str, found: Found, modified: i64) -> &mut Self {
        let len = match &found {
            Found::Content(content) => content.len() as u64,
            _ => 7,
        };
        let sighting = Sighting { path: path.into(), found, len, modified: time(modified) };
        self.at(9000, What::File(sighting))
    }

    fn parsed(&self) -> Table {
        self.0.text(State::Whole).parse().unwrap()
    }

    /// The steps, each with all of its keys but the client.
    fn steps(&self) -> Vec<String> {
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
fn time(millis: i64) -> Timestamp {
    Timestamp::from_millisecond(1_800_000_000_000 + millis).unwrap()
}

#[test]
fn what_is_missing_is_said_at_the_top() {
    let mut told = Told::new();
    let lines = |story: &Story, state| {
        story.text(state).lines().take_while(|line| line.starts_with('#')).count()
    };
    assert_eq!(lines(&told.0, State::Whole), 1);
    told.0.earlier = 2;
    assert_eq!(lines(&told.0, State::Cut), 3);
    assert!(told.0.text(State::Cut).contains("\n# It is cut here: "));
}

#[test]
fn a_call_that_is_open_when_the_next_begins_goes_on_beside_it() {
    let mut told = Told::new();
    told.begins(0, 1, "send", Some("a")).begins(50, 2, "list_agents", None).ends(60, 2).ends(70, 1);
    told.begins(90, 3, "list_agents", None).ends(95, 3);
    assert_eq!(
        told.steps(),
        [
            "name=call 1 call=send agent=a background=true",
            "call=list_agents",
            "after=call 1 call=list_agents"
        ]
    );
}

#[test]
fn what_came_after_an_event_waits_for_it_and_for_as_long_as_it_came_later() {
    let mut told = Told::new();
    told.begins(0, 1, "send", Some("a")).event(10, "turn_started", Meaning::TurnStarted);
    told.event(20, "tool_started", Meaning::None).event(30, "tool_started", Meaning::None);
    told.begins(2040, 2, "cancel", Some("a")).ends(2050, 2).ends(2050, 1);
    assert_eq!(
        told.steps(),
        [
            "call=send agent=a background=true",
            "on=event:tool_started nth=2 agent=a sleep=2100ms",
            "call=cancel agent=a"
        ]
    );
}

#[test]
fn a_pause_of_a_person_is_kept_and_that_of_a_program_is_not() {
    let mut told = Told::new();
    told.begins(0, 1, "list_agents", None)
        .ends(5, 1)
        .begins(400, 2, "list_agents", None)
        .ends(410, 2);
    told.begins(60_000, 3, "list_agents", None).ends(60_010, 3);
    assert_eq!(
        told.steps(),
        ["call=list_agents", "call=list_agents", "sleep=59600ms", "call=list_agents"]
    );
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
    told.at(1000, What::ProgramStarted(5, vec!["make".to_owned()], time(1000)));
    let end = RanEnd::Exit(Exit::Code(0));
    let (stdout, stderr, took) = (b"ok".to_vec(), Vec::new(), Duration::from_secs(1));
    told.at(2000, What::ProgramEnded(5, Ran { stdout, stderr, took, at: time(2000), end }));
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
    let answer = |says: &[&str], end| Answer {
        thinks: Vec::new(),
        says: says.iter().map(|&text| text.to_owned()).collect(),
        calls: Vec::new(),
        usage: None,
        finish: None,
        end,
        delay: Duration::from_millis(1250),
        took: Duration::from_millis(80),
    };
    let a = AgentId::parse("a").unwrap();
    for number in 1..=4 {
        told.at(0, What::Asked(number, a.clone(), None));
    }
    told.at(1, What::Answered(2, answer(&["In /work", " I am"], AnswerEnd::Whole)));
    told.at(2, What::Answered(1, answer(&["So"], AnswerEnd::Dropped)));
    let (fault, status) = (crate::provider::Fault::Status, Some(429));
    let retry_after = Some(Duration::from_secs(2));
    told.at(3, What::Answered(3, answer(&[], AnswerEnd::Broke { fault, status, retry_after })));
    let parsed = told.parsed();
    let models = parsed["model"].as_array().unwrap();
    assert_eq!(models[0]["fault"]["stall"].as_integer(), Some(1), "asked first, answered later");
    assert_eq!(models[1]["says"][0].as_str(), Some("In /project"));
    assert_eq!(
        (models[1]["delay"].as_str(), models[1]["pause"].as_str()),
        (Some("1300ms"), Some("80ms"))
    );
    assert_eq!(models[2]["fault"]["retry_after"].as_str(), Some("2s"));
    assert_eq!(models[3]["times"].as_str(), Some("always"), "still open");
}
