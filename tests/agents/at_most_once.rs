//! A `request_id` names one turn for ever: asked again it is joined or told, never run twice.

use nexus3::rpc::method::{GetRequestResult, RequestStatus, SendParams, SendResult};
use serde_json::json;

use crate::agents_support::{
    Stage, cancelled, completed, ended, error, error_with, outcome, refused, request, request_id,
};

fn told(id: &str, status: RequestStatus) -> GetRequestResult {
    GetRequestResult { request_id: request_id(id), status, result: None, error: None }
}

#[tokio::test]
async fn the_same_request_joins_the_turn_that_runs_or_waits() {
    let mut stage = Stage::new().await;
    let a = stage.agent("a", "worker").await;
    let first = stage.sending(&a, request("r1", "one"));
    let call = stage.model.asked_by("a").await;
    let second = stage.sending(&a, request("r2", "two"));
    stage.has_queued(&a, 1).await;
    let joined = [stage.sending(&a, request("r1", "one")), stage.sending(&a, request("r2", "two"))];
    let status = async |id: &str| {
        let params =
            SendParams { wait: Some(false), ..request(id, if id == "r1" { "one" } else { "two" }) };
        stage.send(&a, &params).await.unwrap()
    };
    let accepted = |id: &str, status| SendResult::Accepted { request_id: request_id(id), status };
    assert_eq!(status("r1").await, accepted("r1", RequestStatus::Running));
    assert_eq!(status("r2").await, accepted("r2", RequestStatus::Queued));
    assert_eq!(stage.request(&a, "r1").await, told("r1", RequestStatus::Running));
    assert_eq!(stage.request(&a, "r2").await, told("r2", RequestStatus::Queued));
    assert_eq!(stage.entry(&a).await.queued, 1);
    call.answers("1").await;
    stage.model.asked_by("a").await.answers("2").await;
    for sent in [first, second].into_iter().zip(joined) {
        let (first, second) = (ended(sent.0).await, ended(sent.1).await);
        assert_eq!(first, second);
    }
    assert_eq!(stage.messages(&a).await.len(), 4);
}

#[tokio::test]
async fn a_completed_request_gives_its_result_again() {
    let mut stage = Stage::new().await;
    let a = stage.agent("a", "worker").await;
    let sent = stage.sending(&a, request("r1", "one"));
    stage.model.asked_by("a").await.answers("1").await;
    let result = ended(sent).await;
    assert_eq!(stage.send(&a, &request("r1", "one")).await.unwrap(), result);
    let expected =
        GetRequestResult { result: Some(result), ..told("r1", RequestStatus::Completed) };
    assert_eq!(stage.request(&a, "r1").await, expected);
    assert_eq!(stage.messages(&a).await.len(), 2);
}

#[tokio::test]
async fn a_cancelled_request_stays_cancelled() {
    let mut stage = Stage::new().await;
    let a = stage.agent("a", "worker").await;
    let sent = stage.sending(&a, request("r1", "one"));
    stage.model.asked_by("a").await;
    stage.cancel(&a, Some(request_id("r1"))).await.unwrap();
    assert_eq!(ended(sent).await, cancelled("r1"));
    assert_eq!(stage.send(&a, &request("r1", "one")).await.unwrap(), cancelled("r1"));
    let expected =
        GetRequestResult { result: Some(cancelled("r1")), ..told("r1", RequestStatus::Cancelled) };
    assert_eq!(stage.request(&a, "r1").await, expected);
}

#[tokio::test]
async fn a_failed_request_gives_its_error_again() {
    let mut stage = Stage::new().await;
    let a = stage.agent("a", "worker").await;
    let sent = stage.sending(&a, request("r1", "one"));
    stage.model.asked_by("a").await.refuses(401, "who are you").await;
    let message = "provider `wire` refused access (HTTP 401; no key is configured for it): \
                   who are you";
    let data = json!({
        "kind": "provider", "fault": "auth", "retryable": false, "attempts": 1, "status": 401,
    });
    let failure = error_with(-32000, message, data);
    assert_eq!(refused(outcome(sent).await), failure);
    assert_eq!(refused(stage.send(&a, &request("r1", "one")).await), failure);
    let expected = GetRequestResult { error: Some(failure), ..told("r1", RequestStatus::Failed) };
    assert_eq!(stage.request(&a, "r1").await, expected);
}

#[tokio::test]
async fn an_id_used_with_other_content_is_a_conflict() {
    let mut stage = Stage::new().await;
    let (a, b) = (stage.agent("a", "worker").await, stage.agent("b", "worker").await);
    let conflict = error(-32002, "this request_id was used with other content; use a new one");
    stage.queue(&a, "r1", "one").await;
    assert_eq!(refused(stage.send(&a, &request("r1", "other")).await), conflict);
    stage.model.asked_by("a").await.answers("1").await;
    stage.send(&a, &request("r1", "one")).await.unwrap();
    assert_eq!(refused(stage.send(&a, &request("r1", "other")).await), conflict);
    // An id is the agent's own.
    let sent = stage.sending(&b, request("r1", "other"));
    stage.model.asked_by("b").await.answers("2").await;
    assert_eq!(ended(sent).await, completed("r1", "2", 1));
}

#[tokio::test]
async fn a_caller_that_goes_away_does_not_cancel_its_turn() {
    let mut stage = Stage::new().await;
    let a = stage.agent("a", "worker").await;
    let running = stage.sending(&a, request("r1", "one"));
    let mut call = stage.model.asked_by("a").await;
    let waiting = stage.sending(&a, request("r2", "two"));
    stage.has_queued(&a, 1).await;
    for caller in [running, waiting] {
        caller.abort();
        assert!(caller.await.unwrap_err().is_cancelled());
    }
    call.says("1").await;
    call.stops().await;
    stage.model.asked_by("a").await.answers("2").await;
    assert_eq!(stage.send(&a, &request("r2", "two")).await.unwrap(), completed("r2", "2", 1));
    assert_eq!(stage.request(&a, "r1").await.result, Some(completed("r1", "1", 1)));
}

#[tokio::test]
async fn an_unknown_request_is_not_found() {
    let stage = Stage::new().await;
    let a = stage.agent("a", "worker").await;
    let outcome = stage.get_request(&a, request_id("r1")).await;
    assert_eq!(refused(outcome), error(-32602, "Request not found: r1"));
}
