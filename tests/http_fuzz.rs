//! Ten thousand malformed requests: whatever comes in, nothing panics, nobody is told of a defect of
//! ours, and the next good request is answered.

mod support;

use std::panic;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::{Value, json};
use support::client::{Answer, Client, Request};
use support::server::{Running, start_with};
use tokio::runtime::Runtime;

static PANICS: AtomicUsize = AtomicUsize::new(0);

/// How many cases of each kind: together ten thousand.
const RAW_CASES: u32 = 2500;
const MUTATED_CASES: u32 = 2500;
const JSON_CASES: u32 = 5000;

#[test]
fn ten_thousand_malformed_requests_find_no_defect() {
    panic::set_hook(Box::new(|panic| {
        PANICS.fetch_add(1, Ordering::SeqCst);
        tracing::error!("{panic}");
    }));
    let runtime = Runtime::new().expect("a runtime starts");
    let mut harness = runtime.block_on(Harness::start());
    check(RAW_CASES, &raw_bytes(), |bytes| runtime.block_on(harness.survives(&bytes)));
    let good = harness.call(&json!({"jsonrpc": "2.0", "id": 1, "method": "list_agents"}));
    check(MUTATED_CASES, &mutated(good), |bytes| runtime.block_on(harness.survives(&bytes)));
    check(JSON_CASES, &body(), |(path, body)| runtime.block_on(harness.answers(path, &body)));
    runtime.block_on(harness.server.stop());
    assert_eq!(PANICS.load(Ordering::SeqCst), 0, "something panicked");
    let _ = panic::take_hook();
}

fn check<S: Strategy>(
    cases: u32,
    strategy: &S,
    mut holds: impl FnMut(S::Value) -> Result<(), String>,
) where
    S::Value: Clone,
{
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let holds = std::cell::RefCell::new(&mut holds);
    let outcome = TestRunner::new_with_rng(config, rng)
        .run(strategy, |case| (*holds.borrow_mut())(case).map_err(TestCaseError::fail));
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

struct Harness {
    server: Running,
    /// Kept for the next case while the server keeps it open.
    kept: Option<Client>,
}

impl Harness {
    async fn start() -> Self {
        let server = start_with(|_, _| ()).await;
        server.call("/rpc", "create_agent", json!({"agent_id": "a"})).await;
        Self { server, kept: None }
    }

    fn call(&self, body: &Value) -> Vec<u8> {
        self.server.post("/rpc", body.to_string()).bytes()
    }

    /// Sends bytes that may not even be HTTP on a connection of their own.
    async fn survives(&mut self, bytes: &[u8]) -> Result<(), String> {
        let mut client = self.server.connect().await;
        // The server may hang up in the middle of it.
        let _ = client.try_write(bytes).await;
        client.finish().await;
        is_no_defect(&String::from_utf8_lossy(&client.read_to_end().await))?;
        self.is_well().await
    }

    /// Sends a whole request with any body; there is always an answer.
    async fn answers(&mut self, path: &str, body: &[u8]) -> Result<(), String> {
        let request = self.server.post(path, body);
        let answer = self.exchange(&request).await;
        is_no_defect(&format!("HTTP/1.1 {} {}", answer.status, answer.body))?;
        self.is_well().await
    }

    async fn is_well(&mut self) -> Result<(), String> {
        let health = Request::new("GET", "/healthz").header("Host", "localhost");
        let answer = self.exchange(&health).await;
        let (status, health) = answer.told();
        if status == 200 && health["status"] == "ok" { Ok(()) } else { Err(health.to_string()) }
    }

    async fn exchange(&mut self, request: &Request) -> Answer {
        let mut client = match self.kept.take() {
            Some(client) => client,
            None => self.server.connect().await,
        };
        let answer = client.exchange(request).await;
        if answer.header("connection") != Some("close") {
            self.kept = Some(client);
        }
        answer
    }
}

fn is_no_defect(answers: &str) -> Result<(), String> {
    let panics = PANICS.load(Ordering::SeqCst);
    if answers.contains("HTTP/1.1 500") || answers.contains("-32603") || panics > 0 {
        return Err(format!("a defect: {answers} after {panics} panics"));
    }
    Ok(())
}

fn raw_bytes() -> impl Strategy<Value = Vec<u8>> {
    let words = prop::sample::select(vec![
        "GET ",
        "POST ",
        "/",
        "/rpc",
        " HTTP/1.1",
        " HTTP/1.0",
        "\r\n",
        "\n",
        "\r\n\r\n",
        ": ",
        "Host",
        "localhost",
        "Content-Length: 3",
        "Transfer-Encoding: chunked",
        "Expect: 100-continue",
        "Connection: upgrade",
        "Upgrade: h2c",
        "0\r\n\r\n",
        "ffffffffffffffffff\r\n",
        "{}",
        "\0",
        "PRI * HTTP/2.0",
    ]);
    let word = words.prop_map(|word| word.as_bytes().to_vec());
    let piece = prop_oneof![3 => word, 1 => vec(any::<u8>(), 0..40)];
    vec(piece, 0..20).prop_map(|pieces| pieces.concat())
}

/// A good request with some bytes replaced, removed, doubled or put in.
fn mutated(good: Vec<u8>) -> impl Strategy<Value = Vec<u8>> {
    vec((any::<prop::sample::Index>(), 0..4_u8, any::<u8>()), 1..8).prop_map(move |changes| {
        let mut bytes = good.clone();
        for (place, kind, byte) in changes {
            let at = place.index(bytes.len().max(1)).min(bytes.len().saturating_sub(1));
            match kind {
                _ if bytes.is_empty() => bytes.push(byte),
                0 => bytes[at] = byte,
                1 => drop(bytes.remove(at)),
                2 => bytes.insert(at, byte),
                _ => bytes.extend_from_within(at..),
            }
        }
        bytes
    })
}

fn body() -> impl Strategy<Value = (&'static str, Vec<u8>)> {
    let path = prop::sample::select(vec!["/", "/rpc", "/agent/a", "/agent/b"]);
    let text = prop_oneof![
        2 => json_value().prop_map(|value| value.to_string().into_bytes()),
        4 => request().prop_map(|value| value.to_string().into_bytes()),
        2 => vec(request(), 0..5).prop_map(|batch| json!(batch).to_string().into_bytes()),
        1 => vec(any::<u8>(), 0..60),
        1 => (request(), any::<prop::sample::Index>()).prop_map(|(value, cut)| {
            let text = value.to_string().into_bytes();
            text[..cut.index(text.len())].to_vec()
        }),
    ];
    (path, text)
}

/// Almost a request: real methods and names of params, with values of any kind.
fn request() -> impl Strategy<Value = Value> {
    let methods = vec![
        "create_agent",
        "destroy_agent",
        "list_agents",
        "get_agent_summaries",
        "cancel",
        "get_request",
        "get_context",
        "get_messages",
        "send",
        "fly",
        "",
    ];
    let names = vec![
        "agent_id",
        "cascade",
        "request_id",
        "content",
        "offset",
        "limit",
        "preset",
        "cwd",
        "model",
        "parent_agent_id",
        "allowed_write_paths",
        "disable_tools",
        "include_context",
        "wait",
        "timeout",
        "source",
        "system_prompt",
        "x",
    ];
    let name = prop::sample::select(names).prop_map(str::to_owned);
    let params = prop_oneof![
        6 => prop::collection::btree_map(name, json_value(), 0..4).prop_map(|map| json!(map)),
        1 => json_value(),
    ];
    let version = prop_oneof![9 => Just(json!("2.0")), 1 => json_value()];
    let id = prop_oneof![3 => any::<i64>().prop_map(|id| json!(id)), 1 => json_value()];
    let method = prop_oneof![
        9 => prop::sample::select(methods).prop_map(|method| json!(method)),
        1 => json_value(),
    ];
    (version, id, method, params).prop_map(|(jsonrpc, id, method, params)| {
        json!({"jsonrpc": jsonrpc, "id": id, "method": method, "params": params})
    })
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(|value| json!(value)),
        any::<i64>().prop_map(|value| json!(value)),
        any::<f64>().prop_map(|value| json!(value)),
        "\\PC{0,12}".prop_map(|value| json!(value)),
        prop::sample::select(vec!["a", ".", "..", "/", "\0", "sandboxed", "demo", "r"])
            .prop_map(|value| json!(value)),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(|values| json!(values)),
            prop::collection::btree_map("[a-z]{0,3}", inner, 0..4).prop_map(|map| json!(map)),
        ]
    })
}
