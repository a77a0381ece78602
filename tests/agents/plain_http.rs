//! What the typed client does not do: no name, no id, no wish to wait.

use nexus3::rpc::method::RequestStatus;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::agents_support::{Stage, completed, request};

/// Posts a body to an agent with nothing but the token; returns the status line.
async fn post(stage: &Stage, path: &str, body: &str) -> String {
    let token = std::fs::read_to_string(&stage.server.token_path).expect("there is a token");
    let address = stage.server.address;
    let mut stream = TcpStream::connect(address).await.expect("the server listens");
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\
         connection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).await.expect("the server reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("the server answers");
    answer.lines().next().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_notification_is_accepted_and_not_waited_for() {
    let mut stage = Stage::new().await;
    let a = stage.agent("a", "worker").await;
    let params = json!({"content": "hi", "request_id": "r1"});
    let body = json!({"jsonrpc": "2.0", "method": "send", "params": params}).to_string();
    assert_eq!(post(&stage, "/agent/a", &body).await, "HTTP/1.1 204 No Content");
    assert_eq!(stage.request(&a, "r1").await.status, RequestStatus::Running);
    stage.model.asked_by("a").await.answers("hello").await;
    assert_eq!(stage.send(&a, &request("r1", "hi")).await.unwrap(), completed("r1", "hello", 1));
    let question = serde_json::to_value(&stage.messages(&a).await[0]).unwrap();
    let expected = json!({"role": "user", "content": "hi", "meta": {"source": "rpc"}});
    assert_eq!(question, expected, "a caller without a name is `rpc`");
}

#[tokio::test]
async fn a_notified_creation_waits_for_nobody() {
    let mut stage = Stage::new().await;
    let params = json!({
        "agent_id": "a", "initial_message": "Go.", "wait_for_initial_response": true,
    });
    let body = json!({"jsonrpc": "2.0", "method": "create_agent", "params": params}).to_string();
    assert_eq!(post(&stage, "/rpc", &body).await, "HTTP/1.1 204 No Content");
    stage.model.asked_by("a").await.answers("Gone.").await;
}
