//! `destroy_agent`: who ends, in which order, and that nothing of them runs afterwards.

use http::StatusCode;
use nexus3::client::ClientError;
use nexus3::id::AgentId;
use nexus3::policy::ceiling::Yolo;
use nexus3::rpc::method::{DestroyAgentParams, DestroyAgentResult};

use crate::agents_support::{Stage, agent_id, cancelled, completed, ended, error, request, says};

fn ids(names: &[&str]) -> Vec<AgentId> {
    names.iter().map(|name| agent_id(name)).collect()
}

/// y → (t → (s, w), u), and lone beside them.
async fn family(stage: &Stage) {
    let y = stage.agent("y", "yolo").await;
    let t = stage.child("t", "trusted", Some(&y)).await;
    stage.child("s", "sandboxed", Some(&t)).await;
    stage.child("w", "worker", Some(&t)).await;
    stage.child("u", "trusted", Some(&y)).await;
    stage.agent("lone", "worker").await;
}

#[tokio::test]
async fn descendants_end_with_their_ancestor_deepest_first() {
    let stage = Stage::with(Yolo::Allowed, |_| {}).await;
    family(&stage).await;
    let destroyed = stage.destroy(&agent_id("y")).await;
    let expected = DestroyAgentResult {
        success: true,
        agent_id: agent_id("y"),
        destroyed: ids(&["y", "s", "w", "t", "u"]),
    };
    assert_eq!(destroyed, expected);
    let left: Vec<_> = stage.entries().await.into_iter().map(|entry| entry.agent_id).collect();
    assert_eq!(left, ids(&["lone"]));
}

#[tokio::test]
async fn without_cascade_children_stay_without_a_parent() {
    let stage = Stage::with(Yolo::Allowed, |_| {}).await;
    family(&stage).await;
    let params = DestroyAgentParams { agent_id: agent_id("t"), cascade: Some(false) };
    assert_eq!(stage.destroy_agent(&params).await.unwrap().destroyed, ids(&["t"]));
    let left: Vec<_> = stage
        .entries()
        .await
        .into_iter()
        .map(|entry| (entry.agent_id, entry.parent_agent_id, entry.child_count, entry.depth))
        .collect();
    let expected = [
        ("y", None, 1, 0),
        ("s", None, 0, 2),
        ("w", None, 0, 2),
        ("u", Some("y"), 0, 1),
        ("lone", None, 0, 0),
    ]
    .map(|(id, parent, children, depth)| (agent_id(id), parent.map(agent_id), children, depth));
    assert_eq!(left, expected);
}

#[tokio::test]
async fn where_there_is_no_agent_nothing_is_destroyed() {
    let stage = Stage::new().await;
    let nothing = DestroyAgentResult { success: false, agent_id: agent_id("a"), destroyed: vec![] };
    assert_eq!(stage.destroy(&agent_id("a")).await, nothing);
    stage.agent("a", "worker").await;
    assert!(stage.destroy(&agent_id("a")).await.success);
    assert_eq!(stage.destroy(&agent_id("a")).await, nothing);
}

#[tokio::test]
async fn what_runs_and_what_waits_is_cancelled_and_the_model_left() {
    let mut stage = Stage::new().await;
    let a = stage.agent("a", "worker").await;
    let running = stage.sending(&a, request("r1", "one"));
    let mut call = stage.model.asked_by("a").await;
    call.says("Hel").await;
    let waiting = stage.sending(&a, request("r2", "two"));
    stage.has_queued(&a, 1).await;
    let destroyed = stage.destroy(&a).await;
    assert_eq!(destroyed.destroyed, std::slice::from_ref(&a));
    assert_eq!(ended(running).await, cancelled("r1"));
    assert_eq!(ended(waiting).await, cancelled("r2"));
    call.dropped().await;
}

#[tokio::test]
async fn an_agent_that_is_gone_is_not_found_and_its_id_starts_afresh() {
    let mut stage = Stage::new().await;
    let a = stage.agent("a", "worker").await;
    stage.exchange(&a, "one", "1").await;
    stage.destroy(&a).await;
    match stage.send(&a, &says("two")).await {
        Err(ClientError::Refused { status, error: told }) => {
            assert_eq!(status, StatusCode::NOT_FOUND);
            assert_eq!(told, error(-32602, "Agent not found: a"));
        }
        other => panic!("{other:?}"),
    }
    stage.agent("a", "worker").await;
    assert_eq!(stage.messages(&a).await, []);
    let sent = stage.sending(&a, request("r1", "two"));
    let call = stage.model.asked_by("a").await;
    assert_eq!(call.request["messages"].as_array().unwrap().len(), 2, "system prompt and message");
    call.answers("2").await;
    assert_eq!(ended(sent).await, completed("r1", "2", 1));
}

#[tokio::test]
async fn a_running_tool_ends_with_its_agent() {
    let mut stage = Stage::new().await;
    let a = stage.agent("a", "worker").await;
    let sent = stage.sending(&a, request("r1", "sleep"));
    let call = stage.model.asked_by("a").await;
    call.calls(&[("c1", "sleep", r#"{"seconds": 3600}"#)]).await;
    stage.has_messages(&a, 2).await;
    assert!(stage.destroy(&a).await.success);
    assert_eq!(ended(sent).await, cancelled("r1"));
}
