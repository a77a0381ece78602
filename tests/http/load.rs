//! How many requests execute at once, what passes all the same, and what does not count.

use std::sync::Arc;

use serde_json::{Value, json};

use super::gate::Gate;
use super::support::client::Client;
use super::support::server::{Running, start_with};
use super::{create, refusal};

const COUNT_TOKENS: &str = r#"{"jsonrpc":"2.0","id":7,"method":"get_tokens"}"#;
const BUSY: &str = "too many requests at once; try again in a second";

/// A server with the agent `a` and one place, which is taken until the gate opens.
struct Busy {
    server: Running,
    gate: Arc<Gate>,
    holder: Client,
}

async fn one_place() -> (Running, Arc<Gate>) {
    let gate = Gate::open();
    let seam = Arc::clone(&gate);
    let server = start_with(move |world, config| {
        world.blocking = seam;
        config.server.max_concurrent = 1;
    })
    .await;
    create(&server, "a").await;
    (server, gate)
}

async fn busy() -> Busy {
    let (server, gate) = one_place().await;
    gate.close();
    let mut holder = server.connect().await;
    holder.write(&server.post("/agent/a", COUNT_TOKENS).bytes()).await;
    gate.arrival().await;
    Busy { server, gate, holder }
}

async fn told(server: &Running, path: &str, body: &Value) -> (u16, Value) {
    server.connect().await.exchange(&server.post(path, body.to_string())).await.told()
}

fn call(id: u64, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

#[tokio::test]
async fn one_request_too_many_is_told_when_to_come_back() {
    let Busy { server, gate, mut holder } = busy().await;
    for (path, method) in
        [("/rpc", "create_agent"), ("/agent/a", "get_context"), ("/", "rpc.discover")]
    {
        let body = call(1, method, &json!({})).to_string();
        let answer = server.connect().await.exchange(&server.post(path, body)).await;
        assert_eq!(answer.told(), refusal(503, -32001, BUSY), "{method}");
        assert_eq!(answer.header("retry-after"), Some("1"));
    }
    let notification = json!({"jsonrpc": "2.0", "method": "get_agent_summaries"});
    assert_eq!(told(&server, "/", &notification).await, refusal(503, -32001, BUSY));
    gate.open_once();
    let counted = holder.read().await;
    assert_eq!((counted.status, &counted.json()["id"]), (200, &json!(7)));
    assert_eq!(told(&server, "/", &call(1, "rpc.discover", &json!({}))).await.0, 200);
}

#[tokio::test]
async fn what_an_operator_needs_passes_a_busy_server() {
    let Busy { server, .. } = busy().await;
    let health = server.connect().await.exchange(&server.request("GET", "/healthz")).await;
    assert_eq!(health.status, 200);
    let (status, list) = told(&server, "/rpc", &call(1, "list_agents", &json!({}))).await;
    assert_eq!((status, &list["result"]["agents"][0]["agent_id"]), (200, &json!("a")));
    let cancel = call(2, "cancel", &json!({"request_id": "r"}));
    let result = json!({"cancelled": false, "request_id": "r", "reason": "not_found_or_completed"});
    let expected = json!({"jsonrpc": "2.0", "id": 2, "result": result});
    assert_eq!(told(&server, "/agent/a", &cancel).await, (200, expected));
    let get = call(3, "get_request", &json!({"request_id": "r"}));
    let error = json!({"code": -32602, "message": "Request not found: r"});
    let expected = json!({"jsonrpc": "2.0", "id": 3, "error": error});
    assert_eq!(told(&server, "/agent/a", &get).await, (200, expected));
}

#[tokio::test]
async fn a_batch_is_one_request_and_exempt_only_as_a_whole() {
    let Busy { server, gate, mut holder } = busy().await;
    let exempt = json!([call(1, "list_agents", &json!({})), call(2, "list_agents", &json!({}))]);
    let (status, answers) = told(&server, "/rpc", &exempt).await;
    assert_eq!((status, answers.as_array().map(Vec::len)), (200, Some(2)));
    let mixed = json!([call(1, "list_agents", &json!({})), call(2, "rpc.discover", &json!({}))]);
    assert_eq!(told(&server, "/rpc", &mixed).await, refusal(503, -32001, BUSY));
    // Entries that are refused before they execute need no place.
    let refused = json!([1, call(1, "fly", &json!({})), call(2, "list_agents", &json!({}))]);
    assert_eq!(told(&server, "/rpc", &refused).await.0, 200);
    gate.open_once();
    assert_eq!(holder.read().await.status, 200);
    // Two counted entries fit into the one place, one after the other.
    let both = json!([call(1, "rpc.discover", &json!({})), call(2, "rpc.discover", &json!({}))]);
    assert_eq!(told(&server, "/rpc", &both).await.0, 200);
}

#[tokio::test]
async fn a_send_that_waits_for_its_turn_does_not_count() {
    let (server, _gate) = one_place().await;
    let send = |id: &str, content: &str| {
        call(1, "send", &json!({"request_id": id, "content": content})).to_string()
    };
    let (mut running, mut waiting) = (server.connect().await, server.connect().await);
    let sleep = send("r1", r#"call sleep {"seconds": 3600}"#);
    running.write(&server.post("/agent/a", sleep).bytes()).await;
    until_status(&server, "r1", "running").await;
    waiting.write(&server.post("/agent/a", send("r2", "hello")).bytes()).await;
    until_status(&server, "r2", "queued").await;
    assert_eq!(told(&server, "/agent/a", &call(1, "get_context", &json!({}))).await.0, 200);
    let cancelled = told(&server, "/agent/a", &call(1, "cancel", &json!({}))).await;
    let result = json!({"cancelled": true, "request_ids": ["r1", "r2"]});
    assert_eq!(cancelled, (200, json!({"jsonrpc": "2.0", "id": 1, "result": result})));
    for (client, id) in [(&mut running, "r1"), (&mut waiting, "r2")] {
        let result = json!({"cancelled": true, "request_id": id});
        let expected = json!({"jsonrpc": "2.0", "id": 1, "result": result});
        assert_eq!(client.read().await.told(), (200, expected));
    }
}

async fn until_status(server: &Running, request_id: &str, status: &str) {
    let ask = call(1, "get_request", &json!({"request_id": request_id}));
    while told(server, "/agent/a", &ask).await.1["result"]["status"] != status {}
}
