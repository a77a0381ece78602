//! What a client does about a send that is not answered. Time is virtual.

use serde_json::{Value, json};
use tokio::time::Instant;

use super::super::stage_tests::{Play, Stage};
use super::*;

fn agent() -> AgentId {
    AgentId::parse("a").unwrap()
}

fn params() -> SendParams {
    let request_id = Some(RequestId::parse("r").unwrap());
    SendParams { content: "hi".to_owned(), request_id, ..SendParams::default() }
}

fn completed() -> Value {
    json!({"content": "done", "request_id": "r", "halted_at_iteration_limit": false,
        "finish_reason": "stop", "usage": {"input_tokens": 1, "output_tokens": 1},
        "of_a_newer_server": true})
}

fn running() -> Play {
    Play::Result(json!({"request_id": "r", "status": "running"}))
}

fn unknown() -> Play {
    Play::Error(json!({"code": -32602, "message": "Request not found: r"}))
}

/// What came of the send, after how many seconds, and what was asked for it.
async fn sent(plays: Vec<Play>) -> (Result<SendResult, ClientError>, u64, Vec<String>) {
    let mut stage = Stage::of(plays).await;
    let start = Instant::now();
    let outcome = stage.client.send(&agent(), &params()).await;
    (outcome, start.elapsed().as_secs(), stage.asked())
}

fn content(outcome: Result<SendResult, ClientError>) -> String {
    match outcome {
        Ok(SendResult::Completed { content, .. }) => content,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_taken_as_it_comes() {
    let (outcome, seconds, asked) = sent(vec![Play::Result(completed())]).await;
    assert_eq!((content(outcome).as_str(), seconds), ("done", 0));
    assert_eq!(asked, ["send"]);
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_is_asked_until_it_tells_the_outcome() {
    let ended = json!({"request_id": "r", "status": "completed", "result": completed()});
    let plays = vec![Play::Silence, running(), running(), Play::Result(ended)];
    let (outcome, seconds, asked) = sent(plays).await;
    assert_eq!((content(outcome).as_str(), seconds), ("done", 30 + 15 + 15));
    assert_eq!(asked, ["send", "get_request", "get_request", "get_request"]);
}

#[tokio::test(start_paused = true)]
async fn what_the_server_does_not_know_is_said_again() {
    let plays = vec![Play::Silence, unknown(), Play::Result(completed())];
    let (outcome, seconds, asked) = sent(plays).await;
    assert_eq!((content(outcome).as_str(), seconds), ("done", 30));
    assert_eq!(asked, ["send", "get_request", "send"]);
}

#[tokio::test(start_paused = true)]
async fn a_broken_connection_is_asked_about_soon() {
    let interrupted = json!({"code": -32000, "message": "interrupted"});
    let ended = json!({"request_id": "r", "status": "interrupted", "error": interrupted});
    let (outcome, seconds, asked) = sent(vec![Play::Break, Play::Result(ended)]).await;
    let Err(ClientError::Rpc { error }) = outcome else { panic!("{outcome:?}") };
    assert_eq!((error.code, seconds), (-32000, 1));
    assert_eq!(asked, ["send", "get_request"]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_busy_or_slow_is_asked_again() {
    let plays = vec![Play::Silence, Play::Status(503), Play::Silence, unknown()];
    let (outcome, seconds, asked) = sent(plays).await;
    // The send that follows meets a closed connection, and so does the question after it.
    assert!(matches!(outcome, Err(ClientError::Protocol { .. })), "{outcome:?}");
    assert_eq!(seconds, 30 + 15 + (60 + 15) + 1);
    let asked: Vec<&str> = asked.iter().map(String::as_str).collect();
    let questions = ["get_request"; 3];
    assert_eq!(asked, [&["send"], &questions[..], &["send", "get_request"]].concat());
}

#[tokio::test(start_paused = true)]
async fn what_is_refused_is_not_tried_again() {
    for status in [401, 403, 404, 503] {
        let (outcome, seconds, asked) = sent(vec![Play::Status(status)]).await;
        assert!(matches!(outcome, Err(ClientError::Refused { .. })), "{outcome:?}");
        assert_eq!((seconds, asked.len()), (0, 1));
    }
    let (outcome, seconds, asked) = sent(vec![Play::Silence, Play::Status(404)]).await;
    assert!(matches!(outcome, Err(ClientError::Refused { .. })), "{outcome:?}");
    assert_eq!((seconds, asked.len()), (30, 2));
}

#[tokio::test(start_paused = true)]
async fn a_turn_with_a_time_limit_is_not_waited_for_beyond_it() {
    let plays = std::iter::once(Play::Silence).chain((0..100).map(|_| running())).collect();
    let stage = Stage::of(plays).await;
    let start = Instant::now();
    let params = SendParams { timeout: Some(100.0), ..params() };
    let outcome = stage.client.send(&agent(), &params).await;
    assert!(matches!(outcome, Err(ClientError::Timeout { .. })), "{outcome:?}");
    assert_eq!(start.elapsed().as_secs(), 160);
}

#[tokio::test(start_paused = true)]
async fn other_calls_have_a_minute() {
    let stage = Stage::of(vec![Play::Silence]).await;
    let start = Instant::now();
    let outcome = stage.client.list_agents().await;
    assert!(matches!(outcome, Err(ClientError::Timeout { .. })), "{outcome:?}");
    assert_eq!(start.elapsed().as_secs(), 60);
}

struct Ones;

impl crate::world::Chance for Ones {
    fn fill(&self, _: Use, bytes: &mut [u8]) {
        bytes.fill(0x11);
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_never_goes_without_a_name() {
    let mut stage = Stage::of(vec![Play::Result(completed())]).await;
    let unnamed = SendParams { request_id: None, ..params() };
    let outcome = stage.client.send(&agent(), &unnamed).await;
    assert!(matches!(outcome, Err(ClientError::Unnamed)), "{outcome:?}");
    let client = stage.client.clone().drawing_from(std::sync::Arc::new(Ones));
    client.send(&agent(), &unnamed).await.unwrap();
    let (_, body) = stage.asked.recv().await.unwrap();
    assert_eq!(body["params"]["request_id"], "1111111111111111");
}

#[tokio::test(start_paused = true)]
async fn a_server_with_another_token_is_asked_with_that() {
    let plays = vec![Play::Status(403), Play::Result(completed()), Play::Status(403)];
    let mut stage = Stage::of(plays).await;
    let client = stage.client.clone().renewing(|| Some("nxk_new".to_owned().into()));
    assert_eq!(content(client.send(&agent(), &params()).await), "done");
    assert_eq!(stage.asked(), ["send", "send"]);
    // One that is refused like the last is not tried again and again.
    let same = stage.client.clone().renewing(|| None);
    let refused = same.send(&agent(), &params()).await;
    assert!(matches!(refused, Err(ClientError::Refused { .. })), "{refused:?}");
    assert_eq!(stage.asked(), ["send"]);
}
