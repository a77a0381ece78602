//! `X-Nexus-Agent`: what a call may do that is made as an agent.

use http::StatusCode;
use nexus3::client::{ClientError, NexusClient};
use nexus3::id::AgentId;
use nexus3::policy::ceiling::Yolo;
use nexus3::rpc::method::{
    CreateAgentParams, DestroyAgentParams, SendParams, SendResult, SummariesParams,
};
use nexus3::rpc::wire::ErrorObject;
use serde_json::{Value, json};

use crate::agents_support::{
    Stage, agent_id, completed, ended, error_with, forbidden, named, refused, request, says,
    sending,
};

/// boss (yolo) → lead (trusted) → (hand (sandboxed), drone (worker)), and lone (trusted).
async fn team() -> Stage {
    let stage = Stage::with(Yolo::Allowed, |_| {}).await;
    let boss = stage.agent("boss", "yolo").await;
    let lead = stage.child("lead", "trusted", Some(&boss)).await;
    stage.child("hand", "sandboxed", Some(&lead)).await;
    stage.child("drone", "worker", Some(&lead)).await;
    stage.agent("lone", "trusted").await;
    stage
}

fn deadlock(chain: &[&str]) -> ErrorObject {
    let message = format!("the send would wait for itself: {}", chain.join(" → "));
    error_with(-32003, &message, json!({"reason": "would_deadlock", "chain": chain}))
}

fn policy(message: &str) -> ErrorObject {
    forbidden("policy", message)
}

async fn seen(client: &NexusClient) -> Vec<String> {
    let list = client.list_agents().await.expect("listing answers");
    list.agents.iter().map(|entry| entry.agent_id.to_string()).collect()
}

#[tokio::test]
async fn an_agent_sees_itself_its_descendants_and_its_parent() {
    let stage = team().await;
    for (viewer, listed, read) in [
        ("boss", vec!["boss", "lead", "hand", "drone"], vec!["boss", "lead", "hand", "drone"]),
        ("lead", vec!["boss", "lead", "hand", "drone"], vec!["lead", "hand", "drone"]),
        ("hand", vec!["lead", "hand"], vec!["hand"]),
        ("lone", vec!["lone"], vec!["lone"]),
    ] {
        let client = stage.acting_as(&agent_id(viewer));
        assert_eq!(seen(&client).await, listed, "{viewer}");
        let params = SummariesParams { include_tokens: Some(true), include_context: None };
        let summaries = client.get_agent_summaries(&params).await.unwrap().agents;
        let summarised: Vec<&str> = summaries.iter().map(|s| s.entry.agent_id.as_str()).collect();
        assert_eq!(summarised, read, "{viewer}");
    }
}

#[tokio::test]
async fn an_agent_reads_and_cancels_only_itself_and_its_descendants() {
    let stage = team().await;
    let lead = stage.acting_as(&agent_id("lead"));
    let methods = [
        ("cancel", json!({})),
        ("get_tokens", json!({})),
        ("get_context", json!({})),
        ("get_messages", json!({})),
    ];
    for (method, params) in &methods {
        for own in ["lead", "hand", "drone"] {
            lead.call_by_name(Some(&agent_id(own)), method, params.clone()).await.unwrap();
        }
        for other in ["boss", "lone"] {
            let outcome = lead.call_by_name(Some(&agent_id(other)), method, params.clone()).await;
            let message = format!("{other} is neither lead nor one of its descendants");
            assert_eq!(refused(outcome), forbidden("owner", &message), "{method}");
        }
    }
    let params = json!({"request_id": "r"});
    let outcome = lead.call_by_name(Some(&agent_id("boss")), "get_request", params).await;
    let message = "boss is neither lead nor one of its descendants";
    assert_eq!(refused(outcome), forbidden("owner", message));
}

#[tokio::test]
async fn an_agent_stops_nothing() {
    let stage = team().await;
    let boss = stage.acting_as(&agent_id("boss"));
    let outcome = boss.shutdown_server().await;
    assert_eq!(refused(outcome), policy("agents may not call shutdown_server"));
    for agent in ["boss", "hand"] {
        let outcome = boss.shutdown(&agent_id(agent)).await;
        assert_eq!(refused(outcome), policy("agents may not call shutdown"));
    }
    boss.discover().await.expect("anybody may read the schema");
}

#[tokio::test]
async fn an_agent_creates_only_children_of_its_own_and_below_its_level() {
    let stage = team().await;
    let lead = stage.acting_as(&agent_id("lead"));
    let created = lead.create_agent(&named("new", "worker")).await.unwrap();
    let entry = stage.entry(&created.agent_id).await;
    assert_eq!((entry.parent_agent_id, entry.depth), (Some(agent_id("lead")), 2));
    let own = json!({"agent_id": "new2", "preset": "sandboxed", "parent_agent_id": "lead"});
    lead.call_by_name(None, "create_agent", own).await.unwrap();
    let before = stage.entries().await;
    let above = |preset: &str| {
        let below = "a trusted agent creates only agents below its level, and";
        forbidden("ceiling", &format!("{below} `{preset}` is {preset}"))
    };
    let not_own = |parent: &str| {
        forbidden("owner", &format!("lead creates only its own children, not those of {parent}"))
    };
    let none = forbidden("ceiling", "a sandboxed agent creates no agents");
    let table: Vec<(&str, Value, ErrorObject)> = vec![
        ("lead", json!({"preset": "trusted"}), above("trusted")),
        ("lead", json!({"preset": "yolo"}), above("yolo")),
        ("lead", json!({"parent_agent_id": "boss"}), not_own("boss")),
        ("lead", json!({"parent_agent_id": "hand"}), not_own("hand")),
        ("hand", json!({}), none.clone()),
        ("drone", json!({"preset": "worker"}), none),
    ];
    for (caller, params, expected) in table {
        let client = stage.acting_as(&agent_id(caller));
        let outcome = client.call_by_name(None, "create_agent", params.clone()).await;
        assert_eq!(refused(outcome), expected, "{caller} {params}");
    }
    assert_eq!(stage.entries().await, before);
}

#[tokio::test]
async fn an_agent_destroys_only_itself_and_its_descendants() {
    let stage = team().await;
    let lead = stage.acting_as(&agent_id("lead"));
    let destroy = async |id: &str| {
        let params = DestroyAgentParams { agent_id: agent_id(id), cascade: None };
        lead.destroy_agent(&params).await
    };
    for other in ["boss", "lone", "nobody"] {
        let message = format!("{other} is neither lead nor one of its descendants");
        assert_eq!(refused(destroy(other).await), forbidden("owner", &message));
    }
    assert_eq!(destroy("hand").await.unwrap().destroyed, [agent_id("hand")]);
    let ids = ["lead", "drone"].map(agent_id);
    assert_eq!(destroy("lead").await.unwrap().destroyed, ids);
    assert_eq!(seen(&stage).await, ["boss", "lone"]);
}

#[tokio::test]
async fn an_agent_sends_where_its_preset_allows() {
    let mut stage = team().await;
    let to_itself = "an agent cannot send to itself";
    let not_parent = |to: &str, from: &str| {
        format!(
            "a sandboxed agent sends only to its parent, and `{to}` is not the parent of `{from}`"
        )
    };
    let nobody = "`drone` is a worker and sends to nobody";
    for (from, to, message) in [
        ("boss", "boss", to_itself.to_owned()),
        ("lead", "lead", to_itself.to_owned()),
        ("hand", "boss", not_parent("boss", "hand")),
        ("hand", "hand", not_parent("hand", "hand")),
        ("drone", "lead", nobody.to_owned()),
    ] {
        let outcome = stage.acting_as(&agent_id(from)).send(&agent_id(to), &says("hi")).await;
        assert_eq!(refused(outcome), policy(&message), "{from} to {to}");
    }
    for (from, to) in [("boss", "lone"), ("lead", "boss"), ("lead", "drone"), ("hand", "lead")] {
        let client = stage.acting_as(&agent_id(from));
        let params = SendParams { source_agent_id: Some(agent_id("lone")), ..request(from, "hi") };
        let sent = sending(client, &agent_id(to), params);
        stage.model.asked_by(to).await.answers("ok").await;
        assert_eq!(ended(sent).await, completed(from, "ok", 1), "{from} to {to}");
        let messages = stage.messages(&agent_id(to)).await;
        let question = serde_json::to_value(&messages[messages.len() - 2]).unwrap();
        let meta = json!({"source": "test", "source_agent_id": from});
        assert_eq!(question, json!({"role": "user", "content": "hi", "meta": meta}));
    }
}

#[tokio::test]
async fn a_send_that_would_wait_for_itself_is_refused_with_its_chain() {
    let mut stage = Stage::new().await;
    let mut ids: Vec<AgentId> = Vec::new();
    for name in ["a", "b", "c"] {
        ids.push(stage.agent(name, "trusted").await);
    }
    let [a, b, c] = ids.try_into().expect("there are three");
    let first = sending(stage.acting_as(&a), &b, request("r1", "one"));
    let call_b = stage.model.asked_by("b").await;
    let outcome = stage.acting_as(&b).send(&a, &says("back")).await;
    assert_eq!(refused(outcome), deadlock(&["b", "a", "b"]));
    let second = sending(stage.acting_as(&b), &c, request("r2", "two"));
    let call_c = stage.model.asked_by("c").await;
    let outcome = stage.acting_as(&c).send(&a, &says("back")).await;
    assert_eq!(refused(outcome), deadlock(&["c", "a", "b", "c"]));
    assert_eq!(stage.messages(&a).await, []);
    // Who does not wait locks nobody out.
    let params = SendParams { wait: Some(false), ..request("r3", "note") };
    let accepted = stage.acting_as(&c).send(&a, &params).await.unwrap();
    assert!(matches!(accepted, SendResult::Accepted { .. }));
    stage.model.asked_by("a").await.answers("noted").await;
    call_c.answers("2").await;
    ended(second).await;
    call_b.answers("1").await;
    ended(first).await;
    let back = sending(stage.acting_as(&b), &a, request("r4", "back"));
    stage.model.asked_by("a").await.answers("yes").await;
    assert_eq!(ended(back).await, completed("r4", "yes", 1));
}

#[tokio::test]
async fn a_creator_that_waits_for_the_first_answer_waits_like_a_sender() {
    let mut stage = Stage::new().await;
    let a = stage.agent("a", "trusted").await;
    let creator = stage.acting_as(&a);
    let params = CreateAgentParams {
        initial_message: Some("Go.".to_owned()),
        wait_for_initial_response: Some(true),
        ..named("c", "sandboxed")
    };
    let creating = tokio::spawn(async move { creator.create_agent(&params).await });
    let call = stage.model.asked_by("c").await;
    let outcome = stage.acting_as(&agent_id("c")).send(&a, &says("help")).await;
    assert_eq!(refused(outcome), deadlock(&["c", "a", "c"]));
    call.answers("done").await;
    creating.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_requester_that_is_no_agent_is_turned_away() {
    let stage = team().await;
    match stage.acting_as(&agent_id("nobody")).list_agents().await {
        Err(ClientError::Refused { status, error }) => {
            assert_eq!((status, error.code), (StatusCode::FORBIDDEN, -32003));
            assert_eq!(error.message, "Unknown requester: nobody");
        }
        other => panic!("{other:?}"),
    }
}
