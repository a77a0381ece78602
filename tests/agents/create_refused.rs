//! `create_agent` refused: why, in which words, and that nothing is left of it.

use nexus3::policy::ceiling::Yolo;
use nexus3::rpc::method::CreateAgentParams;
use nexus3::rpc::wire::ErrorObject;
use serde_json::{Value, json};

use crate::agents_support::{Stage, agent_id, error, every_tool_but, forbidden, named, refused};

/// Tries to create agents, and checks that each is refused so and leaves no trace.
async fn are_refused(stage: &Stage, table: Vec<(Value, ErrorObject)>) {
    let before = stage.entries().await;
    for (params, expected) in table {
        let outcome = stage.call_by_name(None, "create_agent", params.clone()).await;
        assert_eq!(refused(outcome), expected, "{params}");
    }
    assert_eq!(stage.entries().await, before);
    let dot = CreateAgentParams { agent_id: Some(".".to_owned()), ..CreateAgentParams::default() };
    let created = stage.create_agent(&dot).await.expect("there is room");
    assert_eq!(created.agent_id, agent_id(".1"));
    assert_eq!(stage.destroy(&agent_id(".1")).await.destroyed, [agent_id(".1")]);
}

#[tokio::test]
async fn what_does_not_exist_is_named() {
    let stage = Stage::new().await;
    stage.agent("taken", "worker").await;
    let presets = "yolo, trusted, sandboxed, worker";
    let mut tools = every_tool_but(&[]);
    tools.sort_unstable();
    let tools = tools.join(", ");
    are_refused(
        &stage,
        vec![
            (json!({"agent_id": "taken"}), error(-32002, "Agent already exists: taken")),
            (
                json!({"agent_id": ".", "parent_agent_id": "nobody"}),
                error(-32602, "Parent agent not found: nobody"),
            ),
            (
                json!({"agent_id": ".", "preset": "root"}),
                error(-32602, &format!("there is no preset `root`; there are {presets}")),
            ),
            (
                json!({"agent_id": ".", "model": "gpt"}),
                error(-32602, "Unknown model: gpt (known: m, demo, or provider/model-id)"),
            ),
            (
                json!({"agent_id": ".", "disable_tools": ["echo", "fly"]}),
                error(-32602, &format!("Unknown tool: fly. Tools there are: {tools}")),
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn malformed_parameters_are_named() {
    let stage = Stage::new().await;
    let known = "agent_id, preset, system_prompt, cwd, allowed_write_paths, model, disable_tools, \
                 parent_agent_id, initial_message, wait_for_initial_response, limits";
    let form = "letters, digits, `.`, `_` and `-`, at most 63 of them, starting with a letter or \
                digit after an optional dot, no `..`";
    let bad_id = |shown: &str| error(-32602, &format!("Invalid agent id: {shown:?} ({form})"));
    let long = "x".repeat(64);
    are_refused(
        &stage,
        vec![
            (json!({"agent_id": "../etc"}), bad_id("../etc")),
            (json!({"agent_id": ""}), bad_id("")),
            (json!({"agent_id": ".."}), bad_id("..")),
            (json!({"agent_id": "a..b"}), bad_id("a..b")),
            (json!({"agent_id": "é"}), bad_id("é")),
            (json!({"agent_id": long}), bad_id(&long)),
            (
                json!({"agent_id": ".", "parent_agent_id": "a/b"}),
                error(
                    -32602,
                    &format!(
                        "Invalid parameter parent_agent_id: Invalid agent id: \"a/b\" ({form})"
                    ),
                ),
            ),
            (
                json!({"agent_id": ".", "color": 1}),
                error(-32602, &format!("Unknown parameter: color. Known parameters: {known}")),
            ),
            (
                json!({"agent_id": ".", "cwd": 7}),
                error(
                    -32602,
                    "Invalid parameter cwd: invalid type: integer `7`, expected a string",
                ),
            ),
            (
                json!({"agent_id": ".", "wait_for_initial_response": true}),
                error(-32602, "wait_for_initial_response needs an initial_message"),
            ),
            (
                json!({"agent_id": ".", "initial_message": ""}),
                error(-32602, "Invalid parameter initial_message: it must not be empty"),
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_working_directory_must_be_one() {
    let stage = Stage::new().await;
    let directory = tempfile::tempdir().unwrap();
    let (file, missing) = (directory.path().join("file"), directory.path().join("missing"));
    std::fs::write(&file, "x").unwrap();
    let home = std::fs::canonicalize(stage.server.home.path()).unwrap();
    stage.agent("boss", "trusted").await;
    let (file, missing) = (file.display().to_string(), missing.display().to_string());
    let closed =
        |path: &str| forbidden("ceiling", &format!("{path} is closed to agents of this server"));
    let child = |cwd: &str| json!({"agent_id": ".", "parent_agent_id": "boss", "cwd": cwd});
    let home = home.display().to_string();
    are_refused(
        &stage,
        vec![
            (
                json!({"agent_id": ".", "cwd": missing}),
                error(-32602, &format!("cwd does not exist: {missing}")),
            ),
            (
                json!({"agent_id": ".", "cwd": file}),
                error(-32602, &format!("cwd is not a directory: {file}")),
            ),
            (
                json!({"agent_id": ".", "cwd": "no/such/place"}),
                error(-32602, "cwd does not exist: no/such/place"),
            ),
            (child("/proc"), closed("/proc")),
            (child(&home), closed(&home)),
        ],
    )
    .await;
}

#[tokio::test]
async fn yolo_needs_the_servers_leave() {
    let stage = Stage::new().await;
    let message = "`yolo` agents are refused over RPC unless the server runs with --allow-yolo";
    let params = json!({"agent_id": ".", "preset": "yolo"});
    are_refused(&stage, vec![(params, forbidden("yolo", message))]).await;
}

#[tokio::test]
async fn no_child_rises_to_its_parents_level() {
    let stage = Stage::with(Yolo::Allowed, |_| {}).await;
    for preset in ["yolo", "trusted", "sandboxed", "worker"] {
        stage.agent(preset, preset).await;
    }
    let child = |parent: &str, preset: &str| json!({"agent_id": ".", "parent_agent_id": parent, "preset": preset});
    let above = |parent: &str, preset: &str| {
        let below = "agent creates only agents below its level, and";
        forbidden("ceiling", &format!("a {parent} {below} `{preset}` is {preset}"))
    };
    let none = forbidden("ceiling", "a sandboxed agent creates no agents");
    are_refused(
        &stage,
        vec![
            (child("yolo", "yolo"), above("yolo", "yolo")),
            (child("trusted", "yolo"), above("trusted", "yolo")),
            (child("trusted", "trusted"), above("trusted", "trusted")),
            (child("sandboxed", "worker"), none.clone()),
            (child("sandboxed", "sandboxed"), none.clone()),
            (child("worker", "worker"), none),
        ],
    )
    .await;
}

#[tokio::test]
async fn write_paths_are_for_sandboxed_agents_and_inside_their_directory() {
    let stage = Stage::with(Yolo::Allowed, |_| {}).await;
    let with = |preset: &str, path: &str| json!({"agent_id": ".", "preset": preset, "allowed_write_paths": ["in", path]});
    let outside =
        |path: &str| forbidden("policy", &format!("{path} lies outside the working directory"));
    let needless = |level: &str| {
        let message =
            format!("`allowed_write_paths` is for sandboxed agents; `{level}` is {level}");
        error(-32602, &message)
    };
    are_refused(
        &stage,
        vec![
            (with("yolo", "x"), needless("yolo")),
            (with("trusted", "x"), needless("trusted")),
            (with("worker", "x"), forbidden("policy", "`worker` agents never write")),
            (with("sandboxed", "/etc"), outside("/etc")),
            (with("sandboxed", "x/../../y"), outside("x/../../y")),
        ],
    )
    .await;
}

#[tokio::test]
async fn an_id_is_taken_for_named_and_refused_before_it_is_looked_up() {
    let stage = Stage::new().await;
    let a = stage.agent("a", "worker").await;
    let again = stage.create_agent(&named("a", "worker")).await;
    assert_eq!(refused(again), error(-32002, "Agent already exists: a"));
    stage.destroy(&a).await;
    assert_eq!(stage.agent("a", "worker").await, a);
}
