//! `answers` sees what breaks it: each finding from answers that were bent on purpose.

use nexus3::id::{AgentId, RequestId};
use nexus3::message::Usage;
use nexus3::rpc::wire::ErrorObject;

use super::super::seen_tests::{
    Run, answered, cancelled, ended, kept, queued, sending, started, survey,
};
use super::*;

fn request(id: &str) -> RequestId {
    RequestId::parse(id).unwrap()
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

fn known(status: RequestStatus, result: Option<SendResult>) -> GetRequestResult {
    GetRequestResult { request_id: request("r1"), status, result, error: None }
}

/// A run with one send, of `r1` to `scout`.
fn run(outcome: Told) -> Run {
    Run { sendings: vec![sending("r1", 0, outcome)], ..Run::default() }
}

fn at_end(run: &Run, known: Option<GetRequestResult>) -> Vec<String> {
    let mut survey = survey("scout", &[]);
    survey.requests.insert((AgentId::parse("scout").unwrap(), request("r1")), known);
    Answers::default().at_end(&run.seen(), &End { survey: Some(&survey), left_behind: None })
}

fn error(code: i64) -> ErrorObject {
    ErrorObject { code, message: "m".to_owned(), data: None }
}

fn told(content: &str) -> Told {
    Told::Result(of_result(&completed("r1", content)))
}

#[test]
fn callers_and_server_must_agree() {
    let kept = || Some(known(RequestStatus::Completed, Some(completed("r1", "yes"))));
    let check = |outcome| at_end(&run(outcome), kept());
    assert_eq!(check(told("yes")), Vec::<String>::new());
    assert_eq!(check(Told::Nothing), Vec::<String>::new());
    assert_eq!(check(told("no")), ["r1 of scout: its caller was told another result"]);
    let other = ["r1 of scout: its caller was told another error"];
    assert_eq!(check(Told::Error(error(-32000))), other);
    let refused = check(Told::Error(error(-32002)));
    assert_eq!(refused, Vec::<String>::new(), "a refused repetition is no answer to the turn");
}

#[test]
fn every_send_that_was_taken_ends_and_stays_known() {
    let taken = || run(Told::Accepted);
    let open = at_end(&taken(), Some(known(RequestStatus::Running, None)));
    assert_eq!(open, ["r1 of scout: it has not ended"]);
    assert_eq!(at_end(&taken(), None), ["r1 of scout: it was taken and is not known"]);
    let later = Run { server_start: 2, ..taken() };
    let lost = ["r1 of scout: it was taken and is not known"];
    assert_eq!(at_end(&later, None), lost, "a restart is no excuse");
    let destroyed = Run { destroyed: ["scout".to_owned()].into(), ..taken() };
    assert_eq!(at_end(&destroyed, None), Vec::<String>::new(), "an earlier agent took it along");
}

#[test]
fn nobody_is_told_a_second_outcome_while_the_run_goes_on() {
    let two = |second| {
        let sendings = vec![sending("r1", 0, told("yes")), sending("r1", 2, second)];
        Run { sendings, ..Run::default() }
    };
    let check = |second| Answers::default().after_step(&two(second).seen());
    let found = ["r1 of scout: it was told two outcomes"];
    assert_eq!(check(told("yes")), Vec::<String>::new());
    assert_eq!(check(told("no")), found);
    assert_eq!(check(Told::Error(error(-32000))), found);
    assert_eq!(check(Told::Error(error(-32001))), Vec::<String>::new(), "refused is not ended");
    let again = Run { destroyed: ["scout".to_owned()].into(), ..two(told("no")) };
    assert_eq!(Answers::default().after_step(&again.seen()), Vec::<String>::new());
}

#[test]
fn an_ended_request_keeps_its_outcome() {
    let asked = |status, result| {
        let known = serde_json::to_value(known(status, result)).unwrap();
        answered("get_request", Some("scout"), known)
    };
    let ended = |content| asked(RequestStatus::Completed, Some(completed("r1", content)));
    let (run, mut answers) = (run(told("yes")), Answers::default());
    let running = asked(RequestStatus::Running, None);
    assert_eq!(answers.on(&running, &run.seen()), Vec::<String>::new());
    assert_eq!(answers.on(&ended("yes"), &run.seen()), Vec::<String>::new());
    assert_eq!(answers.after_step(&run.seen()), Vec::<String>::new());
    let found = ["r1 of scout: it was told two outcomes"];
    assert_eq!(answers.on(&ended("no"), &run.seen()), found);
}

#[test]
fn an_end_that_could_not_be_written_is_closed_by_the_next_start_alone() {
    let failed = |kind: &str, start| {
        let data = Some(serde_json::json!({ "kind": kind }));
        let error = Some(ErrorObject { data, ..error(-32000) });
        let known = GetRequestResult { error, ..known(RequestStatus::Failed, None) };
        let Observation::Answered(answer) =
            answered("get_request", Some("scout"), serde_json::to_value(known).unwrap())
        else {
            panic!("it is an answer");
        };
        Observation::Answered(Answer { server_start: start, ..answer })
    };
    let run = run(Told::Nothing);
    let told = |observations: &[Observation]| {
        let mut answers = Answers::default();
        let found = observations.iter().flat_map(|seen| answers.on(seen, &run.seen()));
        found.count()
    };
    let (lost, closed) = (|start| failed("storage", start), |start| failed("interrupted", start));
    assert_eq!(told(&[lost(1), lost(1), closed(2), closed(3)]), 0);
    assert_eq!(told(&[lost(1), closed(1)]), 1, "the same run does not think twice");
    assert_eq!(told(&[lost(1), closed(2), lost(3)]), 1, "what is closed stays closed");
    assert_eq!(told(&[closed(1), lost(2)]), 1, "what is written stays written");
}

fn at_rest(run: &Run, events: &[(&str, What)], known: Option<GetRequestResult>) -> Vec<String> {
    let mut survey = survey("scout", &[]);
    survey.requests.insert((AgentId::parse("scout").unwrap(), request("r1")), known);
    let end = End { survey: Some(&survey), left_behind: None };
    Answers::default().at_rest(&kept(events), &run.seen(), &end)
}

#[test]
fn every_send_that_was_taken_has_one_last_event() {
    let taken = || run(Told::Accepted);
    let (begins, ends) = ([("r1", queued()), ("r1", started())], ("r1", ended("yes")));
    let [first, second] = begins.clone();
    let good = at_rest(&taken(), &[first, second, ends.clone()], None);
    assert_eq!(good, Vec::<String>::new());
    assert_eq!(at_rest(&taken(), &begins, None), ["r1 of scout: it has 0 last events"]);
    let twice = at_rest(&taken(), &[("r1", queued()), ends.clone(), ("r1", cancelled())], None);
    assert_eq!(twice, ["r1 of scout: it has 2 last events"]);
    let other = [("r2", queued()), ("r2", ended("yes"))];
    assert_eq!(at_rest(&taken(), &other, None), ["r1 of scout: it was taken and has no event"]);
    let refused = run(Told::Error(error(-32002)));
    assert_eq!(at_rest(&refused, &other, None), Vec::<String>::new());
}

#[test]
fn the_last_event_says_what_everybody_is_told() {
    let events = [("r1", queued()), ("r1", ended("yes"))];
    let found = ["r1 of scout: its caller was told otherwise than its last event says"];
    assert_eq!(at_rest(&run(told("yes")), &events, None), Vec::<String>::new());
    assert_eq!(at_rest(&run(told("no")), &events, None), found);
    assert_eq!(at_rest(&run(Told::Error(error(-32000))), &events, None), found);
    let kept = |content| Some(known(RequestStatus::Completed, Some(completed("r1", content))));
    assert_eq!(at_rest(&run(Told::Nothing), &events, kept("yes")), Vec::<String>::new());
    let found = ["r1 of scout: its last event says otherwise"];
    assert_eq!(at_rest(&run(Told::Nothing), &events, kept("no")), found);
    let events = [("r1", queued()), ("r1", cancelled())];
    assert_eq!(at_rest(&run(Told::Nothing), &events, kept("yes")), found);
}
