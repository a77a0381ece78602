//! Who is let in and where to: Host, Origin, route, HTTP method, token, requester, client.

use serde_json::{Value, json};

use super::support::client::Request;
use super::support::server::Running;
use super::{create, good, good_answer, refusal, start, start_with_agent};

/// What one request on a connection of its own is told.
async fn told(server: &Running, request: &Request) -> (u16, Value) {
    server.connect().await.exchange(request).await.told()
}

#[tokio::test]
async fn healthz_tells_three_things_and_asks_for_nothing() {
    let server = start().await;
    let bare = Request::new("GET", "/healthz").header("Host", "127.0.0.1:1");
    let answer = server.connect().await.exchange(&bare).await;
    let version = env!("CARGO_PKG_VERSION");
    let body = format!(r#"{{"service":"nexus3","status":"ok","version":"{version}"}}"#);
    assert_eq!((answer.status, answer.body.as_str()), (200, body.as_str()));
    assert_eq!(answer.header("content-type"), Some("application/json"));
    // What would be refused elsewhere is not even looked at.
    let odd = bare
        .header("X-Nexus-Agent", "no such agent")
        .header("X-Nexus-Client", b"\xff")
        .header("Authorization", "nonsense");
    assert_eq!(told(&server, &odd).await, (200, answer.json()));
}

#[tokio::test]
async fn both_global_paths_answer_and_a_query_changes_nothing() {
    let server = start().await;
    for path in ["/", "/rpc", "/rpc?x=1", "http://localhost/rpc", "http://127.0.0.1:9/"] {
        assert_eq!(told(&server, &server.post(path, good())).await, good_answer(), "{path}");
    }
}

#[tokio::test]
async fn only_loopback_names_are_served() {
    let server = start().await;
    let post = server.post("/rpc", good());
    let no_host = refusal(403, -32600, "Host not allowed");
    for host in ["localhost", "LocalHost:1", "127.0.0.1", "127.9.9.9:65535", "[::1]", "[::1]:8765"]
    {
        assert_eq!(told(&server, &post.clone().with("Host", host)).await, good_answer(), "{host}");
    }
    let bad =
        ["evil.example", "localhost.evil", "", "10.0.0.1", "::1", "[::1", "localhost:x", "0.0.0.0"];
    for host in bad {
        assert_eq!(told(&server, &post.clone().with("Host", host)).await, no_host, "{host}");
    }
    let missing = post.clone().without("Host");
    assert_eq!(told(&server, &missing).await, no_host);
    let twice = post.clone().header("Host", "localhost");
    assert_eq!(told(&server, &twice).await, no_host);
    let foreign_bytes = post.with("Host", b"localhost\xe9");
    assert_eq!(told(&server, &foreign_bytes).await, no_host);
    let absolute = server.post("http://evil.example/rpc", good());
    assert_eq!(told(&server, &absolute).await, no_host);
    let dressed = server.post("http://localhost@evil.example/rpc", good());
    assert_eq!(told(&server, &dressed).await, no_host);
}

#[tokio::test]
async fn only_pages_of_this_machine_are_served() {
    let server = start().await;
    let post = server.post("/rpc", good());
    for origin in ["http://localhost:3000", "https://127.0.0.1", "http://[::1]:1"] {
        let request = post.clone().header("Origin", origin);
        assert_eq!(told(&server, &request).await, good_answer(), "{origin}");
    }
    let refused = refusal(403, -32600, "Origin not allowed");
    for origin in
        ["null", "", "http://evil.example", "file://", "localhost", "http://localhost.evil"]
    {
        let request = post.clone().header("Origin", origin);
        assert_eq!(told(&server, &request).await, refused, "{origin}");
        let health = server.request("GET", "/healthz").header("Origin", origin);
        assert_eq!(told(&server, &health).await, refused, "{origin}");
    }
    let twice = post.header("Origin", "http://localhost").header("Origin", "http://localhost");
    assert_eq!(told(&server, &twice).await, refused);
}

#[tokio::test]
async fn an_unknown_path_is_told_the_routes() {
    let server = start().await;
    let routes = "Not found. Routes: POST /, POST /rpc, POST /agent/{agent_id}, \
                  GET /agent/{agent_id}/events, GET /events, GET /healthz";
    for path in ["/x", "/rpc/", "//", "/agent", "/agent/a/b", "/healthz/", "*", "/RPC", "/%72pc"] {
        for method in ["POST", "GET"] {
            let request = server.request(method, path);
            assert_eq!(told(&server, &request).await, refusal(404, -32602, routes), "{path}");
        }
    }
}

#[tokio::test]
async fn a_known_path_with_another_method_says_which_is_allowed() {
    let server = start().await;
    for (path, allow) in [
        ("/", "POST"),
        ("/rpc", "POST"),
        ("/agent/a", "POST"),
        ("/healthz", "GET"),
        ("/events", "GET"),
        ("/agent/a/events", "GET"),
    ] {
        for method in ["GET", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "NONSENSE"] {
            if method == allow {
                continue;
            }
            // Nobody needs a token to be told.
            let request = server.request(method, path).without("Authorization");
            let answer = server.connect().await.exchange(&request).await;
            let expected = refusal(405, -32600, "Method not allowed");
            assert_eq!(answer.told(), expected, "{method} {path}");
            assert_eq!(answer.header("allow"), Some(allow), "{method} {path}");
        }
    }
    let head = server.request("HEAD", "/healthz").header("Connection", "close");
    let mut client = server.connect().await;
    client.write(&head.bytes()).await;
    let bytes = client.read_to_end().await;
    assert!(bytes.starts_with(b"HTTP/1.1 405 ") && bytes.ends_with(b"\r\n\r\n"));
}

#[tokio::test]
async fn a_token_is_asked_for_and_a_wrong_one_is_refused() {
    let server = start().await;
    let post = server.post("/rpc", good());
    let token = &server.token;
    for good in [format!("bearer {token}"), format!("BEARER   {token} ")] {
        assert_eq!(told(&server, &post.clone().with("Authorization", good)).await, good_answer());
    }
    let ask = refusal(401, -32600, "Authorization header required");
    let twice = post.clone().header("Authorization", format!("Bearer {token}"));
    let mut asked = vec![post.clone().without("Authorization"), twice];
    for malformed in ["", "Bearer", "Bearer ", token, &format!("Basic {token}")] {
        asked.push(post.clone().with("Authorization", malformed));
    }
    for request in asked {
        let answer = server.connect().await.exchange(&request).await;
        assert_eq!(answer.told(), ask, "{request:?}");
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
    }
    let long = "x".repeat(20_000);
    for wrong in
        [&b"nxk_x"[..], &token.as_bytes()[1..], b"\xff\xfe\xc3", "é".as_bytes(), long.as_bytes()]
    {
        let request = post.clone().with("Authorization", [b"Bearer ", wrong].concat());
        assert_eq!(told(&server, &request).await, refusal(403, -32600, "Invalid API key"));
    }
}

#[tokio::test]
async fn an_agent_that_is_not_there_is_not_found() {
    let server = start().await;
    let unknown = told(&server, &server.post("/agent/nobody", good())).await;
    assert_eq!(unknown, refusal(404, -32602, "Agent not found: nobody"));
    let long = "x".repeat(64);
    for malformed in ["", "..", "-a", "a..b", "%2e", "a%2Fb", "a~b", &long] {
        let (status, answer) =
            told(&server, &server.post(&format!("/agent/{malformed}"), good())).await;
        let message = answer["error"]["message"].as_str().expect("there is a message");
        assert!(message.starts_with(&format!("Invalid agent id: {malformed:?} (")), "{message}");
        assert_eq!((status, answer.clone()), refusal(404, -32602, message));
    }
}

#[tokio::test]
async fn a_requester_must_be_an_active_agent() {
    let server = start_with_agent().await;
    create(&server, "gone").await;
    server.call("/rpc", "destroy_agent", json!({"agent_id": "gone"})).await;
    let post = server.post("/rpc", good());
    let (status, answer) = told(&server, &post.clone().header("X-Nexus-Agent", "a")).await;
    assert_eq!((status, &answer["result"]["agents"][0]["agent_id"]), (200, &json!("a")));
    let cases: [(&[u8], &str); 5] =
        [(b"b", "b"), (b"gone", "gone"), (b"", ""), (b"a b", "a b"), (b"\xff", "\u{fffd}")];
    for (shown, read) in cases {
        for path in ["/rpc", "/agent/a", "/agent/nobody"] {
            let request = server.post(path, good()).header("X-Nexus-Agent", shown);
            let error = json!({
                "code": -32003,
                "message": format!("Unknown requester: {read}"),
                "data": {"reason": "policy"},
            });
            let expected = json!({"jsonrpc": "2.0", "id": null, "error": error});
            assert_eq!(told(&server, &request).await, (403, expected));
        }
    }
}

#[tokio::test]
async fn a_client_may_give_a_short_printable_name() {
    let server = start().await;
    let post = server.post("/rpc", good());
    for name in ["me", "my tool/1.0", &"x".repeat(64)] {
        assert_eq!(
            told(&server, &post.clone().header("X-Nexus-Client", name)).await,
            good_answer()
        );
    }
    let message = "X-Nexus-Client must be 1 to 64 printable ASCII characters";
    for name in [&b""[..], b"a\tb", b"\xc3\xa9", &[b'x'; 65]] {
        let request = post.clone().header("X-Nexus-Client", name);
        assert_eq!(told(&server, &request).await, refusal(400, -32600, message));
    }
}
