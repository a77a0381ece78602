//! The wire contract, row by row, over real sockets: what a client sees of HTTP and of JSON-RPC.
//! Only the rows about time run on a network in memory, where a clock can be virtual.

#[path = "../support/gate.rs"]
mod gate;
#[path = "../support/memory.rs"]
mod memory;
#[path = "../support/mod.rs"]
mod support;

mod batches;
mod codes;
mod connections;
mod drain;
mod entry;
mod envelope;
mod events;
mod limits;
mod listening;
mod load;
mod order;
mod replay;
mod streams;
mod time;

use serde_json::{Value, json};
use support::server::{Running, start_with};

async fn start() -> Running {
    start_with(|_, _| ()).await
}

/// A server with the agent `a`.
async fn start_with_agent() -> Running {
    let server = start().await;
    create(&server, "a").await;
    server
}

async fn create(server: &Running, id: &str) {
    let answer = server.call("/rpc", "create_agent", json!({"agent_id": id})).await;
    let result = json!({"agent_id": id, "url": format!("/agent/{id}")});
    assert_eq!(answer, json!({"jsonrpc": "2.0", "id": 1, "result": result}));
}

/// What a request gets that never reaches JSON-RPC.
fn refusal(status: u16, code: i64, message: &str) -> (u16, Value) {
    let error = json!({"code": code, "message": message});
    (status, json!({"jsonrpc": "2.0", "id": null, "error": error}))
}

/// A small call that always succeeds.
fn good() -> String {
    r#"{"jsonrpc":"2.0","id":1,"method":"list_agents"}"#.to_owned()
}

fn good_answer() -> (u16, Value) {
    (200, json!({"jsonrpc": "2.0", "id": 1, "result": {"agents": []}}))
}
