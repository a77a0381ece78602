//! `send`: its parameters, the order of turns, the bounds of waiting, and what a turn comes to.

use nexus3::message::{Message, UserMeta};
use nexus3::policy::ceiling::Yolo;
use nexus3::rpc::method::{RequestStatus, SendParams, SendResult};
use serde_json::{Value, json};

use crate::agents_support::{
    Stage, agent_id, completed, ended, error, error_with, outcome, refused, request, request_id,
    says, timed_out, usage,
};

#[tokio::test]
async fn a_turn_gives_the_models_text_and_usage() {
    let mut stage = Stage::new().await;
    let a = stage.agent("a", "worker").await;
    let sent = stage.sending(&a, request("r1", "hi"));
    let mut call = stage.model.asked_by("a").await;
    call.says("Hel").await;
    call.says("lo").await;
    call.stops().await;
    assert_eq!(ended(sent).await, completed("r1", "Hello", 1));
    let sent = stage.sending(&a, request("r2", "more"));
    let mut call = stage.model.asked_by("a").await;
    call.says("cut").await;
    call.finishes("length").await;
    let cut = SendResult::Completed {
        content: "cut".to_owned(),
        request_id: request_id("r2"),
        halted_at_iteration_limit: false,
        finish_reason: "length".to_owned(),
        usage: usage(1),
    };
    assert_eq!(ended(sent).await, cut);
}

#[tokio::test]
async fn a_request_without_an_id_gets_one() {
    let mut stage = Stage::new().await;
    let a = stage.agent("a", "worker").await;
    let SendResult::Completed { request_id, .. } = stage.exchange(&a, "hi", "hello").await else {
        panic!("the turn completes");
    };
    let id = request_id.as_str();
    assert_eq!(id.len(), 16);
    assert!(id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')), "{id}");
    assert_eq!(stage.request(&a, id).await.status, RequestStatus::Completed);
}

#[tokio::test]
async fn turns_run_one_at_a_time_in_order_of_acceptance() {
    let mut stage = Stage::new().await;
    let a = stage.agent("a", "worker").await;
    for number in ["1", "2", "3"] {
        stage.queue(&a, number, number).await;
    }
    for number in ["1", "2", "3"] {
        let call = stage.model.asked_by("a").await;
        let messages = call.request["messages"].as_array().unwrap();
        assert_eq!(messages.last(), Some(&json!({"role": "user", "content": number})));
        assert_eq!(stage.entry(&a).await.active_request_id, Some(request_id(number)));
        call.answers(number).await;
    }
    let last = stage.send(&a, &request("3", "3")).await.unwrap();
    assert_eq!(last, completed("3", "3", 1));
    assert_eq!(stage.messages(&a).await.len(), 6);
}

#[tokio::test]
async fn agents_do_not_wait_for_each_other() {
    let mut stage = Stage::new().await;
    let (a, b) = (stage.agent("a", "worker").await, stage.agent("b", "worker").await);
    let slow = stage.sending(&a, request("r", "slow"));
    let call = stage.model.asked_by("a").await;
    stage.exchange(&b, "fast", "done").await;
    call.answers("at last").await;
    assert_eq!(ended(slow).await, completed("r", "at last", 1));
}

#[tokio::test]
async fn the_thirty_third_waiting_send_is_refused() {
    let mut stage = Stage::new().await;
    let a = stage.agent("a", "worker").await;
    stage.queue(&a, "running", "x").await;
    for number in 1..=32 {
        stage.queue(&a, &format!("w{number}"), "x").await;
    }
    let full = "a is busy: 32 sends are waiting for it already; try again later";
    let one_more = stage.send(&a, &request("w33", "x")).await;
    assert_eq!(refused(one_more), error(-32001, full));
    let unknown = stage.get_request(&a, request_id("w33")).await;
    assert_eq!(refused(unknown), error(-32602, "Request not found: w33"));
    assert_eq!(stage.entry(&a).await.queued, 32);
    stage.model.asked_by("a").await.answers("y").await;
    // The next turn has begun, so there is one place.
    let running = stage.model.asked_by("a").await;
    stage.queue(&a, "w33", "x").await;
    assert_eq!(stage.entry(&a).await.queued, 32);
    drop(running);
}

#[tokio::test]
async fn without_waiting_a_send_is_accepted_and_runs_on() {
    let mut stage = Stage::new().await;
    let a = stage.agent("a", "worker").await;
    let params = SendParams { wait: Some(false), ..request("r1", "hi") };
    let accepted =
        SendResult::Accepted { request_id: request_id("r1"), status: RequestStatus::Queued };
    assert_eq!(stage.send(&a, &params).await.unwrap(), accepted);
    stage.model.asked_by("a").await.answers("hello").await;
    let joined = stage.send(&a, &request("r1", "hi")).await.unwrap();
    assert_eq!(joined, completed("r1", "hello", 1));
}

#[tokio::test]
async fn time_runs_out_while_a_turn_runs() {
    let stage = Stage::new().await;
    let a = stage.agent("a", "worker").await;
    let soon = SendParams { timeout: Some(0.05), ..request("r1", "hi") };
    assert_eq!(refused(stage.send(&a, &soon).await), timed_out());
    let told = stage.request(&a, "r1").await;
    assert_eq!((told.status, told.error), (RequestStatus::Failed, Some(timed_out())));
    assert_eq!(stage.entry(&a).await.active_request_id, None);
    assert_eq!(stage.messages(&a).await.len(), 1);
}

#[tokio::test]
async fn time_runs_out_while_a_send_waits() {
    let mut stage = Stage::new().await;
    let a = stage.agent("a", "worker").await;
    let slow = stage.sending(&a, request("r1", "hi"));
    let call = stage.model.asked_by("a").await;
    let soon = SendParams { timeout: Some(0.05), ..request("r2", "hi") };
    assert_eq!(refused(stage.send(&a, &soon).await), timed_out());
    let told = stage.request(&a, "r2").await;
    assert_eq!((told.status, told.error), (RequestStatus::Failed, Some(timed_out())));
    assert_eq!(stage.entry(&a).await.queued, 0);
    call.answers("late").await;
    assert_eq!(ended(slow).await, completed("r1", "late", 1));
}

#[tokio::test]
async fn parameters_out_of_range_are_refused_and_start_nothing() {
    let stage = Stage::new().await;
    let a = stage.agent("a", "worker").await;
    let range = "Invalid parameter timeout: it must be seconds from above 0 to 2592000";
    let long = "x".repeat(65);
    let source = "Invalid parameter source: it has more than 64 characters";
    let id = |shown: &str| {
        format!(
            "Invalid parameter request_id: Invalid request id: {shown:?} (1 to 128 characters, \
             none of them a control character)"
        )
    };
    let table: Vec<(Value, String)> = vec![
        (json!({"content": ""}), "Invalid parameter content: it must not be empty".to_owned()),
        (json!({"content": "x", "timeout": 0}), range.to_owned()),
        (json!({"content": "x", "timeout": -1.5}), range.to_owned()),
        (json!({"content": "x", "timeout": 2_592_001}), range.to_owned()),
        (json!({"content": "x", "source": long}), source.to_owned()),
        (json!({"content": "x", "request_id": ""}), id("")),
        (json!({"content": "x", "request_id": "a\nb"}), id("a\nb")),
    ];
    for (params, message) in table {
        let outcome = stage.call_by_name(Some(&a), "send", params.clone()).await;
        assert_eq!(refused(outcome), error(-32602, &message), "{params}");
    }
    assert_eq!(stage.messages(&a).await, []);
}

#[tokio::test]
async fn messages_tell_who_sent_them() {
    let mut stage = Stage::new().await;
    let a = stage.agent("a", "worker").await;
    stage.exchange(&a, "one", "1").await;
    let named = SendParams { source: Some("cron".to_owned()), ..says("two") };
    let from_b = SendParams { source_agent_id: Some(agent_id("b")), ..says("three") };
    for params in [named, from_b] {
        let sent = stage.sending(&a, params);
        stage.model.asked_by("a").await.answers("ok").await;
        ended(sent).await;
    }
    let metas: Vec<UserMeta> = stage
        .messages(&a)
        .await
        .into_iter()
        .filter_map(|message| match message {
            Message::User { meta, .. } => meta,
            Message::Assistant { .. } | Message::Tool { .. } => None,
        })
        .collect();
    let meta = |source: &str, agent: Option<&str>| UserMeta {
        source: source.to_owned(),
        source_agent_id: agent.map(agent_id),
    };
    assert_eq!(metas, [meta("test", None), meta("cron", None), meta("test", Some("b"))]);
}

#[tokio::test]
async fn a_failing_model_fails_the_turn_and_not_the_agent() {
    let mut stage = Stage::new().await;
    let a = stage.agent("a", "worker").await;
    let sent = stage.sending(&a, request("r1", "one"));
    let mut call = stage.model.asked_by("a").await;
    call.says("Hal").await;
    drop(call);
    let data = json!({"kind": "provider", "fault": "eof", "retryable": true, "attempts": 1});
    let message = "provider `wire` ended its answer without a finish reason";
    assert_eq!(refused(outcome(sent).await), error_with(-32000, message, data));
    let last = serde_json::to_value(stage.messages(&a).await.pop()).unwrap();
    let partial = json!({"role": "assistant", "content": "Hal", "meta": {"partial": "provider"}});
    assert_eq!(last, partial);
    let SendResult::Completed { content, .. } = stage.exchange(&a, "two", "fine").await else {
        panic!("the next turn completes");
    };
    assert_eq!(content, "fine");
}

#[tokio::test]
async fn a_send_that_waits_does_not_count_as_executing() {
    let mut stage = Stage::with(Yolo::Refused, |config| config.server.max_concurrent = 1).await;
    let a = stage.agent("a", "worker").await;
    let running = stage.sending(&a, request("r1", "one"));
    let call = stage.model.asked_by("a").await;
    let waiting = stage.sending(&a, request("r2", "two"));
    stage.has_queued(&a, 1).await;
    assert_eq!(stage.get_context(&a).await.unwrap().message_count, 1);
    call.answers("1").await;
    stage.model.asked_by("a").await.answers("2").await;
    assert_eq!(ended(running).await, completed("r1", "1", 1));
    assert_eq!(ended(waiting).await, completed("r2", "2", 1));
}
