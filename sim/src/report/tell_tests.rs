//! How stories are told, by hand-made ones.

use nexus3::event::{Ended, What};
use nexus3::id::{AgentId, RequestId};
use serde_json::json;

use super::*;
use crate::scenario::SERVER;

fn event(agent: &str, at_ms: i64, seq: Seq, what: What) -> Event {
    let at = jiff::Timestamp::from_millisecond(crate::machine::EPOCH * 1000 + at_ms).unwrap();
    let event = Event::new(&AgentId::parse(agent).unwrap(), at, what);
    Event { seq: Some(seq), ..event.of(&RequestId::parse("r1").unwrap()) }
}

fn moment(at_ms: u64, who: &str, what: Happening) -> Moment {
    Moment { at: Duration::from_millis(at_ms), who: who.to_owned(), what }
}

/// Lane, title, beginning and end in milliseconds, and whether it went wrong.
fn items(told: &Told) -> Vec<(&str, &str, u64, Option<u64>, bool)> {
    let items = told.items.iter();
    let shown = |item: &Item| (item.at / 1000, item.end.map(|end| end / 1000));
    items
        .map(|item| {
            let ((at, end), lane) = (shown(item), told.lanes[item.lane].name.as_str());
            (lane, item.title.as_str(), at, end, item.bad)
        })
        .collect()
}

#[test]
fn children_stand_beside_their_parents_whenever_they_came() {
    let created = |agent: &str, parent: Option<&str>, seq| {
        let parent_agent_id = parent.map(|parent| AgentId::parse(parent).unwrap());
        event(agent, 1, seq, What::AgentCreated { parent_agent_id })
    };
    let journal = vec![
        created("a", None, 1),
        created("b", None, 2),
        created("b1", Some("b"), 3),
        created("a1", Some("a"), 4),
        created("a11", Some("a1"), 5),
    ];
    let told = told(&Story { moments: Vec::new(), journal });
    let lanes: Vec<(&str, usize)> =
        told.lanes.iter().map(|lane| (lane.name.as_str(), lane.depth)).collect();
    assert_eq!(lanes, [(SERVER, 0), ("a", 0), ("a1", 1), ("a11", 2), ("b", 0), ("b1", 1)]);
}

#[test]
fn an_agent_that_gets_another_name_keeps_its_lane() {
    let id = |id: &str| Some(AgentId::parse(id).unwrap());
    let renamed = What::AgentUpdated {
        parent_agent_id: None,
        changed: serde_json::Map::new(),
        previous_agent_id: id("a"),
    };
    let journal = vec![
        event("a", 1, 1, What::AgentCreated { parent_agent_id: None }),
        event("b", 2, 2, What::AgentCreated { parent_agent_id: id("a") }),
        event("scout", 3, 3, renamed),
        event("c", 4, 4, What::AgentCreated { parent_agent_id: id("scout") }),
        event("scout", 5, 5, What::AgentDestroyed { parent_agent_id: None }),
    ];
    let told = told(&Story { moments: Vec::new(), journal });
    let lanes: Vec<(&str, usize)> =
        told.lanes.iter().map(|lane| (lane.name.as_str(), lane.depth)).collect();
    assert_eq!(lanes, [(SERVER, 0), ("a → scout", 0), ("b", 1), ("c", 1)]);
    assert_eq!(told.items.iter().filter(|item| item.lane == 1).count(), 3);
}

#[test]
fn a_turn_that_is_interrupted_takes_its_tools_along() {
    let ended = Ended { reason: "crash".to_owned(), error: None, partial: String::new() };
    let started = What::TurnStarted {
        content: "Go".into(),
        source: "alice".to_owned(),
        source_agent_id: None,
    };
    let tool = What::ToolStarted {
        tool_id: "c1".to_owned(),
        name: "read_file".to_owned(),
        params: json!({ "path": "a.txt" }).to_string(),
    };
    let journal = vec![
        event("a", 10, 1, What::TurnQueued { position: 1 }),
        event("a", 20, 2, started),
        event("a", 30, 3, tool),
        event("a", 90, 4, What::TurnInterrupted(ended)),
    ];
    let told = told(&Story { moments: Vec::new(), journal });
    let expected = [
        ("a", "queued behind 1", 10, Some(20), false),
        ("a", "Go", 20, Some(90), true),
        ("a", "read_file a.txt", 30, Some(90), true),
    ];
    assert_eq!(items(&told), expected);
}

#[test]
fn a_client_that_leaves_waits_for_nothing() {
    let called = Happening::Called {
        job: 1,
        name: "send".to_owned(),
        agent: Some("a".to_owned()),
        params: String::new(),
    };
    let late = Happening::Answered { job: 1, how: How::Good, text: String::new() };
    let moments = vec![
        moment(10, "alice", called),
        moment(20, "alice", Happening::Left { told: "is gone" }),
        moment(30, "alice", late),
    ];
    let told = told(&Story { moments, journal: Vec::new() });
    let expected = [("alice", "send", 10, Some(20), true), ("alice", "is gone", 20, None, false)];
    assert_eq!(items(&told), expected);
}

#[test]
fn a_server_that_is_back_ends_the_crash_that_took_it_away() {
    let crash = |name: &str| Happening::FaultBegan { name: name.to_owned(), reach: Reach::Host };
    let slow = Happening::FaultBegan { name: "hold".to_owned(), reach: Reach::Part };
    let moments = vec![
        moment(1, "fault", slow),
        moment(2, "fault", crash("point 7")),
        moment(9, SERVER, Happening::Listens),
        moment(12, "fault", Happening::FaultEnded { name: "hold".to_owned() }),
    ];
    let told = told(&Story { moments, journal: Vec::new() });
    let faults: Vec<(&str, Option<u64>)> =
        told.faults.iter().map(|fault| (fault.name.as_str(), fault.end)).collect();
    assert_eq!(faults, [("hold", Some(12_000)), ("point 7", Some(9_000))]);
}

#[test]
fn what_the_database_lost_is_told_as_readers_heard_it() {
    let heard = |at, seq| {
        let event = event("a", 5, seq, What::TurnQueued { position: 0 });
        moment(at, "alice", Happening::Heard(Box::new(event)))
    };
    let journal = vec![event("a", 5, 1, What::AgentCreated { parent_agent_id: None })];
    let told = told(&Story { moments: vec![heard(8, 1), heard(9, 2)], journal });
    let shown: Vec<(&str, u64)> =
        told.items.iter().map(|item| (item.title.as_str(), item.at)).collect();
    assert_eq!(shown, [("created", 5_000), ("queued behind 0", 9_000)]);
    let seen = &told.items[0].more.last().unwrap().1;
    assert_eq!(seen, "agent_created #1, told alice 0.008 s");
}

#[test]
fn a_model_is_told_by_what_it_answers() {
    let told = |says: &str, tools: &[&str]| {
        let asks = tools.iter().map(|tool| ((*tool).to_owned(), "{}".to_owned())).collect();
        let gives = Gives { thinks: String::new(), says: says.to_owned(), asks };
        answered("entry 1", How::Good, &gives)
    };
    assert_eq!(told("", &[]), "entry 1");
    assert_eq!(told("Yes.", &[]), "“Yes.”");
    assert_eq!(
        told("", &["nexus_create", "nexus_create", "read_file"]),
        "calls create ×2, read_file"
    );
    assert_eq!(told("So.", &["mcp__py__weather"]), "“So.” calls py: weather");
    let fault = answered("entry 2 with {…}", How::Bad, &Gives::default());
    assert_eq!(fault, "entry 2 with {…}");
}

#[test]
fn an_mcp_server_is_no_client_and_has_what_its_tools_are_asked_for() {
    let started = What::ToolStarted {
        tool_id: "t1".to_owned(),
        name: "mcp__py__weather".to_owned(),
        params: "{}".into(),
    };
    let journal = vec![
        event("a", 1, 1, What::AgentCreated { parent_agent_id: None }),
        event("a", 2, 2, started),
    ];
    let moments = vec![moment(1, "py", Happening::Served("is started".to_owned()))];
    let told = told(&Story { moments, journal });
    let lanes: Vec<&str> = told.lanes.iter().map(|lane| lane.name.as_str()).collect();
    assert_eq!(lanes, [SERVER, "a", "py"]);
    let tool = told.items.iter().find(|item| item.title == "py: weather");
    assert_eq!(tool.and_then(|item| item.to), Some(2));
}
