//! Batches: answered in order, bounded, and each entry judged by itself.

use serde_json::{Value, json};

use super::support::server::Running;
use super::{refusal, start, start_with_agent};

async fn told(server: &Running, path: &str, body: &Value) -> (u16, Value) {
    server.connect().await.exchange(&server.post(path, body.to_string())).await.told()
}

fn call(id: u64, method: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method})
}

fn answered(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": {"agents": []}})
}

#[tokio::test]
async fn a_batch_is_answered_in_order_up_to_64_entries() {
    let server = start().await;
    let calls = |count: u64| -> Value { (0..count).map(|id| call(id, "list_agents")).collect() };
    let answers = |count: u64| -> Value { (0..count).map(answered).collect() };
    for count in [1, 2, 64] {
        assert_eq!(told(&server, "/rpc", &calls(count)).await, (200, answers(count)));
    }
    let long = "Invalid request: the batch has 65 entries, at most 64 are allowed";
    assert_eq!(told(&server, "/rpc", &calls(65)).await, refusal(400, -32600, long));
    let empty = "Invalid request: the batch is empty";
    assert_eq!(told(&server, "/rpc", &json!([])).await, refusal(400, -32600, empty));
    // Entries that are no requests, or notifications, count as well.
    assert_eq!(told(&server, "/rpc", &json!([0].repeat(65))).await, refusal(400, -32600, long));
}

#[tokio::test]
async fn a_batch_of_notifications_gets_204() {
    let server = start().await;
    let tell = |method: &str| json!({"jsonrpc": "2.0", "method": method});
    for batch in [json!([tell("list_agents")]), json!([tell("fly"), tell("list_agents")])] {
        let answer = server.connect().await.exchange(&server.post("/", batch.to_string())).await;
        assert_eq!((answer.status, answer.body.as_str()), (204, ""));
    }
}

#[tokio::test]
async fn a_mixed_batch_answers_what_can_be_answered() {
    let server = start().await;
    let batch = r#"[
        {"jsonrpc":"2.0","id":1,"method":"list_agents"},
        {"jsonrpc":"2.0","method":"list_agents"},
        7,
        {"jsonrpc":"2.0","id":2,"method":"list_agents","x":1,"x":2},
        {"id":3,"method":"list_agents"},
        [],
        {"jsonrpc":"2.0","id":4,"method":"fly"},
        {"jsonrpc":"2.0","id":5,"method":"list_agents","params":[1]},
        {"jsonrpc":"2.0","id":1,"method":"list_agents"}
    ]"#;
    let error = |id: Value, code: i64, message: &str| json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}});
    let no_object = || error(Value::Null, -32600, "Invalid request: it is no JSON object");
    let twice = "Invalid request: the key \"x\" stands twice in one object";
    let positional = "Params must be an object: This method takes no parameters";
    let expected = json!([
        answered(1),
        no_object(),
        error(json!(2), -32600, twice),
        error(json!(3), -32600, "Invalid request: `jsonrpc` must be \"2.0\""),
        no_object(),
        error(json!(4), -32601, "Method not found: fly"),
        error(json!(5), -32602, positional),
        answered(1),
    ]);
    let answer = server.connect().await.exchange(&server.post("/rpc", batch)).await;
    assert_eq!(answer.told(), (200, expected));
}

#[tokio::test]
async fn what_is_no_json_spoils_the_whole_batch() {
    let server = start().await;
    let create = r#"[{"jsonrpc":"2.0","id":1,"method":"create_agent"},"#;
    let answer = server.connect().await.exchange(&server.post("/rpc", create)).await;
    assert_eq!(answer.told(), refusal(400, -32700, "Parse error at line 1, column 50"));
    assert_eq!(told(&server, "/rpc", &call(1, "list_agents")).await, (200, answered(1)));
}

#[tokio::test]
async fn entries_see_what_earlier_ones_did() {
    let server = start_with_agent().await;
    let send = json!({
        "jsonrpc": "2.0", "id": 1, "method": "send", "params": {"content": "hello", "request_id": "r"},
    });
    let batch = json!([call(0, "get_context"), send, call(2, "get_context")]);
    let (status, answers) = told(&server, "/agent/a", &batch).await;
    let counts = [0, 2].map(|entry: usize| &answers[entry]["result"]["message_count"]);
    assert_eq!((status, counts), (200, [&json!(0), &json!(2)]));
    assert_eq!(answers[1]["result"]["request_id"], "r");
}
