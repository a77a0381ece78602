//! The order of the checks: a request that breaks two rules is told about the earlier one.

use std::sync::Arc;

use serde_json::{Value, json};

use super::gate::Gate;
use super::support::client::Request;
use super::{create, good, start_with, start_with_agent};

const BAD_JSON: &str = "{";
const UNKNOWN_METHOD: &str = r#"{"jsonrpc":"2.0","id":1,"method":"fly"}"#;
const WRONG_PARAMS: &str = r#"{"jsonrpc":"2.0","id":1,"method":"get_context","params":[1]}"#;

/// A rule, broken by changing a good request.
type Break = fn(Request) -> Request;

const TOO_LONG: Break = |request| request.body(vec![b' '; 1_048_577]);
const TOO_MANY_HEADERS: Break =
    |request| (0..129).fold(request, |request, n| request.header(&format!("X-{n}"), "x"));
const WRONG_HOST: Break = |request| request.with("Host", "evil.example");
const WRONG_ORIGIN: Break = |request| request.with("Origin", "null");
const NO_TOKEN: Break = |request| request.without("Authorization");
const WRONG_TOKEN: Break = |request| request.with("Authorization", "Bearer no");
const WRONG_REQUESTER: Break = |request| request.with("X-Nexus-Agent", "nobody");
const WRONG_CLIENT: Break = |request| request.with("X-Nexus-Client", "");

#[tokio::test]
async fn the_earlier_of_two_broken_rules_is_told() {
    let server = start_with_agent().await;
    let rpc = || server.post("/rpc", good());
    let at = |path: &str| server.post(path, good());
    let get = |path: &str| server.request("GET", path);
    let bad = |path: &str| server.post(path, BAD_JSON);
    let table: Vec<(&str, Request, u16, i64)> = vec![
        ("headers, length", TOO_LONG(TOO_MANY_HEADERS(rpc())), 431, -32600),
        ("headers, Host", TOO_MANY_HEADERS(WRONG_HOST(rpc())), 431, -32600),
        ("length, Host", TOO_LONG(WRONG_HOST(rpc())), 413, -32600),
        ("length, path", TOO_LONG(at("/x")), 413, -32600),
        ("length, method", TOO_LONG(get("/rpc")), 413, -32600),
        ("length, token", TOO_LONG(NO_TOKEN(rpc())), 413, -32600),
        ("length, health", TOO_LONG(get("/healthz")), 413, -32600),
        ("Host, path", WRONG_HOST(at("/x")), 403, -32600),
        ("Host, method", WRONG_HOST(get("/rpc")), 403, -32600),
        ("Host, token", WRONG_HOST(NO_TOKEN(rpc())), 403, -32600),
        ("Origin, path", WRONG_ORIGIN(at("/x")), 403, -32600),
        ("Origin, token", WRONG_ORIGIN(NO_TOKEN(rpc())), 403, -32600),
        ("path, token", NO_TOKEN(at("/x")), 404, -32602),
        ("method, token", NO_TOKEN(get("/rpc")), 405, -32600),
        ("token, agent", NO_TOKEN(at("/agent/nobody")), 401, -32600),
        ("token, form of the id", NO_TOKEN(at("/agent/-")), 401, -32600),
        ("token, requester", NO_TOKEN(WRONG_REQUESTER(rpc())), 401, -32600),
        ("token, client", NO_TOKEN(WRONG_CLIENT(rpc())), 401, -32600),
        ("token, JSON", NO_TOKEN(bad("/rpc")), 401, -32600),
        ("wrong token, JSON", WRONG_TOKEN(bad("/rpc")), 403, -32600),
        ("wrong token, requester", WRONG_TOKEN(WRONG_REQUESTER(rpc())), 403, -32600),
        ("requester, agent", WRONG_REQUESTER(at("/agent/nobody")), 403, -32003),
        ("requester, JSON", WRONG_REQUESTER(bad("/rpc")), 403, -32003),
        ("agent, JSON", bad("/agent/nobody"), 404, -32602),
        ("form of the id, JSON", bad("/agent/-"), 404, -32602),
    ];
    for (rules, request, status, code) in table {
        let (told, answer) = server.connect().await.exchange(&request).await.told();
        assert_eq!((told, &answer["error"]["code"]), (status, &json!(code)), "{rules}: {answer}");
        assert_eq!(answer["id"], Value::Null, "{rules}");
    }
}

#[tokio::test]
async fn host_is_told_before_origin() {
    let server = start_with_agent().await;
    let both = WRONG_ORIGIN(WRONG_HOST(server.post("/rpc", good())));
    let (_, answer) = server.connect().await.exchange(&both).await.told();
    assert_eq!(answer["error"]["message"], "Host not allowed");
}

#[tokio::test]
async fn a_body_comes_before_the_agent_and_load_between_method_and_params() {
    let gate = Gate::open();
    let seam = Arc::clone(&gate);
    let server = start_with(move |world, config| {
        world.blocking = seam;
        config.server.max_concurrent = 1;
    })
    .await;
    create(&server, "a").await;
    gate.close();
    let at = |path: &str, body: &str| server.post(path, body);
    let counting = at("/agent/a", r#"{"jsonrpc":"2.0","id":1,"method":"get_tokens"}"#);
    let mut busy = server.connect().await;
    busy.write(&counting.bytes()).await;
    gate.arrival().await;
    let chunked_overrun = {
        let head = Request::new("POST", "/agent/nobody")
            .header("Host", "localhost")
            .header("Authorization", format!("Bearer {}", server.token))
            .header("Transfer-Encoding", "chunked")
            .head();
        [head, b"100001\r\n".to_vec(), vec![b' '; 0x10_0001], b"\r\n0\r\n\r\n".to_vec()].concat()
    };
    let table = [
        ("body, agent", chunked_overrun, 413, -32600),
        ("JSON, load", at("/agent/a", BAD_JSON).bytes(), 400, -32700),
        ("method, load", at("/agent/a", UNKNOWN_METHOD).bytes(), 200, -32601),
        ("load, params", at("/agent/a", WRONG_PARAMS).bytes(), 503, -32001),
    ];
    for (rules, request, status, code) in table {
        let mut client = server.connect().await;
        client.write(&request).await;
        let (told, answer) = client.read().await.told();
        assert_eq!((told, &answer["error"]["code"]), (status, &json!(code)), "{rules}: {answer}");
    }
    gate.open_once();
    assert_eq!(busy.read().await.status, 200);
    let params = server.connect().await.exchange(&at("/agent/a", WRONG_PARAMS)).await;
    assert_eq!((params.status, &params.json()["error"]["code"]), (200, &json!(-32602)));
}
