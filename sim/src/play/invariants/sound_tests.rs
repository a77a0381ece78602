//! Databases with one thing wrong each.

use serde_json::json;

use super::{Rest, unsound};
use crate::play::kept::{Kept, KeptAgent, KeptEvent, KeptRequest};

fn event(seq: u64, name: &str, request: &str) -> KeptEvent {
    let json = json!({"type": name, "seq": seq, "request_id": request});
    KeptEvent { seq, agent: "scout".to_owned(), name: name.to_owned(), json, event: None }
}

fn request(id: &str, status: &str) -> KeptRequest {
    KeptRequest { agent: 1, id: id.to_owned(), status: status.to_owned(), ..KeptRequest::default() }
}

/// One agent with one request that is completed.
fn kept() -> Kept {
    let agent = KeptAgent {
        number: 1,
        id: "scout".to_owned(),
        parent: None,
        status: "active".to_owned(),
        messages: Vec::new(),
    };
    Kept {
        last_seq: 3,
        agents: vec![agent],
        requests: vec![request("r1", "completed")],
        events: vec![
            event(1, "agent_created", ""),
            event(2, "turn_started", "r1"),
            event(3, "turn_completed", "r1"),
        ],
        ..Kept::default()
    }
}

fn found(spoil: impl FnOnce(&mut Kept)) -> Vec<String> {
    let mut kept = kept();
    spoil(&mut kept);
    unsound(&kept, Rest::Complete)
}

#[test]
fn a_sound_database_is_sound() {
    assert_eq!(found(|_| ()), Vec::<String>::new());
}

#[test]
fn damage_is_told() {
    let found = found(|kept| kept.damage.push("row 3 missing".to_owned()));
    assert_eq!(found, ["the database is damaged: row 3 missing"]);
}

#[test]
fn a_call_without_a_result_is_seen() {
    let asks = json!({"role": "assistant", "content": "", "tool_calls": [
        {"id": "c", "name": "echo", "arguments": {}}
    ]});
    let asks = serde_json::from_value(asks).unwrap();
    let found = found(|kept| kept.agents[0].messages.push(asks));
    assert_eq!(found, ["scout in the database: c has no result"]);
}

#[test]
fn a_request_that_was_left_open_is_seen_once_all_is_at_rest() {
    let mut open = kept();
    open.requests.push(request("r2", "running"));
    assert_eq!(unsound(&open, Rest::Complete), ["r2 of scout was left running"]);
    assert_eq!(unsound(&open, Rest::Unsure), Vec::<String>::new());
}

#[test]
fn an_ended_request_has_one_event_that_says_so() {
    let none = found(|kept| drop(kept.events.pop()));
    assert_eq!(none, ["r1 of scout: it is completed and no event says so"]);
    let two = found(|kept| {
        kept.events.push(event(4, "turn_interrupted", "r1"));
        kept.last_seq = 4;
    });
    assert_eq!(two, ["r1 of scout: it has 2 events that end it"]);
    let other = found(|kept| kept.requests[0].status = "interrupted".to_owned());
    assert_eq!(other, ["r1 of scout: it is interrupted and its last event turn_completed"]);
}

#[test]
fn events_of_an_earlier_agent_of_that_id_are_not_counted() {
    let found = found(|kept| {
        let before = [(1, "agent_created", ""), (2, "turn_completed", "r1")];
        let mut events: Vec<_> =
            before.map(|(seq, name, request)| event(seq, name, request)).into();
        let now = [(3, "agent_created", ""), (4, "turn_completed", "r1")];
        events.extend(now.map(|(seq, name, request)| event(seq, name, request)));
        kept.events = events;
        kept.last_seq = 4;
    });
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn numbers_of_events_are_given_once() {
    let twice = found(|kept| {
        kept.events[1].seq = 1;
        kept.events[1].json["seq"] = 1.into();
    });
    assert_eq!(twice, ["two events have the number 1"]);
    let other = found(|kept| kept.events[1].json["seq"] = 7.into());
    assert_eq!(other, ["event 2 says that it has another number"]);
    let beyond = found(|kept| kept.last_seq = 2);
    assert_eq!(beyond, ["event 3 is beyond the last number 2"]);
}
