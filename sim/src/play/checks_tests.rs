//! The invariants see what breaks them: each finding from a survey that was bent on purpose.

use std::time::Duration;

use nexus3::id::AgentId;
use nexus3::message::{ToolCall, Usage};
use nexus3::rpc::wire::ErrorObject;
use serde_json::json;

use super::*;

fn agent() -> AgentId {
    AgentId::parse("scout").unwrap()
}

fn request(id: &str) -> RequestId {
    RequestId::parse(id).unwrap()
}

/// Made at one second of the run, told at the next.
fn sending(id: &str, made: u64, outcome: Told) -> Sending {
    Sending {
        agent: agent(),
        request: request(id),
        server_start: 1,
        made: Duration::from_secs(made),
        told: Duration::from_secs(made + 1),
        outcome,
    }
}

fn completed(id: &str, content: &str) -> SendResult {
    SendResult::Completed {
        content: content.to_owned(),
        request_id: request(id),
        halted_at_iteration_limit: false,
        finish_reason: "stop".to_owned(),
        usage: Usage::default(),
    }
}

fn known(id: &str, status: RequestStatus, result: Option<SendResult>) -> GetRequestResult {
    GetRequestResult { request_id: request(id), status, result, error: None }
}

fn said(contents: &[&str]) -> Vec<Arc<Message>> {
    let user = |content: &&str| Arc::new(Message::User { content: (*content).into(), meta: None });
    contents.iter().map(user).collect()
}

fn survey_of(requests: Vec<Option<GetRequestResult>>, contents: &[&str]) -> Survey {
    let mut survey = Survey::default();
    for (number, known) in (1..).zip(requests) {
        survey.requests.insert((agent(), request(&format!("r{number}"))), known);
    }
    survey.conversations.insert(agent(), said(contents));
    survey
}

/// As if no agent had been destroyed.
fn survey(survey: &Survey, sendings: &[Sending], server_start: u64) -> Vec<Finding> {
    compare(survey, sendings, &BTreeSet::new(), server_start)
}

fn finding(invariant: Invariant, what: &str) -> Vec<Finding> {
    vec![Finding::of(invariant, what.to_owned())]
}

#[test]
fn callers_and_server_must_agree() {
    let told = |content| Told::Result(result(&completed("r1", content)));
    let kept = || vec![Some(known("r1", RequestStatus::Completed, Some(completed("r1", "yes"))))];
    let check = |outcome| survey(&survey_of(kept(), &[]), &[sending("r1", 0, outcome)], 1);
    assert_eq!(check(told("yes")), []);
    assert_eq!(check(Told::Nothing), []);
    let other = "r1 of scout: its caller was told another result";
    assert_eq!(check(told("no")), finding(Invariant::Answers, other));
    let error = ErrorObject { code: -32000, message: "m".to_owned(), data: None };
    let other = "r1 of scout: its caller was told another error";
    assert_eq!(check(Told::Error(error)), finding(Invariant::Answers, other));
    let conflict = ErrorObject { code: -32002, message: "m".to_owned(), data: None };
    assert_eq!(check(Told::Error(conflict)), [], "a refused repetition is no answer to the turn");
}

#[test]
fn every_send_that_was_taken_ends_and_stays_known() {
    let running = survey_of(vec![Some(known("r1", RequestStatus::Running, None))], &[]);
    let taken = [sending("r1", 0, Told::Accepted)];
    let open = "r1 of scout: it has not ended";
    assert_eq!(survey(&running, &taken, 1), finding(Invariant::Answers, open));
    let forgotten = survey_of(vec![None], &[]);
    let lost = "r1 of scout: it was taken and is not known";
    assert_eq!(survey(&forgotten, &taken, 1), finding(Invariant::Answers, lost));
    assert_eq!(survey(&forgotten, &taken, 2), [], "an earlier process took it along");
    let destroyed = BTreeSet::from(["scout".to_owned()]);
    assert_eq!(compare(&forgotten, &taken, &destroyed, 1), [], "an earlier agent took it along");
}

#[test]
fn turns_run_in_the_order_of_their_acceptance() {
    let ended = |id: &str| Some(known(id, RequestStatus::Completed, Some(completed(id, "ok"))));
    let both = || vec![ended("r1"), ended("r2")];
    let one_after_another = [sending("r1", 0, Told::Accepted), sending("r2", 1, Told::Accepted)];
    let good = survey_of(both(), &["one r1", "two r2"]);
    assert_eq!(survey(&good, &one_after_another, 1), []);
    let swapped = survey_of(both(), &["two r2", "one r1"]);
    let found = finding(Invariant::Order, "scout: r2 ran before r1");
    assert_eq!(survey(&swapped, &one_after_another, 1), found);
    let at_once = [sending("r1", 0, Told::Accepted), sending("r2", 0, Told::Accepted)];
    assert_eq!(survey(&swapped, &at_once, 1), [], "who came first is not known");
}

#[test]
fn conversations_are_paired() {
    let mut bent = survey_of(vec![], &[]);
    let call = ToolCall { id: "c".to_owned(), name: "echo".to_owned(), arguments: json!({}) };
    let asks = Message::Assistant { content: String::new(), tool_calls: vec![call], meta: None };
    bent.conversations.insert(agent(), vec![Arc::new(asks)]);
    assert_eq!(survey(&bent, &[], 1), finding(Invariant::Pairs, "scout: c has no result"));
}

#[test]
fn a_server_that_does_not_come_to_rest_is_told() {
    let busy =
        Survey { trouble: Some("scout does not come to rest".to_owned()), ..Survey::default() };
    assert_eq!(survey(&busy, &[], 1), finding(Invariant::Bounds, "scout does not come to rest"));
}
