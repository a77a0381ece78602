//! `create_agent` with a first message: sent at once, waited for or not.

use nexus3::rpc::method::{CreateAgentParams, InitialResponse, RequestStatus, SendResult};
use serde_json::json;

use crate::agents_support::{Stage, agent_id, completed, error_with, named, refused, usage};

fn first(name: &str, waits: bool) -> CreateAgentParams {
    CreateAgentParams {
        initial_message: Some("Go.".to_owned()),
        wait_for_initial_response: Some(waits),
        ..named(name, "worker")
    }
}

#[tokio::test]
async fn without_waiting_the_request_is_told() {
    let mut stage = Stage::new().await;
    let created = stage.create_agent(&first("a", false)).await.unwrap();
    let id = created.initial_request_id.clone().expect("the request is told");
    assert_eq!(id.as_str().len(), 16);
    assert!(id.as_str().bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}");
    assert_eq!(
        serde_json::to_value(&created).unwrap(),
        json!({
            "agent_id": "a", "url": "/agent/a",
            "initial_request_id": id, "initial_status": "queued",
        })
    );
    let a = agent_id("a");
    assert_eq!(stage.request(&a, id.as_str()).await.status, RequestStatus::Running);
    stage.model.asked_by("a").await.answers("Gone.").await;
    let again = crate::agents_support::request(id.as_str(), "Go.");
    assert_eq!(stage.send(&a, &again).await.unwrap(), completed(id.as_str(), "Gone.", 1));
}

#[tokio::test]
async fn with_waiting_the_response_is_what_send_gives() {
    let mut stage = Stage::new().await;
    let client = stage.server.client.clone();
    let creating = tokio::spawn(async move { client.create_agent(&first("a", true)).await });
    stage.model.asked_by("a").await.answers("Gone.").await;
    let created = creating.await.unwrap().unwrap();
    let request_id = created.initial_request_id.expect("the request is told");
    assert_eq!(created.initial_status, None);
    let expected = SendResult::Completed {
        content: "Gone.".to_owned(),
        request_id,
        halted_at_iteration_limit: false,
        finish_reason: "stop".to_owned(),
        usage: usage(1),
    };
    assert_eq!(created.response, Some(InitialResponse::Result(expected)));
}

#[tokio::test]
async fn a_model_that_fails_leaves_the_agent_and_tells_its_error() {
    let mut stage = Stage::new().await;
    let client = stage.server.client.clone();
    let creating = tokio::spawn(async move { client.create_agent(&first("a", true)).await });
    stage.model.asked_by("a").await.refuses(400, "no").await;
    let created = creating.await.unwrap().unwrap();
    let failure = error_with(
        -32000,
        "provider `wire` answered HTTP 400: no",
        json!({
            "kind": "provider", "fault": "status", "retryable": false, "attempts": 1, "status": 400,
        }),
    );
    assert_eq!(created.response, Some(InitialResponse::Error(failure.clone())));
    let (a, id) = (agent_id("a"), created.initial_request_id.unwrap());
    assert_eq!(stage.entry(&a).await.agent_id, a);
    let request = stage.request(&a, id.as_str()).await;
    assert_eq!((request.status, request.error), (RequestStatus::Failed, Some(failure.clone())));
    let again = crate::agents_support::request(id.as_str(), "Go.");
    assert_eq!(refused(stage.send(&a, &again).await), failure);
}
