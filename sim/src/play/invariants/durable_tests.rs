//! Runs in which something that was told is lost, or something is kept that nobody asked for.

use std::sync::Arc;
use std::time::Duration;

use nexus3::message::Message;
use nexus3::rpc::wire::ErrorObject;
use serde_json::{Value, json};

use super::super::seen_tests::made;
use super::super::told::{Fate, Told};
use super::{claimed, lost};
use crate::play::director::Made;
use crate::play::kept::{Kept, KeptAgent, KeptRequest};

type Answer = Option<Result<Value, ErrorObject>>;

fn create(id: &str, at: u64, answer: Answer) -> Made {
    made("create_agent", None, &json!({"agent_id": id}), at, answer)
}

fn created(id: &str, at: u64) -> Made {
    create(id, at, Some(Ok(json!({"agent_id": id}))))
}

fn destroy(id: &str, at: u64, answer: Answer) -> Made {
    made("destroy_agent", None, &json!({"agent_id": id}), at, answer)
}

fn destroyed(id: &str, at: u64) -> Made {
    destroy(id, at, Some(Ok(json!({"destroyed": [id]}))))
}

fn send(request: &str, at: u64, answer: Answer) -> Made {
    let params = json!({"content": format!("do {request}"), "request_id": request});
    made("send", Some("scout"), &params, at, answer)
}

fn answered(request: &str, at: u64) -> Made {
    send(request, at, Some(Ok(json!({"request_id": request, "content": "done"}))))
}

fn request(id: &str, status: &str) -> KeptRequest {
    let outcome = json!({"completed": {"content": "done"}});
    let (id, content) = (id.to_owned(), format!("do {id}"));
    KeptRequest { agent: 1, id, content, status: status.to_owned(), outcome }
}

/// The agent `scout` with turns of these requests.
fn kept(turns: &[&str]) -> Kept {
    let messages = turns.iter().flat_map(|request| {
        let content: Arc<str> = format!("do {request}").into();
        let answer =
            Message::Assistant { content: "done".to_owned(), tool_calls: Vec::new(), meta: None };
        [Message::User { content, meta: None }, answer]
    });
    let agent = KeptAgent {
        number: 1,
        id: "scout".to_owned(),
        parent: None,
        status: "active".to_owned(),
        messages: messages.collect(),
    };
    let requests = turns.iter().map(|id| request(id, "completed")).collect();
    Kept { agents: vec![agent], requests, ..Kept::default() }
}

fn told(calls: &[Made]) -> Told<'_> {
    Told { calls, raw: &[], server_start: 1 }
}

fn found(kept: &Kept, calls: &[Made]) -> Vec<String> {
    let told = told(calls);
    [claimed(kept, &told), lost(kept, &told)].concat()
}

const NOTHING: [&str; 0] = [];

#[test]
fn what_was_told_is_there() {
    let calls = [created("scout", 0), answered("r1", 1), answered("r2", 2)];
    assert_eq!(found(&kept(&["r1", "r2"]), &calls), NOTHING);
}

#[test]
fn an_agent_that_was_created_is_not_lost() {
    let gone = "scout: it was created and is not there";
    assert_eq!(found(&Kept::default(), &[created("scout", 0)]), [gone]);
    assert_eq!(found(&Kept::default(), &[create("scout", 0, None)]), NOTHING);
    let unsure = [created("scout", 0), destroy("scout", 1, None)];
    assert_eq!(found(&Kept::default(), &unsure), NOTHING, "it may be destroyed");
    assert_eq!(found(&kept(&[]), &unsure), NOTHING, "or not");
}

#[test]
fn an_agent_that_was_destroyed_stays_so() {
    let calls = [created("scout", 0), destroyed("scout", 1)];
    assert_eq!(found(&kept(&[]), &calls), ["scout: it was destroyed and is there"]);
    assert_eq!(found(&Kept::default(), &calls), NOTHING);
    let again = [created("scout", 0), destroyed("scout", 1), create("scout", 2, None)];
    assert_eq!(found(&kept(&[]), &again), NOTHING);
    let since = Duration::from_secs(2);
    let again = [created("scout", 0), destroyed("scout", 1), created("scout", 2)];
    assert_eq!(told(&again).fate("scout"), Fate::Exists { since });
}

#[test]
fn a_request_that_was_taken_is_known() {
    let accepted = json!({"request_id": "r1", "status": "queued"});
    let calls = [created("scout", 0), send("r1", 1, Some(Ok(accepted)))];
    assert_eq!(found(&kept(&[]), &calls), ["r1 of scout: it was taken and is not known"]);
    assert_eq!(found(&kept(&["r1"]), &calls), NOTHING);
    let unanswered = [created("scout", 0), send("r1", 1, None)];
    assert_eq!(found(&kept(&[]), &unanswered), NOTHING);
}

#[test]
fn a_completed_request_stays_completed() {
    let calls = [created("scout", 0), answered("r1", 1)];
    let mut interrupted = kept(&["r1"]);
    interrupted.requests[0].status = "interrupted".to_owned();
    let told = "r1 of scout: it was told to be completed and is interrupted";
    assert_eq!(found(&interrupted, &calls), [told]);
    let mut otherwise = kept(&["r1"]);
    otherwise.requests[0].outcome = json!({"completed": {"content": "not yet"}});
    assert_eq!(found(&otherwise, &calls), ["r1 of scout: its answer was told otherwise"]);
    let asked = json!({"request_id": "r1", "status": "cancelled"});
    let asked =
        made("get_request", Some("scout"), &json!({"request_id": "r1"}), 2, Some(Ok(asked)));
    let calls = [created("scout", 0), send("r1", 1, None), asked];
    let told = "r1 of scout: it was told to be cancelled and is completed";
    assert_eq!(found(&kept(&["r1"]), &calls), [told]);
}

#[test]
fn a_completed_turn_has_its_messages() {
    let calls = [created("scout", 0), answered("r1", 1)];
    let mut cut = kept(&["r1"]);
    cut.agents[0].messages.pop();
    let told = "r1 of scout: its messages are not in the conversation";
    assert_eq!(found(&cut, &calls), [told]);
}

#[test]
fn a_message_is_there_once() {
    let calls = [created("scout", 0), send("r1", 1, None), answered("r1", 2)];
    assert_eq!(found(&kept(&["r1"]), &calls), NOTHING);
    let mut twice = kept(&["r1", "r1"]);
    twice.requests.pop();
    let told = "scout: \"do r1\" is there 2 times, sent 1";
    assert_eq!(found(&twice, &calls), [told]);
}

#[test]
fn conversations_never_shrink() {
    let page = made("get_messages", Some("scout"), &json!({}), 3, Some(Ok(json!({"total": 4}))));
    let calls = [created("scout", 0), answered("r1", 1), send("r2", 2, None), page];
    assert_eq!(found(&kept(&["r1", "r2"]), &calls), NOTHING);
    let told = "scout: of 4 messages that were told 2 are left";
    assert_eq!(found(&kept(&["r1"]), &calls), [told]);
}

#[test]
fn nothing_is_claimed_that_nobody_asked_for() {
    assert_eq!(found(&kept(&[]), &[]), ["scout: nobody asked for this agent"]);
    let calls = [created("scout", 0)];
    let mut unsent = kept(&["r9"]);
    unsent.agents[0].messages.clear();
    assert_eq!(found(&unsent, &calls), ["r9 of scout: nobody sent it"]);
}

#[test]
fn an_agent_that_was_destroyed_at_an_unknown_time_may_be_there_or_not() {
    let some_time = Made { ended: None, ..destroyed("scout", 0) };
    let calls = [created("scout", 5), some_time];
    assert_eq!(found(&Kept::default(), &calls), NOTHING);
    assert_eq!(found(&kept(&[]), &calls), NOTHING);
}
