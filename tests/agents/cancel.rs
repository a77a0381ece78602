//! `cancel` takes effect at once, wherever the turn is.

use nexus3::message::{Message, ToolCall, ToolMeta};
use nexus3::rpc::method::{CancelResult, RequestStatus};
use serde_json::json;

use crate::agents_support::{Stage, cancelled, completed, ended, request, request_id};
use crate::observe::user;

fn one(id: &str) -> CancelResult {
    CancelResult::One { cancelled: true, request_id: request_id(id), reason: None }
}

fn too_late(id: &str) -> CancelResult {
    let reason = Some("not_found_or_completed".to_owned());
    CancelResult::One { cancelled: false, request_id: request_id(id), reason }
}

#[tokio::test]
async fn a_waiting_send_never_starts() {
    let mut stage = Stage::new().await;
    let a = stage.agent("a", "worker").await;
    let running = stage.sending(&a, request("r1", "one"));
    let call = stage.model.asked_by("a").await;
    let waiting = stage.sending(&a, request("r2", "two"));
    stage.has_queued(&a, 1).await;
    assert_eq!(stage.cancel(&a, Some(request_id("r2"))).await.unwrap(), one("r2"));
    assert_eq!(ended(waiting).await, cancelled("r2"));
    assert_eq!(stage.entry(&a).await.queued, 0);
    call.answers("1").await;
    assert_eq!(ended(running).await, completed("r1", "1", 1));
    assert_eq!(stage.messages(&a).await.len(), 2);
}

#[tokio::test]
async fn a_turn_ends_before_its_first_chunk_and_the_model_is_left() {
    let mut stage = Stage::new().await;
    let a = stage.agent("a", "worker").await;
    let sent = stage.sending(&a, request("r1", "one"));
    let call = stage.model.asked_by("a").await;
    assert_eq!(stage.cancel(&a, Some(request_id("r1"))).await.unwrap(), one("r1"));
    assert_eq!(ended(sent).await, cancelled("r1"));
    call.dropped().await;
    assert_eq!(stage.messages(&a).await, [user("one")]);
}

#[tokio::test]
async fn a_turn_ends_in_the_middle_of_its_answer_and_the_next_one_runs() {
    let mut stage = Stage::new().await;
    let a = stage.agent("a", "worker").await;
    let sent = stage.sending(&a, request("r1", "one"));
    let mut call = stage.model.asked_by("a").await;
    call.says("Hel").await;
    stage.queue(&a, "r2", "two").await;
    assert_eq!(stage.cancel(&a, Some(request_id("r1"))).await.unwrap(), one("r1"));
    assert_eq!(ended(sent).await, cancelled("r1"));
    call.dropped().await;
    let next = stage.model.asked_by("a").await;
    next.answers("2").await;
    assert_eq!(stage.send(&a, &request("r2", "two")).await.unwrap(), completed("r2", "2", 1));
}

#[tokio::test]
async fn a_running_tool_is_cut_off_and_those_behind_it_never_run() {
    let mut stage = Stage::new().await;
    let a = stage.agent("a", "worker").await;
    let sent = stage.sending(&a, request("r1", "sleep"));
    let long = r#"{"seconds": 3600}"#;
    let echo = r#"{"message": "x"}"#;
    stage.model.asked_by("a").await.calls(&[("c1", "sleep", long), ("c2", "echo", echo)]).await;
    stage.has_messages(&a, 2).await;
    assert_eq!(stage.cancel(&a, Some(request_id("r1"))).await.unwrap(), one("r1"));
    assert_eq!(ended(sent).await, cancelled("r1"));
    let call = |id: &str, name: &str, arguments| ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments,
    };
    let result = |id: &str, content: &str| Message::Tool {
        content: content.to_owned(),
        tool_call_id: id.to_owned(),
        meta: Some(ToolMeta { error: true }),
    };
    let expected = [
        user("sleep"),
        Message::Assistant {
            content: String::new(),
            tool_calls: vec![
                call("c1", "sleep", json!({"seconds": 3600})),
                call("c2", "echo", json!({"message": "x"})),
            ],
            meta: None,
        },
        result(
            "c1",
            "Cut off while it ran, because the turn ended early (cancelled): whether it had an \
             effect is not known.",
        ),
        result("c2", "Not run: the turn ended early (cancelled)."),
    ];
    assert_eq!(stage.messages(&a).await, expected);
}

#[tokio::test]
async fn after_the_end_there_is_nothing_to_cancel() {
    let mut stage = Stage::new().await;
    let a = stage.agent("a", "worker").await;
    let sent = stage.sending(&a, request("r1", "one"));
    stage.model.asked_by("a").await.answers("1").await;
    ended(sent).await;
    for id in ["r1", "never"] {
        assert_eq!(stage.cancel(&a, Some(request_id(id))).await.unwrap(), too_late(id));
    }
    assert_eq!(stage.request(&a, "r1").await.status, RequestStatus::Completed);
    let nothing = CancelResult::All { cancelled: false, request_ids: vec![] };
    assert_eq!(stage.cancel(&a, None).await.unwrap(), nothing);
}

#[tokio::test]
async fn without_an_id_everything_running_and_waiting_is_cancelled() {
    let mut stage = Stage::new().await;
    let a = stage.agent("a", "worker").await;
    let running = stage.sending(&a, request("r1", "one"));
    let call = stage.model.asked_by("a").await;
    for id in ["r2", "r3"] {
        stage.queue(&a, id, "x").await;
    }
    let all = CancelResult::All {
        cancelled: true,
        request_ids: ["r1", "r2", "r3"].map(request_id).to_vec(),
    };
    assert_eq!(stage.cancel(&a, None).await.unwrap(), all);
    assert_eq!(ended(running).await, cancelled("r1"));
    call.dropped().await;
    for id in ["r2", "r3"] {
        assert_eq!(stage.request(&a, id).await.result, Some(cancelled(id)));
    }
    assert_eq!(stage.entry(&a).await.active_request_id, None);
    assert_eq!(stage.entry(&a).await.queued, 0);
}
