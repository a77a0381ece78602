//! What the model of the pool allows, and what it sees.

use std::sync::Arc;

use jiff::Timestamp;
use nexus3::event::Ended;
use nexus3::id::RequestId;
use serde_json::json;

use super::super::seen_tests::{Run, kept_at, survey};
use super::*;
use crate::play::kept::{KeptAgent, KeptEvent};

fn event(what: What, request: Option<&str>) -> Event {
    let event = Event::new(&AgentId::parse("scout").unwrap(), Timestamp::UNIX_EPOCH, what);
    match request {
        Some(request) => event.of(&RequestId::parse(request).unwrap()),
        None => event,
    }
}

fn created() -> Event {
    event(What::AgentCreated { parent_agent_id: None }, None)
}

fn queued(request: &str) -> Event {
    event(What::TurnQueued { position: 0 }, Some(request))
}

fn started(request: &str) -> Event {
    let (content, source) = (Arc::from("Hello"), "client".to_owned());
    event(What::TurnStarted { content, source, source_agent_id: None }, Some(request))
}

fn cancelled(request: &str) -> Event {
    let ended = Ended { reason: "requested".to_owned(), error: None, partial: String::new() };
    event(What::TurnCancelled(ended), Some(request))
}

fn destroyed() -> Event {
    event(What::AgentDestroyed { parent_agent_id: None }, None)
}

/// What the events do that is not allowed.
fn refused(events: &[Event]) -> Vec<String> {
    let mut pool = Pool::default();
    events.iter().filter_map(|event| pool.on("scout", event)).collect()
}

#[test]
fn turns_wait_run_and_end_in_their_order() {
    let good = [
        created(),
        queued("r1"),
        queued("r2"),
        started("r1"),
        cancelled("r1"),
        queued("r3"),
        cancelled("r3"),
        started("r2"),
        cancelled("r2"),
        destroyed(),
        created(),
    ];
    assert_eq!(refused(&good), Vec::<String>::new());
}

#[test]
fn what_cannot_be_is_refused() {
    for (events, problem) in [
        (vec![created()], "scout is created although it is there"),
        (vec![started("r1")], "r1 of scout starts although it is not the next (turn_started)"),
        (
            vec![queued("r1"), queued("r2"), started("r1"), started("r2")],
            "r2 of scout starts while another turn runs (turn_started)",
        ),
        (
            vec![queued("r1"), cancelled("r1"), cancelled("r1")],
            "r1 of scout ends although it neither waits nor runs (turn_cancelled)",
        ),
        (
            vec![queued("r1"), cancelled("r1"), queued("r1")],
            "r1 of scout is queued although it has ended (turn_queued)",
        ),
        (
            vec![queued("r1"), queued("r1")],
            "r1 of scout is queued although it waits or runs already (turn_queued)",
        ),
        (vec![queued("r1"), destroyed()], "scout is destroyed before its turns have ended"),
    ] {
        let events: Vec<Event> = [vec![created()], events].concat();
        assert_eq!(refused(&events), [problem]);
    }
}

#[test]
fn a_server_that_says_otherwise_is_seen() {
    let run = Run::default();
    let events = [created(), queued("r1"), started("r1"), cancelled("r1"), queued("r2")];
    let kept_event = |event: Event| KeptEvent {
        agent: "scout".to_owned(),
        event: Some(event),
        ..KeptEvent::default()
    };
    let agent = |id: &str| KeptAgent {
        id: id.to_owned(),
        status: "active".to_owned(),
        ..KeptAgent::default()
    };
    let kept = Kept {
        agents: vec![agent("scout"), agent("ghost")],
        events: events.map(kept_event).into(),
        ..Kept::default()
    };
    let mut survey = survey("scout", &[json!({ "role": "user", "content": "Goodbye" })]);
    let key = (AgentId::parse("scout").unwrap(), RequestId::parse("r1").unwrap());
    survey.requests.insert(key, None);
    let end = End { survey: Some(&survey), left_behind: None };
    let found = [
        "the model of the pool: ghost is on record, and its events say that it is not there",
        "the model of the pool: r1 of scout is unknown, and its events say turn_cancelled",
        "the model of the pool: the conversation of scout lacks \"Hello\", or has it elsewhere",
        "the model of the pool: r2 of scout has not ended",
    ];
    assert_eq!(Reference::default().at_rest(&kept, &run.seen(), &end), found);
}

#[test]
fn an_agent_is_on_record_below_its_parent() {
    let below = |parent: &str| {
        let [boss, child] = ["boss", "child"].map(|id| AgentId::parse(id).unwrap());
        let created = |parent_agent_id| What::AgentCreated { parent_agent_id };
        let kept = kept_at(vec![
            (0, boss.as_str(), "", created(None)),
            (0, child.as_str(), "", created(Some(boss.clone()))),
        ]);
        let agent = |id: &AgentId, parent: Option<&str>| {
            let (id, parent) = (id.to_string(), parent.map(str::to_owned));
            KeptAgent { id, parent, status: "dormant".to_owned(), ..KeptAgent::default() }
        };
        let agents = vec![agent(&boss, None), agent(&child, Some(parent))];
        let end = End { survey: None, left_behind: None };
        Reference::default().at_rest(&Kept { agents, ..kept }, &Run::default().seen(), &end)
    };
    assert_eq!(below("boss"), Vec::<String>::new());
    let found = "the model of the pool: child is on record below .1, and its events say below \
                 Some(\"boss\")";
    assert_eq!(below(".1"), [found]);
}
