//! The log of requests, rule by rule.

use super::super::outcome::CancelReason;
use super::*;

const CANCELLED: Outcome = Outcome::Cancelled { reason: CancelReason::Cancelled };

fn id(number: usize) -> RequestId {
    RequestId::parse(&format!("r{number}")).unwrap()
}

/// A request that was accepted and runs.
fn running(requests: &mut Requests, number: usize, content: &str) {
    requests.add(id(number), content.into());
    requests.start(&id(number));
    requests.accept(&id(number));
}

fn ask(requests: &mut Requests, number: usize) -> oneshot::Receiver<Result<Accepted, SendError>> {
    let (reply, answer) = oneshot::channel();
    requests.answer(&id(number), reply);
    answer
}

fn outcome(mut answer: oneshot::Receiver<Result<Accepted, SendError>>) -> Arc<Outcome> {
    match answer.try_recv().unwrap().unwrap() {
        Accepted::Waiting { mut outcome, .. } => outcome.try_recv().unwrap(),
        Accepted::Ended(outcome) => outcome,
        Accepted::Recorded => panic!("it is not on record"),
    }
}

#[test]
fn the_oldest_records_are_forgotten_and_running_requests_never() {
    let mut requests = Requests::default();
    running(&mut requests, 0, "running");
    let mut forgotten = Vec::new();
    for number in 1..=REQUESTS_KEPT_MAX + 1 {
        running(&mut requests, number, "same");
        forgotten.extend(requests.end(&id(number), CANCELLED));
    }
    assert_eq!(forgotten, [id(1)]);
    assert!(matches!(requests.state(&id(0)), Some(State::Running)));
    assert!(requests.state(&id(1)).is_none());
    assert!(matches!(requests.state(&id(2)), Some(State::Recorded)));
    assert_eq!(requests.look_up(&id(0), "other"), Known::OtherContent);
    assert_eq!(requests.look_up(&id(2), "any"), Known::Same, "the record knows the content");
    assert_eq!(requests.look_up(&id(1), "same"), Known::Unknown);
}

#[test]
fn nobody_hears_of_a_request_before_it_is_durable() {
    let mut requests = Requests::default();
    requests.add(id(1), "x".into());
    let mut first = ask(&mut requests, 1);
    requests.start(&id(1));
    let mut second = ask(&mut requests, 1);
    assert!(requests.state(&id(1)).is_none());
    assert!(first.try_recv().is_err() && second.try_recv().is_err());
    requests.accept(&id(1));
    assert!(requests.state(&id(1)).is_some());
    drop(ask(&mut requests, 1));
    requests.end(&id(1), CANCELLED);
    assert_eq!(outcome(first), outcome(second));
}

#[test]
fn a_request_that_cannot_be_written_never_was() {
    let mut requests = Requests::default();
    requests.add(id(1), "x".into());
    let mut answer = ask(&mut requests, 1);
    requests.refuse(&id(1));
    assert!(matches!(answer.try_recv().unwrap(), Err(SendError::Storage)));
    assert_eq!(requests.look_up(&id(1), "other"), Known::Unknown);
}

#[test]
fn an_outcome_that_cannot_be_written_is_kept_until_it_can() {
    let mut requests = Requests::default();
    running(&mut requests, 1, "x");
    let waiting = ask(&mut requests, 1);
    requests.end_unrecorded(&id(1), Outcome::Failed(Failure::Storage));
    assert_eq!(*outcome(waiting), Outcome::Failed(Failure::Storage));
    assert_eq!(*outcome(ask(&mut requests, 1)), Outcome::Failed(Failure::Storage));
    assert!(matches!(requests.state(&id(1)), Some(State::Ended(_))));
    requests.record(&id(1));
    assert!(matches!(requests.state(&id(1)), Some(State::Recorded)));
}
