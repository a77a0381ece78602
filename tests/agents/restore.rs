//! Agents that come back from disk: with everything they had, and never with more than today's
//! configuration and their parent allow.

use nexus3::client::ClientError;
use nexus3::config::{Config, PresetConfig, ToolConfig};
use nexus3::policy::ceiling::Yolo;
use nexus3::rpc::method::CreateAgentParams;
use serde_json::json;

use crate::agents_support::{
    Stage, agent_id, completed, ended, error, forbidden, named, refused, request,
};

fn quiet(tool: &str) -> PresetConfig {
    let off = ToolConfig { enabled: Some(false), allowed_paths: None, timeout: None };
    PresetConfig {
        extends: "sandboxed".to_owned(),
        description: None,
        allowed_paths: None,
        blocked_paths: Vec::new(),
        tools: [(tool.to_owned(), off)].into(),
    }
}

fn with_preset(name: &str, tool: &str) -> impl FnOnce(&mut Config) {
    let preset = (name.to_owned(), quiet(tool));
    move |config| config.permissions.presets.extend([preset])
}

/// The message of a restore that failed.
async fn failure(stage: &Stage, id: &str) -> String {
    match stage.get_context(&agent_id(id)).await {
        Err(ClientError::Refused { status, error }) => {
            assert_eq!((status.as_u16(), error.code), (500, -32603));
            let message = error.message.strip_prefix("Failed to restore session: ");
            message.expect("it says what failed").to_owned()
        }
        other => panic!("expected a failed restore: {other:?}"),
    }
}

#[tokio::test]
async fn an_agent_comes_back_with_all_it_was_created_with() {
    let mut stage = Stage::new().await;
    let place = tempfile::tempdir().unwrap();
    let params = CreateAgentParams {
        system_prompt: Some("You count.".to_owned()),
        cwd: Some(place.path().display().to_string()),
        disable_tools: Some(vec!["sleep".to_owned()]),
        ..named("a", "sandboxed")
    };
    let a = stage.create_agent(&params).await.unwrap().agent_id;
    stage.exchange(&a, "one", "1").await;
    let (entry, tokens) = (stage.entry(&a).await, stage.get_tokens(&a).await.unwrap());
    let mut stage = stage.restarted(Yolo::Refused, |_| {}).await;
    assert_eq!(stage.entries().await, [], "nobody asked for it yet");
    assert_eq!(stage.get_tokens(&a).await.unwrap(), tokens);
    assert_eq!(stage.entry(&a).await, entry);
    assert_eq!(stage.messages(&a).await.len(), 2);
    let sent = stage.sending(&a, request("r2", "two"));
    let call = stage.model.asked_by("a").await;
    let texts = call.request["messages"].as_array().unwrap().iter().map(|it| it["content"].clone());
    assert_eq!(
        texts.collect::<Vec<_>>(),
        [json!("You count."), json!("one"), json!("1"), json!("two")]
    );
    call.answers("2").await;
    assert_eq!(ended(sent).await, completed("r2", "2", 1));
}

#[tokio::test]
async fn todays_preset_decides_what_an_agent_may_do() {
    let stage = Stage::with(Yolo::Refused, with_preset("quiet", "sleep")).await;
    let a = stage.agent("a", "quiet").await;
    let before = stage.get_tokens(&a).await.unwrap().tools;
    let stage = stage.restarted(Yolo::Refused, with_preset("quiet", "echo")).await;
    let after = stage.get_tokens(&a).await.unwrap().tools;
    assert!(after < before, "it lacks what it lacked, and what the preset takes away today");
    let stage = stage.restarted(Yolo::Refused, |_| {}).await;
    let presets = "yolo, trusted, sandboxed, worker";
    let message = format!("there is no preset `quiet`; there are {presets}");
    assert_eq!(failure(&stage, "a").await, message);
    let taken = stage.create_agent(&named("a", "worker")).await;
    let expected = error(-32002, "Agent already exists: a");
    assert!(matches!(taken, Err(ClientError::Rpc { error }) if error == expected));
}

#[tokio::test]
async fn an_agent_without_restrictions_needs_the_servers_leave_again() {
    let stage = Stage::with(Yolo::Allowed, |_| {}).await;
    stage.agent("a", "yolo").await;
    let stage = stage.restarted(Yolo::Refused, |_| {}).await;
    let message = "`yolo` agents are refused over RPC unless the server runs with --allow-yolo";
    assert_eq!(failure(&stage, "a").await, message);
    let stage = stage.restarted(Yolo::Allowed, |_| {}).await;
    assert_eq!(stage.get_context(&agent_id("a")).await.unwrap().message_count, 0);
}

#[tokio::test]
async fn a_model_that_is_gone_is_told_and_nothing_is_lost() {
    let mut stage = Stage::new().await;
    let a = stage.agent("a", "worker").await;
    stage.exchange(&a, "one", "1").await;
    let stage = stage.restarted(Yolo::Refused, |config| config.providers.clear()).await;
    assert!(failure(&stage, "a").await.starts_with("Unknown model: m "));
    let stage = stage.restarted(Yolo::Refused, |_| {}).await;
    assert_eq!(stage.messages(&a).await.len(), 2);
}

#[tokio::test]
async fn children_come_back_under_their_parents_and_never_above_them() {
    let stage = Stage::new().await;
    let boss = stage.agent("boss", "trusted").await;
    let w1 = stage.child("w1", "sandboxed", Some(&boss)).await;
    let stage = stage.restarted(Yolo::Refused, |_| {}).await;
    stage.get_context(&w1).await.unwrap();
    let entries = stage.entries().await;
    let family = entries.iter().map(|entry| (entry.agent_id.as_str(), entry.child_count));
    assert_eq!(family.collect::<Vec<_>>(), [("boss", 1), ("w1", 0)]);
    assert_eq!(entries[1].parent_agent_id, Some(boss));
    let above = stage.acting_as(&w1).create_agent(&named("w2", "sandboxed")).await;
    let refusal = forbidden("ceiling", "a sandboxed agent creates no agents");
    assert_eq!(refused(above), refusal);
}
