//! The error codes that a caller can meet, each with the whole error object.

use serde_json::{Value, json};

use super::support::server::{Running, start_with};
use super::{create, start_with_agent};

fn error(code: i64, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": message}})
}

fn error_with(code: i64, message: &str, data: &Value) -> Value {
    let error = json!({"code": code, "message": message, "data": data});
    json!({"jsonrpc": "2.0", "id": 1, "error": error})
}

async fn as_agent(server: &Running, path: &str, method: &str, params: Value) -> Value {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let request = server.post(path, body.to_string()).header("X-Nexus-Agent", "a");
    server.connect().await.exchange(&request).await.json()
}

#[tokio::test]
async fn an_unknown_method_is_told_the_nearest_one_or_where_it_belongs() {
    let server = start_with_agent().await;
    let not_found = |method: &str| format!("Method not found: {method}");
    let near = json!({"suggestion": "create_agent"});
    let to_agent = json!({"hint": "this is a method of agents: POST it to /agent/{agent_id}"});
    let to_global = json!({"hint": "this is a global method: POST it to /rpc"});
    let table = [
        ("/rpc", "xyz", error(-32601, &not_found("xyz"))),
        ("/rpc", "creat_agent", error_with(-32601, &not_found("creat_agent"), &near)),
        ("/rpc", "send", error_with(-32601, &not_found("send"), &to_agent)),
        ("/agent/a", "list_agents", error_with(-32601, &not_found("list_agents"), &to_global)),
        (
            "/agent/a",
            "sned",
            error_with(-32601, &not_found("sned"), &json!({"suggestion": "send"})),
        ),
    ];
    for (path, method, expected) in table {
        assert_eq!(server.call(path, method, json!({})).await, expected);
    }
}

#[tokio::test]
async fn wrong_params_and_unknown_things_get_32602() {
    let server = start_with_agent().await;
    let table = [
        (
            "/rpc",
            "create_agent",
            json!({"agent_id": 1}),
            "Invalid parameter agent_id: invalid type: integer `1`, expected a string",
        ),
        (
            "/rpc",
            "create_agent",
            json!({"parent_agent_id": "nobody"}),
            "Parent agent not found: nobody",
        ),
        (
            "/rpc",
            "create_agent",
            json!({"cwd": "/no/such/place"}),
            "cwd does not exist: /no/such/place",
        ),
        ("/rpc", "create_agent", json!({"cwd": "/dev/null"}), "cwd is not a directory: /dev/null"),
        (
            "/rpc",
            "create_agent",
            json!({"wait_for_initial_response": true}),
            "wait_for_initial_response needs an initial_message",
        ),
        ("/agent/a", "get_request", json!({"request_id": "r"}), "Request not found: r"),
        (
            "/agent/a",
            "send",
            json!({"content": ""}),
            "Invalid parameter content: it must not be empty",
        ),
        (
            "/agent/a",
            "send",
            json!({"content": "x", "timeout": 0}),
            "Invalid parameter timeout: it must be seconds from above 0 to 2592000",
        ),
        (
            "/agent/a",
            "get_messages",
            json!({"limit": 0}),
            "Invalid parameter limit: it must be from 1 to 2000",
        ),
        (
            "/agent/a",
            "get_messages",
            json!({"limit": 2001}),
            "Invalid parameter limit: it must be from 1 to 2000",
        ),
        (
            "/agent/a",
            "get_messages",
            json!({"offset": -1}),
            "Invalid parameter offset: invalid value: integer `-1`, expected u64",
        ),
    ];
    for (path, method, params, message) in table {
        assert_eq!(server.call(path, method, params).await, error(-32602, message), "{method}");
    }
}

#[tokio::test]
async fn a_refused_create_names_what_is_unknown_and_leaves_nothing() {
    let server = start_with_agent().await;
    for params in
        [json!({"preset": "nope"}), json!({"model": "nope"}), json!({"disable_tools": ["nope"]})]
    {
        let answer = server.call("/rpc", "create_agent", params).await;
        let message = answer["error"]["message"].as_str().expect("there is a message");
        assert!(message.contains("nope"), "{message}");
        assert_eq!(answer, error(-32602, message));
    }
    let list = server.call("/rpc", "list_agents", json!({})).await;
    assert_eq!(list["result"]["agents"].as_array().map(Vec::len), Some(1), "none was created");
}

#[tokio::test]
async fn a_turn_whose_time_is_over_gets_32000() {
    let server = start_with_agent().await;
    let send = json!({"content": r#"call sleep {"seconds": 3600}"#, "timeout": 0.001});
    let data = json!({"kind": "timeout", "retryable": true});
    let expected = error_with(-32000, "the time for this request is over", &data);
    assert_eq!(server.call("/agent/a", "send", send).await, expected);
}

#[tokio::test]
async fn a_full_queue_gets_32001() {
    let server = start_with_agent().await;
    let send = |id: u32| {
        let content = if id == 0 { r#"call sleep {"seconds": 3600}"# } else { "hello" };
        json!({"content": content, "request_id": id.to_string(), "wait": false})
    };
    // One runs, 32 wait.
    for id in 0..33 {
        let accepted = server.call("/agent/a", "send", send(id)).await;
        let result = json!({"request_id": id.to_string(), "status": "queued"});
        assert_eq!(accepted, json!({"jsonrpc": "2.0", "id": 1, "result": result}));
    }
    let message = "a is busy: 32 sends are waiting for it already; try again later";
    assert_eq!(server.call("/agent/a", "send", send(33)).await, error(-32001, message));
    server.call("/agent/a", "cancel", json!({})).await;
}

#[tokio::test]
async fn conflicts_get_32002() {
    let server = start_with_agent().await;
    let again = server.call("/rpc", "create_agent", json!({"agent_id": "a"})).await;
    assert_eq!(again, error(-32002, "Agent already exists: a"));
    server.call("/agent/a", "send", json!({"content": "one", "request_id": "r"})).await;
    let other = server.call("/agent/a", "send", json!({"content": "two", "request_id": "r"})).await;
    let message = "this request_id was used with other content; use a new one";
    assert_eq!(other, error(-32002, message));
}

#[tokio::test]
async fn what_an_agent_may_not_do_gets_32003_with_a_reason() {
    let server = start_with_agent().await;
    create(&server, "b").await;
    let refused =
        |reason: &str, message: &str| error_with(-32003, message, &json!({"reason": reason}));
    let table = [
        (
            "/rpc",
            "shutdown_server",
            json!({}),
            refused("policy", "agents may not call shutdown_server"),
        ),
        ("/agent/a", "shutdown", json!({}), refused("policy", "agents may not call shutdown")),
        (
            "/agent/b",
            "get_messages",
            json!({}),
            refused("owner", "b is neither a nor one of its descendants"),
        ),
        (
            "/rpc",
            "destroy_agent",
            json!({"agent_id": "b"}),
            refused("owner", "b is neither a nor one of its descendants"),
        ),
        (
            "/rpc",
            "create_agent",
            json!({"parent_agent_id": "b"}),
            refused("owner", "a creates only its own children, not those of b"),
        ),
    ];
    for (path, method, params, expected) in table {
        assert_eq!(as_agent(&server, path, method, params).await, expected, "{method}");
    }
    let yolo = server.call("/rpc", "create_agent", json!({"preset": "yolo"})).await;
    let seen = (&yolo["error"]["code"], &yolo["error"]["data"]);
    assert_eq!(seen, (&json!(-32003), &json!({"reason": "yolo"})));
}

#[tokio::test]
async fn a_server_that_is_stopping_takes_no_new_work() {
    let server = start_with(|_, config| config.server.shutdown_grace = 3600.0).await;
    create(&server, "a").await;
    let sleep =
        json!({"content": r#"call sleep {"seconds": 3600}"#, "request_id": "r", "wait": false});
    server.call("/agent/a", "send", sleep).await;
    while server.call("/agent/a", "get_request", json!({"request_id": "r"})).await["result"]["status"]
        != "running"
    {}
    server.call("/rpc", "shutdown_server", json!({})).await;
    let stopping = error(-32001, "the server is shutting down");
    assert_eq!(server.call("/rpc", "create_agent", json!({})).await, stopping);
    assert_eq!(server.call("/agent/a", "send", json!({"content": "hello"})).await, stopping);
    server.call("/agent/a", "cancel", json!({})).await;
    server.stop().await;
}
