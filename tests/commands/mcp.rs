//! `nexus3 mcp` under an MCP host that the tests play, line by line.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::model::{beside, saying};
use super::support::{Serving, private_home, program, ran, run, signal};

const LONG: Duration = Duration::from_mins(10);
/// How often something is looked at that must come soon.
const LOOKS_MAX: usize = 600;

/// A host, which has begun a conversation.
struct Host {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    asked: i64,
    /// What came besides answers.
    news: Vec<Value>,
}

impl Host {
    fn start(mut command: Command) -> Self {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().expect("stdout is a pipe"));
        Self { child, stdin, stdout, asked: 0, news: Vec::new() }
    }

    /// With the first words said.
    fn greeted(command: Command) -> Self {
        let mut host = Self::start(command);
        let us = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": us});
        let greeting = host.call("initialize", params);
        assert_eq!(greeting["result"]["serverInfo"]["name"], "nexus3", "{greeting}");
        host.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
        host
    }

    fn of(server: &Serving) -> Self {
        Self::greeted(server.command(&["mcp"]))
    }

    fn say(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("the host is still there");
        writeln!(stdin, "{line}").expect("it reads");
    }

    #[expect(clippy::needless_pass_by_value, reason = "a value is written where it is needed")]
    fn ask(&mut self, method: &str, params: Value) -> i64 {
        self.asked += 1;
        let id = self.asked;
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.say(&message.to_string());
        id
    }

    fn hear(&mut self) -> Value {
        let mut line = String::new();
        let count = self.stdout.read_line(&mut line).expect("it speaks UTF-8");
        assert_ne!(count, 0, "it says nothing any more");
        serde_json::from_str(&line).expect("a line is a message")
    }

    fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params);
        loop {
            let heard = self.hear();
            if heard["id"] == json!(id) {
                return heard;
            }
            self.news.push(heard);
        }
    }

    /// What a tool gives.
    #[expect(clippy::needless_pass_by_value, reason = "a value is written where it is needed")]
    fn tool(&mut self, name: &str, arguments: Value) -> Value {
        let answer = self.call("tools/call", json!({"name": name, "arguments": arguments}));
        answer["result"].clone()
    }

    /// The host goes; how the program ends.
    fn leave(mut self) -> Option<i32> {
        self.stdin = None;
        self.child.wait().expect("it ends").code()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // A test that failed leaves nothing behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Looks until something holds.
fn soon(what: &str, mut holds: impl FnMut() -> bool) {
    assert!((0..LOOKS_MAX).any(|_| holds()), "it never came: {what}");
}

fn status_of(server: &Serving, request: &str) -> Value {
    let params = json!({"request_id": request}).to_string();
    let answer = server.rpc(&["call", "get_request", &params, "--agent", "scout"]);
    answer.json()["status"].clone()
}

/// Begins a turn that takes long, and returns when it runs: its id and that of the call.
fn at_work(host: &mut Host, server: &Serving) -> (String, i64) {
    assert_eq!(host.tool("create", json!({"agent_id": "scout"}))["isError"], json!(false));
    let params = json!({"name": "send", "arguments": {"agent_id": "scout", "content": "hi"}});
    let call = host.ask("tools/call", params);
    let mut request = String::new();
    soon("the turn runs", || {
        let listed = server.rpc(&["call", "list_agents"]).json();
        let agent = listed["agents"][0].clone();
        agent["active_request_id"].as_str().unwrap_or_default().clone_into(&mut request);
        agent["status"] == "running" && !request.is_empty()
    });
    (request, call)
}

#[test]
fn a_host_creates_drives_and_destroys_an_agent() {
    let server = Serving::start(&[]);
    let mut host = Host::of(&server);
    let created = host.tool("create", json!({"agent_id": "scout"}));
    assert_eq!(created["structuredContent"]["agent_id"], "scout", "{created}");
    let arguments = json!({"agent_id": "scout", "content": r#"call echo {"message": "hi"}"#});
    let params = json!({"name": "send", "arguments": arguments, "_meta": {"progressToken": "p"}});
    let sent = host.call("tools/call", params);
    assert_eq!(sent["result"]["structuredContent"]["finish_reason"], "stop", "{sent}");
    let news: Vec<_> = host.news.iter().map(|news| &news["params"]["message"]).collect();
    assert!(
        news.contains(&&json!("runs echo")) && news.contains(&&json!("echo is done")),
        "{news:?}"
    );
    assert!(host.news.iter().all(|news| news["params"]["progressToken"] == "p"), "{news:?}");
    let status = host.tool("status", json!({"agent_id": "scout"}));
    assert_eq!(status["structuredContent"]["status"], "idle", "{status}");
    let listed = host.tool("list", json!({}));
    assert_eq!(listed["structuredContent"]["agents"][0]["agent_id"], "scout", "{listed}");
    let cancelled = host.tool("cancel", json!({"agent_id": "scout"}));
    assert_eq!(cancelled["structuredContent"]["request_ids"], json!([]), "{cancelled}");
    let destroyed = host.tool("destroy", json!({"agent_id": "scout"}));
    assert_eq!(destroyed["structuredContent"]["success"], json!(true), "{destroyed}");
    assert_eq!(host.leave(), Some(0));
}

#[test]
fn a_host_hears_of_its_own_turn_only() {
    let server = Serving::start(&[]);
    let mut host = Host::of(&server);
    host.tool("create", json!({"agent_id": "scout"}));
    let of_scout = |method: &str, params: Value| {
        server.rpc(&["call", method, &params.to_string(), "--agent", "scout"]).json()
    };
    let content = r#"call sleep {"seconds": 600}"#;
    of_scout("send", json!({"content": content, "request_id": "theirs", "wait": false}));
    let listed = || server.rpc(&["call", "list_agents"]).json()["agents"][0].clone();
    soon("the other turn runs", || listed()["status"] == "running");
    let arguments = json!({"agent_id": "scout", "content": r#"call echo {"message": "hi"}"#});
    let params = json!({"name": "send", "arguments": arguments, "_meta": {"progressToken": "p"}});
    let call = host.ask("tools/call", params);
    soon("the own turn waits", || listed()["queued"] == 1);
    of_scout("cancel", json!({"request_id": "theirs"}));
    let mut heard = Vec::new();
    loop {
        let message = host.hear();
        if message["id"] == json!(call) {
            break;
        }
        heard.push(message["params"]["message"].clone());
    }
    let of = |tool: &str| heard.iter().any(|told| told.as_str().unwrap().contains(tool));
    assert_eq!((of("runs echo"), of("sleep")), (true, false), "{heard:?}");
    assert_eq!(host.leave(), Some(0));
}

#[test]
fn every_tool_says_what_it_takes_and_nothing_else_is_taken() {
    let server = Serving::start(&[]);
    let mut host = Host::of(&server);
    let listed = host.call("tools/list", json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["create", "send", "status", "cancel", "list", "destroy"]);
    for tool in tools {
        let schema = &tool["inputSchema"];
        assert_eq!(schema["type"], "object", "{tool}");
        assert_eq!(schema["additionalProperties"], json!(false), "{tool}");
        let refused = host.call(
            "tools/call",
            json!({"name": tool["name"], "arguments": {"no_such_argument": 1}}),
        );
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
        let said = refused["error"]["message"].as_str().unwrap();
        assert!(said.contains("no_such_argument") || said.contains("missing field"), "{said}");
    }
}

#[test]
fn what_is_no_call_is_refused_and_the_next_one_answered() {
    let server = Serving::start(&[]);
    let mut host = Host::of(&server);
    host.say("this is no JSON");
    assert_eq!(host.hear()["error"]["code"], -32700);
    host.say(r#"{"id": 70, "method": "tools/list"}"#);
    let refused = host.hear();
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(70), &json!(-32600)));
    let unknown = host.call("no/such/method", json!({}));
    assert_eq!(unknown["error"]["code"], -32601, "{unknown}");
    let unknown = host.call("tools/call", json!({"name": "fly", "arguments": {}}));
    assert_eq!(unknown["error"]["message"], "there is no tool `fly`", "{unknown}");
    let nobody = host.tool("send", json!({"agent_id": "nobody", "content": "x"}));
    assert_eq!(nobody["isError"], json!(true), "{nobody}");
    assert_eq!(nobody["content"][0]["text"], "Agent not found: nobody", "{nobody}");
    let bad = host.call(
        "tools/call",
        json!({"name": "send", "arguments": {"agent_id": "../x", "content": ""}}),
    );
    assert_eq!(bad["error"]["code"], -32602, "{bad}");
    assert_eq!(host.leave(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_called_off_cancels_its_turn() {
    let (_model, home) = saying("late", LONG).await;
    beside(|| {
        let server = Serving::start_in(home, &[]);
        let mut host = Host::of(&server);
        let (request, call) = at_work(&mut host, &server);
        let params = json!({"requestId": call, "reason": "enough"});
        let off = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
        host.say(&off.to_string());
        soon("the turn is cancelled", || status_of(&server, &request) == "cancelled");
        let listed = host.tool("list", json!({}));
        assert_eq!(listed["structuredContent"]["agents"][0]["status"], "idle", "{listed}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_goes_leaves_no_turn_behind() {
    let (_model, home) = saying("late", LONG).await;
    beside(|| {
        let server = Serving::start_in(home, &[]);
        let mut host = Host::of(&server);
        let (request, _) = at_work(&mut host, &server);
        assert_eq!(host.leave(), Some(0));
        assert_eq!(status_of(&server, &request), "cancelled");
        server.rpc(&["destroy", "scout"]);
        let mut host = Host::of(&server);
        let (request, _) = at_work(&mut host, &server);
        signal(&host.child, Signal::TERM);
        assert_eq!(host.child.wait().unwrap().code(), Some(130));
        assert_eq!(status_of(&server, &request), "cancelled");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_turn_that_is_waited_for_goes_with_its_host() {
    let (_model, home) = saying("late", LONG).await;
    beside(|| {
        let server = Serving::start_in(home, &[]);
        let mut host = Host::of(&server);
        let arguments = json!({"initial_message": "hi", "wait_for_initial_response": true});
        host.ask("tools/call", json!({"name": "create", "arguments": arguments}));
        let status = || server.rpc(&["call", "list_agents"]).json()["agents"][0]["status"].clone();
        soon("the turn runs", || status() == "running");
        assert_eq!(host.leave(), Some(0));
        assert_eq!(status(), "idle");
    })
    .await;
}

#[test]
fn without_a_server_it_has_one_of_its_own_that_ends_with_it() {
    let home = private_home();
    // A port that nobody listens on.
    let silent = tokio::net::TcpSocket::new_v4().unwrap();
    silent.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let port = silent.local_addr().unwrap().port().to_string();
    let mut command = program(home.path());
    command.args(["mcp", "--port", &port]);
    let mut host = Host::greeted(command);
    let created = host.tool("create", json!({"agent_id": "scout"}));
    assert_eq!(created["isError"], json!(false), "{created}");
    let sent = host.tool("send", json!({"agent_id": "scout", "content": "hello"}));
    assert_eq!(sent["isError"], json!(false), "{sent}");
    assert_eq!(host.leave(), Some(0));
    let paths = std::fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().path());
    let is_token = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "token");
    let left: Vec<PathBuf> = paths.filter(is_token).collect();
    assert_eq!(left, Vec::<PathBuf>::new());
    let mut command = program(home.path());
    command.args(["mcp", "--port", &port]);
    assert_eq!(Host::start(command).leave(), Some(0), "a host that says nothing is none to blame");
}

#[test]
fn a_host_that_does_not_begin_as_it_should_is_told() {
    let server = Serving::start(&[]);
    let mut host = Host::start(server.command(&["mcp"]));
    let refused = host.call("tools/call", json!({"name": "list"}));
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let said = refused["error"]["message"].as_str().unwrap();
    assert!(said.contains("protocolVersion"), "{said}");
    assert_eq!(host.leave(), Some(0));
}

#[test]
fn there_is_no_json_output_beside_the_protocol() {
    let home = private_home();
    let refused = run(home.path(), &["mcp", "--json"]);
    assert_eq!(refused, ran(2, "", "error: unknown argument `--json`; see --help\n"));
}
