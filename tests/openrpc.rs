//! The schema of the API tells the truth: every method of `rpc.discover` is called, and what it is
//! given and gives back is valid by the document itself.

#[path = "agents_support/server.rs"]
mod server;

use std::collections::BTreeSet;

use jsonschema::Validator;
use nexus3::choice::Choice;
use nexus3::client::NexusClient;
use nexus3::code::{Code, ErrorObject};
use nexus3::config::{Config, McpServer, McpServerForm};
use nexus3::event::{AskedTool, Batch, BatchTool, Ended, Event, What};
use nexus3::id::{AgentId, ConfirmId, RequestId};
use nexus3::message::Usage;
use nexus3::policy::ceiling::Yolo;
use nexus3::world::real;
use serde_json::{Map, Value, json};
use server::Running;

/// Outside of where the agent works.
const NEEDS_CONFIRMATION: &str = r#"call write_file {"path": "/nowhere/x", "content": "x"}"#;
/// Stands for the confirmation that is listed.
const CONFIRM_ID: &str = "0123456789abcdef";

/// Calls in their order: a method, the agent it is called on, its params. Without a provider the
/// server runs on its built-in model, which calls tools when told to.
fn samples() -> Vec<(&'static str, Option<&'static str>, Value)> {
    let (a, b) = (Some("a"), Some("b"));
    let call_a_tool = r#"call echo {"message": "x"}"#;
    let whole = json!({
        "agent_id": "b", "preset": "sandboxed", "system_prompt": "Be brief.", "cwd": ".",
        "allowed_write_paths": ["out"], "model": "demo", "disable_tools": ["sleep"],
        "parent_agent_id": "a", "initial_message": "hi", "wait_for_initial_response": true,
    });
    let send = json!({
        "content": call_a_tool, "request_id": "r1", "source": "s", "source_agent_id": "b",
        "wait": true, "timeout": 60,
    });
    vec![
        ("create_agent", None, json!({"agent_id": "a", "preset": "trusted"})),
        ("create_agent", None, whole),
        ("create_agent", None, json!({"agent_id": null, "initial_message": "hi"})),
        ("send", a, send),
        ("send", a, json!({"content": "again", "wait": false})),
        ("send", a, json!({"content": NEEDS_CONFIRMATION, "wait": false})),
        ("list_confirmations", a, json!({})),
        ("confirm", a, json!({"confirm_id": CONFIRM_ID, "decision": "deny"})),
        ("cancel", a, json!({"request_id": "r1"})),
        ("cancel", a, json!({})),
        ("get_request", a, json!({"request_id": "r1"})),
        ("get_tokens", a, json!({})),
        ("get_context", a, json!({})),
        ("get_model", a, json!({})),
        ("set_model", a, json!({"model": "demo"})),
        ("compact", a, json!({"force": false})),
        ("get_system_prompt", a, json!({})),
        ("set_system_prompt", a, json!({"system_prompt": "Be brief."})),
        ("get_permissions", a, json!({})),
        (
            "set_permissions",
            a,
            json!({"preset": "trusted", "disable_tools": ["echo", "glob"],
            "enable_tools": ["glob"]}),
        ),
        ("set_cwd", a, json!({"cwd": "."})),
        ("explain_permission", a, json!({"tool": "read_file", "arguments": {"path": "x"}})),
        ("get_messages", a, json!({"offset": 0, "limit": 100})),
        ("list_agents", None, json!({})),
        ("get_agent_summaries", None, json!({})),
        ("get_agent_summaries", None, json!({"include_tokens": true, "include_context": true})),
        ("save_session", None, json!({"agent_id": "b"})),
        ("save_session", None, json!({"agent_id": "a", "session_name": "kept", "overwrite": true})),
        ("list_sessions", None, json!({"offset": 0, "limit": 10, "include_temp": true})),
        ("show_session", None, json!({"session_name": "kept"})),
        (
            "load_session",
            None,
            json!({"session_name": "kept", "agent_id": "c", "preset": "sandboxed", "model": "demo",
            "overwrite": false}),
        ),
        ("clone_session", None, json!({"src_session": "kept", "dest_session": "twin"})),
        ("rename_session", None, json!({"old_name": "twin", "new_name": "double"})),
        ("delete_session", None, json!({"session_name": "double"})),
        ("mcp_list_servers", None, json!({})),
        ("mcp_connect", None, json!({"name": "other", "config": {"command": "/nowhere/at/all"}})),
        ("mcp_connect", None, json!({"name": "m"})),
        ("mcp_disconnect", None, json!({"name": "m"})),
        ("mcp_status", None, json!({"name": "m"})),
        ("prune_sessions", None, json!({"older_than_days": 30, "dry_run": true})),
        ("rpc.discover", None, json!({})),
        ("destroy_agent", None, json!({"agent_id": "a", "cascade": false})),
        ("destroy_agent", None, json!({"agent_id": "nobody"})),
        ("shutdown", b, json!({})),
        ("shutdown_server", None, json!({})),
    ]
}

async fn start() -> Running {
    let world = real::world().expect("a test runs in a runtime");
    let config: McpServerForm = serde_json::from_value(json!({"command": "/nowhere/at/all"}))
        .expect("it is an entry of mcp.json");
    let server = McpServer::of(config, None).expect("it can be tried");
    let mcp_servers = [("m".to_owned(), server)].into();
    let config = Config { mcp_servers, ..Config::default() };
    Running::start(world, config, Yolo::Refused).await
}

async fn document(client: &NexusClient) -> Value {
    Value::Object(client.discover().await.expect("the document is told").0)
}

/// The schema with everything its references can name.
fn validator(document: &Value, schema: &Value) -> Validator {
    let mut schema = schema.as_object().expect("a schema is an object").clone();
    schema.insert("components".to_owned(), document["components"].clone());
    jsonschema::draft202012::new(&Value::Object(schema)).expect("the schema is sound")
}

fn is_valid(document: &Value, schema: &Value, value: &Value, what: &str) {
    let validator = validator(document, schema);
    let problems: Vec<String> =
        validator.iter_errors(value).map(|problem| problem.to_string()).collect();
    assert_eq!(problems, [""; 0], "{what}: {value}");
}

/// The params of a method as one object schema.
fn params_schema(method: &Value) -> Value {
    let params = method["params"].as_array().expect("params are listed");
    let schemas = params.iter().map(|param| (text(&param["name"]), param["schema"].clone()));
    let schemas: Map<String, Value> = schemas.collect();
    let required = params.iter().filter(|param| param["required"] == true);
    let required: Vec<&Value> = required.map(|param| &param["name"]).collect();
    json!({
        "type": "object", "properties": schemas, "required": required,
        "additionalProperties": false,
    })
}

fn text(value: &Value) -> String {
    value.as_str().expect("it is a string").to_owned()
}

fn names(document: &Value) -> BTreeSet<String> {
    let methods = document["methods"].as_array().expect("methods are listed");
    methods.iter().map(|method| text(&method["name"])).collect()
}

#[tokio::test]
async fn every_method_gives_what_its_schema_says() {
    let server = start().await;
    let document = document(&server.client).await;
    let mut called = BTreeSet::new();
    // Somebody is there who could confirm something.
    let _confirmer = server.client.open_events(None, None).await.expect("a stream opens");
    for (name, agent, mut params) in samples() {
        called.insert(name.to_owned());
        let methods = document["methods"].as_array().expect("methods are listed");
        let method = methods.iter().find(|method| method["name"] == name);
        let method = method.unwrap_or_else(|| panic!("{name} is not in the document"));
        is_valid(&document, &params_schema(method), &params, name);
        let route = if agent.is_some() { "/agent/{agent_id}" } else { "/rpc" };
        assert_eq!(method["x-route"], route, "{name}");
        let agent = agent.map(|agent| AgentId::parse(agent).expect("it is well formed"));
        if params["confirm_id"] == CONFIRM_ID {
            let agent = agent.as_ref().expect("an agent's call is confirmed");
            params["confirm_id"] = pending(&server.client, agent).await.as_str().into();
        }
        let result = server.client.call_by_name(agent.as_ref(), name, params).await;
        let result = result.unwrap_or_else(|error| panic!("{name}: {error:?}"));
        is_valid(&document, &method["result"]["schema"], &result, name);
    }
    assert_eq!(called, names(&document), "every method has a sample call");
    server.stopped().await;
}

/// The confirmation that an agent waits for, once it does.
async fn pending(client: &NexusClient, agent: &AgentId) -> ConfirmId {
    loop {
        let listed = client.list_confirmations(agent).await.expect("they are listed");
        if let Some(entry) = listed.confirmations.first() {
            return entry.confirm_id.clone();
        }
    }
}

#[tokio::test]
async fn every_method_is_described_in_full() {
    let server = start().await;
    let document = document(&server.client).await;
    assert_eq!(document["openrpc"], "1.3.2");
    assert_eq!(document["info"]["title"], "NEXUS3");
    assert_eq!(document["info"]["version"], env!("CARGO_PKG_VERSION"));
    for method in document["methods"].as_array().expect("methods are listed") {
        let name = text(&method["name"]);
        assert!(text(&method["summary"]).ends_with('.'), "{name} has a summary");
        assert_eq!(method["paramStructure"], "by-name", "{name}");
        for param in method["params"].as_array().expect("params are listed") {
            assert!(!text(&param["name"]).is_empty());
            assert!(param["required"].is_boolean(), "{name}: {param}");
            validator(&document, &param["schema"]);
        }
        assert!(method["result"]["schema"].is_object(), "{name} has a result");
        validator(&document, &method["result"]["schema"]);
    }
    for (name, schema) in document["components"]["schemas"].as_object().expect("there are some") {
        validator(&document, schema);
        assert!(schema.is_object(), "{name}");
    }
}

#[tokio::test]
async fn a_schema_refuses_what_is_no_result() {
    let server = start().await;
    let document = document(&server.client).await;
    let methods = document["methods"].as_array().expect("methods are listed");
    // `rpc.discover` gives any object.
    for method in methods.iter().filter(|method| method["name"] != "rpc.discover") {
        let validator = validator(&document, &method["result"]["schema"]);
        for wrong in [json!({}), json!(null), json!([]), json!("done")] {
            assert!(!validator.is_valid(&wrong), "{}: {wrong}", method["name"]);
        }
    }
    let (client, address) = (&server.client, server.address);
    assert!(client.discover().await.is_ok(), "the server at {address} runs on");
    assert!(server.token_path.starts_with(server.home.path()));
}

/// Of a call that has not ended yet.
fn progress() -> What {
    let (tool_id, name) = ("t".to_owned(), "mcp__files__read".to_owned());
    let (progress, total, message) = (1.0, Some(2.0), Some("half".to_owned()));
    What::ToolProgress { tool_id, name, progress, total, message }
}

/// An event of every other type.
fn events() -> Vec<What> {
    let text = str::to_owned;
    let batch = || Batch {
        tools: vec![BatchTool { tool_id: text("t"), name: text("echo") }],
        parallel: true,
    };
    let error = || ErrorObject::new(Code::Outside, "x").with(json!({"kind": "timeout"}));
    let ended = || Ended { reason: text("timeout"), error: Some(error()), partial: text("so f") };
    let parent_agent_id = || Some(AgentId::parse("p").expect("it is well formed"));
    let confirm_id = || ConfirmId::parse(CONFIRM_ID).expect("it is well formed");
    vec![
        What::AgentCreated { parent_agent_id: parent_agent_id() },
        What::AgentDestroyed { parent_agent_id: None },
        What::AgentRestored { parent_agent_id: parent_agent_id() },
        What::AgentUpdated {
            parent_agent_id: None,
            changed: Map::from_iter([(text("model"), json!("demo"))]),
            previous_agent_id: Some(AgentId::temp(1)),
        },
        What::TurnQueued { position: 1 },
        What::TurnStarted {
            content: "hi".into(),
            source: text("rpc"),
            source_agent_id: parent_agent_id(),
        },
        What::BatchStarted(batch()),
        What::BatchHalted(batch()),
        What::BatchCompleted(batch()),
        What::ToolStarted { tool_id: text("t"), name: text("echo"), params: text("{}") },
        What::ToolCompleted {
            tool_id: text("t"),
            name: text("echo"),
            params: text("{}"),
            success: false,
            error: Some(text("no")),
            output: String::new(),
        },
        What::Compacted { tokens_before: 9, tokens_after: 4 },
        What::ProviderRetry { attempt: 1, after_ms: 7, reason: text("busy") },
        What::ConfirmationRequested {
            confirm_id: confirm_id(),
            tool: AskedTool { name: text("exec"), params: json!({"program": "make"}) },
            target: Some(text("make")),
            cwd: None,
            timeout_s: 120.0,
            options: Choice::ALL.to_vec(),
        },
        What::ConfirmationResolved {
            confirm_id: confirm_id(),
            decision: Choice::Deny,
            reason: Some(text("cancelled")),
            resolved_by: text("server"),
            resolved_at: "2026-01-01T00:00:00.000Z".into(),
        },
        What::TurnCompleted {
            content: "done".into(),
            halted: false,
            finish_reason: text("stop"),
            usage: Usage::default(),
        },
        What::TurnCancelled(Ended { error: None, ..ended() }),
        What::TurnFailed(ended()),
        What::TurnInterrupted(ended()),
        What::ContentChunk { text: text("x"), offset: 0 },
        What::ThinkingStarted {},
        What::ThinkingEnded { duration_ms: 7 },
        What::ToolDetected { tool_id: text("t"), name: text("echo") },
        What::TurnSnapshot { text: text("x"), offset: 1 },
        What::StreamGap { from: 1, to: 2 },
        What::ServerStopping {},
    ]
}

#[tokio::test]
async fn every_event_is_as_its_schema_says() {
    let server = start().await;
    let document = document(&server.client).await;
    let schema = &document["x-events"]["schema"];
    let at = "2026-01-01T00:00:00Z".parse().expect("it is a time");
    let (agent, request) = (AgentId::parse("a"), RequestId::parse("r"));
    let (agent, request) = (agent.expect("well formed"), request.expect("well formed"));
    let mut told = BTreeSet::new();
    for what in events().into_iter().chain([progress()]) {
        let (name, durable) = (what.name(), what.is_durable());
        let plain = Event::new(&agent, at, what);
        let seq = durable.then_some(7);
        let whole = Event { seq, ..plain.clone().of(&request) };
        for event in [Event { agent_id: None, ..plain.clone() }, plain, whole] {
            let json = serde_json::to_value(event).expect("events are JSON");
            is_valid(&document, schema, &json, name);
        }
        told.insert(name.to_owned());
    }
    let validator = validator(&document, schema);
    let envelope = r#""agent_id":"a","at":"2026-01-01T00:00:00.000Z""#;
    for wrong in [
        "{}".to_owned(),
        format!("{{{envelope}}}"),
        format!(r#"{{"type":"agent_dreamed",{envelope}}}"#),
        format!(r#"{{"type":"turn_queued",{envelope}}}"#),
        format!(r#"{{"type":"turn_queued","position":"first",{envelope}}}"#),
        r#"{"type":"turn_queued","position":0,"agent_id":"a"}"#.to_owned(),
    ] {
        let wrong: Value = serde_json::from_str(&wrong).expect("it is JSON");
        assert!(!validator.is_valid(&wrong), "{wrong}");
    }
    let types = types(&document["components"]["schemas"]["Event"]);
    assert_eq!(told, types, "every type has a sample");
    let routes = json!(["/agent/{agent_id}/events", "/events"]);
    assert_eq!(document["x-events"]["routes"], routes);
}

/// The types of events that a schema names.
fn types(schema: &Value) -> BTreeSet<String> {
    let variants = schema["oneOf"].as_array().expect("an event is one of some types");
    variants.iter().map(|variant| text(&variant["properties"]["type"]["const"])).collect()
}
