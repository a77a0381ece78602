//! Event streams as they are asked for: routes, rights, cursors, limits, and in which order the
//! checks come.

use nexus3::hub::Scope;
use nexus3::limits::{STREAMS_MAX, STREAMS_PER_AGENT_MAX};
use serde_json::{Value, json};

use super::streams::EventReader;
use super::support::client::Request;
use super::support::server::Running;
use super::{create, refusal, start, start_with_agent};

async fn told(server: &Running, request: &Request) -> (u16, Value) {
    server.connect().await.exchange(request).await.told()
}

fn forbidden(reason: &str, message: &str) -> (u16, Value) {
    let error = json!({"code": -32003, "message": message, "data": {"reason": reason}});
    (403, json!({"jsonrpc": "2.0", "id": null, "error": error}))
}

#[tokio::test]
async fn a_stream_says_what_it_is_at_once() {
    let server = start_with_agent().await;
    for path in ["/events", "/agent/a/events", "/events?after=0", "/agent/a/events?after=0"] {
        let mut client = server.connect().await;
        let head = client.exchange(&server.request("GET", path)).await;
        assert_eq!(head.status, 200);
        let expected = [
            ("content-type", "text/event-stream"),
            ("cache-control", "no-cache"),
            ("transfer-encoding", "chunked"),
        ];
        let mut headers: Vec<(&str, &str)> =
            head.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        headers.sort_by_key(|(name, _)| expected.iter().position(|(known, _)| known == name));
        assert_eq!(headers, expected, "{path}");
    }
}

#[tokio::test]
async fn the_stream_of_nobody_is_not_found() {
    let server = start().await;
    let missing = refusal(404, -32602, "Agent not found: nobody");
    for cursor in ["", "?after=0", "?after=x", "?x"] {
        let request = server.request("GET", &format!("/agent/nobody/events{cursor}"));
        assert_eq!(told(&server, &request).await, missing, "{cursor}");
    }
    let (status, answer) = told(&server, &server.request("GET", "/agent/-/events")).await;
    assert_eq!((status, &answer["error"]["code"]), (404, &json!(-32602)));
    let message = answer["error"]["message"].as_str().expect("there is a message");
    assert!(message.starts_with("Invalid agent id: "), "{message}");
}

#[tokio::test]
async fn a_cursor_that_is_none_is_refused() {
    let server = start_with_agent().await;
    let refused = |message: &str| refusal(400, -32602, message);
    let no_number = |shown: &str| refused(&format!("Invalid cursor: {shown:?} is not a number"));
    let mut above = refused("Invalid cursor: the newest event is 1");
    above.1["error"]["data"] = json!({"newest": 1});
    for path in ["/events", "/agent/a/events"] {
        let get = |query: &str| server.request("GET", &format!("{path}{query}"));
        let table = [
            (get("?after=x"), no_number("x")),
            (get("?after=-1"), no_number("-1")),
            (get("").header("Last-Event-ID", ""), no_number("")),
            (get("?after=0").header("Last-Event-ID", "1e3"), no_number("1e3")),
            (get("?after=2"), above.clone()),
            (get("?after=0").header("Last-Event-ID", "2"), above.clone()),
            (get("?since=1"), refused("Unknown query parameter: \"since\"; known: after")),
        ];
        for (request, expected) in table {
            assert_eq!(told(&server, &request).await, expected);
        }
        let wins = get("?after=x").header("Last-Event-ID", "0");
        assert_eq!(server.connect().await.exchange(&wins).await.status, 200);
    }
}

#[tokio::test]
async fn agents_hear_of_themselves_and_their_descendants_only() {
    let server = start().await;
    for params in [
        json!({"agent_id": "a", "preset": "trusted"}),
        json!({"agent_id": "child", "parent_agent_id": "a"}),
    ] {
        let answer = server.call("/rpc", "create_agent", params).await;
        assert_eq!(answer["error"], Value::Null, "{answer}");
    }
    create(&server, "b").await;
    let as_agent =
        |path: &str, agent: &str| server.request("GET", path).header("X-Nexus-Agent", agent);
    for (path, agent) in [("/agent/a/events", "a"), ("/agent/child/events", "a")] {
        let head = server.connect().await.exchange(&as_agent(path, agent)).await;
        assert_eq!(head.status, 200, "{path} for {agent}");
    }
    for (of, agent) in [("b", "a"), ("a", "child"), ("child", "b")] {
        let message = format!("{of} is neither {agent} nor one of its descendants");
        let request = as_agent(&format!("/agent/{of}/events"), agent);
        assert_eq!(told(&server, &request).await, forbidden("owner", &message));
    }
    let everybody = forbidden("policy", "agents may not stream the events of everybody");
    assert_eq!(told(&server, &as_agent("/events", "a")).await, everybody);
}

#[tokio::test]
async fn the_earlier_of_two_broken_rules_is_told() {
    let server = start_with_agent().await;
    create(&server, "b").await;
    let full: Vec<_> = (0..STREAMS_PER_AGENT_MAX).map(|_| server.hold_stream("a")).collect();
    let get = |path: &str| server.request("GET", path);
    let foreign = |request: Request| request.header("X-Nexus-Agent", "b");
    let nobody = |request: Request| request.header("X-Nexus-Agent", "nobody");
    let table = [
        ("Host, path", get("/events/").with("Host", "evil.example"), 403, -32600),
        ("path, token", get("/events/").without("Authorization"), 404, -32602),
        ("method, token", server.post("/events", "").without("Authorization"), 405, -32600),
        ("token, requester", nobody(get("/events")).without("Authorization"), 401, -32600),
        ("token, agent", get("/agent/x/events").without("Authorization"), 401, -32600),
        ("requester, agent", nobody(get("/agent/x/events")), 403, -32003),
        ("agent, owner", foreign(get("/agent/x/events")), 404, -32602),
        ("agent, cursor", get("/agent/x/events?after=x"), 404, -32602),
        ("owner, limit", foreign(get("/agent/a/events")), 403, -32003),
        ("policy, cursor", foreign(get("/events?after=x")), 403, -32003),
        ("limit, cursor", get("/agent/a/events?after=x"), 503, -32001),
    ];
    for (rules, request, status, code) in table {
        let (answered, answer) = told(&server, &request).await;
        assert_eq!((answered, &answer["error"]["code"]), (status, &json!(code)), "{rules}");
        assert_eq!(answer["id"], Value::Null, "{rules}");
    }
    drop(full);
}

#[tokio::test]
async fn a_stream_too_many_is_refused_and_a_place_is_given_back() {
    let server = start_with_agent().await;
    create(&server, "b").await;
    let get = |path: &str| server.request("GET", path);
    let mut streams = Vec::new();
    for _ in 0..STREAMS_PER_AGENT_MAX {
        streams.push(EventReader::open(&server, &get("/agent/a/events")).await);
    }
    let message = "a has 128 event streams already; try again later";
    let refused = refusal(503, -32001, message);
    assert_eq!(told(&server, &get("/agent/a/events")).await, refused);
    assert_eq!(told(&server, &get("/agent/a/events?after=0")).await, refused);
    let others: Vec<_> =
        (0..STREAMS_MAX - STREAMS_PER_AGENT_MAX).map(|_| server.hold_stream("*")).collect();
    let refused = refusal(503, -32001, "there are 512 event streams already; try again later");
    assert_eq!(told(&server, &get("/agent/b/events")).await, refused);
    assert_eq!(told(&server, &get("/events")).await, refused);
    drop(others);
    // A reader that leaves is noticed without anything to tell it.
    drop(streams.pop());
    while server.hub.has_room(&Scope::Agent("a".parse().expect("it is an id"))).is_err() {
        tokio::task::yield_now().await;
    }
    EventReader::open(&server, &get("/agent/a/events")).await;
}
