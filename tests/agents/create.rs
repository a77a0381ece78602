//! `create_agent`: what an agent becomes by its parameters, and by their defaults.

use std::sync::Arc;

use nexus3::config::{PresetConfig, ToolConfig};
use nexus3::policy::Level;
use nexus3::policy::ceiling::Yolo;
use nexus3::rpc::method::{AgentEntry, AgentStatus, CreateAgentParams, Limits};
use serde_json::{Value, json};

use crate::agents_support::{Stage, agent_id, every_tool_but, named, says, tools_but};

/// The server's working directory, which is that of its tests.
fn working_directory() -> String {
    let path = std::env::current_dir().and_then(std::fs::canonicalize);
    path.expect("tests run somewhere").display().to_string()
}

fn tool_names(request: &Value) -> Vec<&str> {
    let tools = request["tools"].as_array().expect("there are tools");
    tools.iter().map(|tool| tool["function"]["name"].as_str().expect("it has a name")).collect()
}

#[tokio::test]
async fn an_agent_that_is_told_nothing_takes_every_default() {
    let stage = Stage::new().await;
    let created = stage.create_agent(&CreateAgentParams::default()).await.unwrap();
    let id = created.agent_id.as_str();
    assert_eq!(id.len(), 8);
    assert!(id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')), "{id}");
    assert_eq!(
        serde_json::to_value(&created).unwrap(),
        json!({"agent_id": id, "url": format!("/agent/{id}")})
    );
    let entries = stage.entries().await;
    let created_at = entries[0].created_at.clone();
    let time: jiff::Timestamp = created_at.parse().expect("it is ISO 8601");
    assert_eq!(format!("{time:.3}"), *created_at, "in UTC, to the millisecond");
    let entry = AgentEntry {
        agent_id: created.agent_id,
        is_temp: false,
        created_at,
        message_count: 0,
        should_shutdown: false,
        parent_agent_id: None,
        child_count: 0,
        depth: 0,
        model: "m".into(),
        permission_level: Level::Sandboxed,
        preset: "sandboxed".into(),
        cwd: working_directory().into(),
        write_paths: Some([].into()),
        status: AgentStatus::Idle,
        active_request_id: None,
        queued: 0,
        halted_at_iteration_limit: false,
        last_action_at: None,
    };
    assert_eq!(entries, [entry]);
}

#[tokio::test]
async fn every_parameter_shows_in_the_agent() {
    let mut stage = Stage::new().await;
    let boss = stage.agent("boss", "trusted").await;
    let directory = tempfile::tempdir().unwrap();
    let cwd = std::fs::canonicalize(directory.path()).unwrap();
    let params = CreateAgentParams {
        agent_id: Some("helper".to_owned()),
        preset: Some("sandboxed".to_owned()),
        system_prompt: Some("Be brief.".to_owned()),
        cwd: Some(cwd.display().to_string()),
        allowed_write_paths: Some(vec!["out".to_owned(), cwd.join("a/../b").display().to_string()]),
        model: Some("wire/other".to_owned()),
        disable_tools: Some(vec!["sleep".to_owned()]),
        parent_agent_id: Some(boss.clone()),
        initial_message: Some("Go.".to_owned()),
        wait_for_initial_response: Some(false),
        limits: Some(Limits { max_turns: Some(1), ..Limits::default() }),
    };
    stage.create_agent(&params).await.unwrap();
    let call = stage.model.asked_by("helper").await;
    assert_eq!(call.request["model"], "other");
    assert_eq!(
        call.request["messages"],
        json!([
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Go."},
        ])
    );
    let programs = ["exec", "run_python", "shell_UNSAFE", "git"];
    let about_agents =
        ["nexus_create", "nexus_status", "nexus_cancel", "nexus_destroy", "nexus_shutdown"];
    let lacking = [&programs[..], &about_agents, &["sleep"]].concat();
    assert_eq!(tool_names(&call.request), every_tool_but(&lacking));
    let helper = stage.entry(&agent_id("helper")).await;
    assert_eq!(stage.entry(&boss).await.child_count, 1);
    stage.send(&helper.agent_id, &says("More")).await.expect_err("it may have one turn");
    let shown = |name: &str| cwd.join(name).display().to_string();
    let expected = AgentEntry {
        is_temp: false,
        message_count: 1,
        parent_agent_id: Some(boss),
        depth: 1,
        model: "wire/other".into(),
        permission_level: Level::Sandboxed,
        cwd: cwd.display().to_string().into(),
        write_paths: Some([shown("out"), shown("b")].into()),
        status: AgentStatus::Running,
        ..helper.clone()
    };
    assert_eq!(helper, expected);
}

#[tokio::test]
async fn the_built_in_prompt_names_the_working_directory() {
    let mut stage = Stage::new().await;
    let a = stage.agent("a", "worker").await;
    let sent = stage.sending(&a, says("hi"));
    let call = stage.model.asked_by("a").await;
    let prompt = call.request["messages"][0]["content"].as_str().unwrap().to_owned();
    let named = format!("\nWorking directory: {}\nOperating system: ", working_directory());
    assert!(prompt.contains(&named), "{prompt}");
    assert_eq!(tool_names(&call.request), tools_but(&[]));
    call.answers("hello").await;
    crate::agents_support::ended(sent).await;
}

#[tokio::test]
async fn a_dot_takes_the_lowest_free_number() {
    let stage = Stage::new().await;
    let dot = CreateAgentParams { agent_id: Some(".".to_owned()), ..CreateAgentParams::default() };
    let next = async || stage.create_agent(&dot).await.unwrap().agent_id;
    assert_eq!(next().await, agent_id(".1"));
    assert_eq!(next().await, agent_id(".2"));
    stage.agent(".4", "worker").await;
    stage.agent(".quick", "worker").await;
    assert!(stage.destroy(&agent_id(".1")).await.success);
    assert_eq!(next().await, agent_id(".1"));
    assert_eq!(next().await, agent_id(".3"));
    assert_eq!(next().await, agent_id(".5"));
    let listed: Vec<_> =
        stage.entries().await.into_iter().map(|e| (e.agent_id, e.is_temp)).collect();
    let expected = [".2", ".4", ".quick", ".1", ".3", ".5"].map(|id| (agent_id(id), true));
    assert_eq!(listed, expected);
}

#[tokio::test]
async fn the_working_directory_is_the_parents_unless_one_is_named() {
    let stage = Stage::new().await;
    let directory = tempfile::tempdir().unwrap();
    let root = std::fs::canonicalize(directory.path()).unwrap();
    std::fs::create_dir_all(root.join("a/b")).unwrap();
    std::os::unix::fs::symlink(root.join("a"), root.join("link")).unwrap();
    let boss = CreateAgentParams {
        cwd: Some(root.join("a").display().to_string()),
        ..named("boss", "trusted")
    };
    let boss = stage.create_agent(&boss).await.unwrap().agent_id;
    let mut table = Vec::new();
    for (name, cwd) in [("same", None), ("below", Some("b")), ("linked", Some("../link/b"))] {
        let params = CreateAgentParams {
            cwd: cwd.map(str::to_owned),
            parent_agent_id: Some(boss.clone()),
            ..named(name, "worker")
        };
        let created = stage.create_agent(&params).await.unwrap();
        table.push(stage.entry(&created.agent_id).await.cwd);
    }
    let shown = |path: &str| root.join(path).display().to_string();
    assert_eq!(table, ["a", "a/b", "a/b"].map(|path| Arc::<str>::from(shown(path))));
}

#[tokio::test]
async fn levels_fall_strictly_from_parent_to_child() {
    let stage = Stage::with(Yolo::Allowed, |_| {}).await;
    let yolo = stage.agent("y", "yolo").await;
    let trusted = stage.child("t", "trusted", Some(&yolo)).await;
    stage.child("s", "sandboxed", Some(&trusted)).await;
    stage.child("w", "worker", Some(&trusted)).await;
    let shown: Vec<_> = stage
        .entries()
        .await
        .into_iter()
        .map(|e| {
            (e.agent_id.to_string(), e.permission_level, e.depth, e.child_count, e.write_paths)
        })
        .collect();
    let expected = [
        ("y", Level::Yolo, 0, 1, None),
        ("t", Level::Trusted, 1, 2, None),
        ("s", Level::Sandboxed, 2, 0, Some([].into())),
        ("w", Level::Sandboxed, 2, 0, Some([].into())),
    ];
    let expected = expected
        .map(|(id, level, depth, children, paths)| (id.to_owned(), level, depth, children, paths));
    assert_eq!(shown, expected);
}

#[tokio::test]
async fn configured_presets_and_parents_take_tools_away() {
    let quiet = PresetConfig {
        extends: "trusted".to_owned(),
        description: None,
        allowed_paths: None,
        blocked_paths: Vec::new(),
        tools: [(
            "sleep".to_owned(),
            ToolConfig { enabled: Some(false), allowed_paths: None, timeout: None },
        )]
        .into(),
    };
    let mut stage = Stage::with(Yolo::Refused, |config| {
        config.permissions.presets.insert("quiet".to_owned(), quiet);
        config.permissions.default_preset = "quiet".to_owned();
    })
    .await;
    let created = stage.create_agent(&CreateAgentParams::default()).await.unwrap();
    let quiet = created.agent_id;
    let child = stage.child("child", "worker", Some(&quiet)).await;
    assert_eq!(stage.entry(&quiet).await.preset, "quiet".into());
    assert_eq!(stage.entry(&quiet).await.permission_level, Level::Trusted);
    stage.queue(&child, "r", "hi").await;
    let call = stage.model.asked_by("child").await;
    assert_eq!(tool_names(&call.request), tools_but(&["sleep"]));
    let none = CreateAgentParams {
        disable_tools: Some(tools_but(&["sleep"])),
        parent_agent_id: Some(quiet),
        ..named("bare", "worker")
    };
    let bare = stage.create_agent(&none).await.unwrap().agent_id;
    stage.queue(&bare, "r", "hi").await;
    assert_eq!(stage.model.asked_by("bare").await.request.get("tools"), None);
}
