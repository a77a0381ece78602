//! Runs in which something is done twice.

use serde_json::{Value, json};

use super::super::seen_tests::{Run, made};
use super::{Check, Observation, Once, Outside, misplaced};
use crate::play::kept::{Kept, KeptAgent, KeptEvent};
use crate::play::observed::Question;

fn users(count: usize) -> Value {
    let user = json!({"role": "user", "content": "do it"});
    json!({"messages": vec![user; count]})
}

/// What is found of turns for which a model was asked: the start of the server, and the turn.
fn found(run: &mut Run, turns: &[(u64, usize)]) -> Vec<String> {
    let mut once = Once::default();
    let mut found = Vec::new();
    for (start, turn) in turns {
        let (agent, body) = ("scout".to_owned(), users(*turn).to_string().into());
        let question = Question { server_start: *start, agent, body };
        found.extend(once.on(&Observation::AskBegan(question), &run.seen()));
    }
    found
}

#[test]
fn a_model_is_not_asked_again_after_a_restart() {
    let turns = [(1, 1), (1, 1), (1, 2), (2, 3), (2, 3), (3, 4)];
    assert_eq!(found(&mut Run::default(), &turns), Vec::<String>::new());
    let again = "scout: a model was asked for turn 2 again after a restart";
    assert_eq!(found(&mut Run::default(), &[(1, 1), (1, 2), (2, 2)]), [again]);
    let lost = "scout: a model was asked for turn 1 again after a restart";
    assert_eq!(found(&mut Run::default(), &[(1, 1), (1, 2), (2, 1)]), [lost]);
}

#[test]
fn another_agent_of_that_id_begins_anew() {
    let destroy = made("destroy_agent", None, &json!({"agent_id": "scout"}), 0, None);
    let mut run = Run { calls: vec![destroy], ..Run::default() };
    assert_eq!(found(&mut run, &[(1, 1), (2, 1)]), Vec::<String>::new());
    for (overwrite, problems) in [(true, 0), (false, 1)] {
        let params = json!({"session_name": "before", "agent_id": "scout", "overwrite": overwrite});
        let load = made("load_session", None, &params, 0, None);
        let mut run = Run { calls: vec![load], ..Run::default() };
        assert_eq!(found(&mut run, &[(1, 1), (2, 1)]).len(), problems, "{overwrite}");
    }
}

/// What is found of events: their names, requests and tools.
fn events(events: &[(&str, &str, &str)]) -> Vec<String> {
    let event = |(seq, (name, request, tool)): (u64, &(&str, &str, &str))| KeptEvent {
        seq,
        agent: "scout".to_owned(),
        name: (*name).to_owned(),
        json: json!({"request_id": request, "tool_id": tool}),
        event: None,
    };
    let agent = KeptAgent { number: 1, id: "scout".to_owned(), ..KeptAgent::default() };
    let kept = Kept { events: (1..).zip(events).map(event).collect(), ..Kept::default() };
    misplaced(&kept, &agent)
}

#[test]
fn a_tool_call_starts_once_and_ends_once() {
    let start = ("turn_started", "r1", "");
    let (call, end) = (("tool_started", "r1", "c"), ("tool_completed", "r1", "c"));
    assert_eq!(events(&[start, call, end, call, end]), Vec::<String>::new(), "models repeat ids");
    assert_eq!(events(&[start, call, call]), ["c of r1 of scout: it started twice"]);
    assert_eq!(events(&[start, end]), ["c of r1 of scout: it ended and had not started"]);
    let over = ("turn_interrupted", "r1", "");
    let late = "c of r1 of scout: it started while its turn did not run";
    assert_eq!(events(&[start, over, call]), [late]);
    let late = "c of r1 of scout: it ended and had not started";
    assert_eq!(events(&[start, call, over, end]), [late]);
}

#[test]
fn an_mcp_server_is_not_asked_more_often_than_calls_are_on_record() {
    let started = |name: &str| KeptEvent {
        name: "tool_started".to_owned(),
        json: json!({"name": name}),
        ..KeptEvent::default()
    };
    let kept = |names: &[&str]| Kept {
        events: names.iter().map(|name| started(name)).collect(),
        ..Kept::default()
    };
    let mut outside = Outside::default();
    let one = kept(&["mcp__mine__work", "mcp__mine__other"]);
    assert_eq!(outside.called("work", &one), Vec::<String>::new());
    let again = "work: it was asked for 2 times, and 1 calls are on record";
    assert_eq!(outside.called("work", &one), [again]);
    let mut outside = Outside { asked: 5, on_record: 5 };
    assert_eq!(outside.called("work", &one), Vec::<String>::new(), "it is another database");
}
