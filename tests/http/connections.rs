//! Connections: kept alive, pipelined, of old clients, of no HTTP at all, and cut in the middle.

use serde_json::{Value, json};

use super::support::client::Answer;
use super::{good, good_answer, refusal, start, start_with_agent};

#[tokio::test]
async fn a_connection_answers_one_request_after_another() {
    let server = start().await;
    let mut client = server.connect().await;
    for id in 0..5 {
        let body = json!({"jsonrpc": "2.0", "id": id, "method": "list_agents"}).to_string();
        let expected = json!({"jsonrpc": "2.0", "id": id, "result": {"agents": []}});
        assert_eq!(client.exchange(&server.post("/rpc", body)).await.told(), (200, expected));
    }
    let last = server.post("/rpc", good()).header("Connection", "close");
    assert_eq!(client.exchange(&last).await.told(), good_answer());
    assert_eq!(client.read_to_end().await, b"");
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let server = start().await;
    let mut client = server.connect().await;
    let request = |id: u32| {
        let body = json!({"jsonrpc": "2.0", "id": id, "method": "list_agents"}).to_string();
        server.post("/rpc", body).bytes()
    };
    let refused = server.post("/x", "body").bytes();
    client.write(&[request(1), refused, request(2)].concat()).await;
    let answers = [client.read().await, client.read().await, client.read().await];
    let told = answers.each_ref().map(|answer| (answer.status, answer.json()["id"].clone()));
    assert_eq!(told, [(200, json!(1)), (404, Value::Null), (200, json!(2))]);
}

#[tokio::test]
async fn an_old_client_is_answered_and_its_connection_closed() {
    let server = start().await;
    let old = |extra: &str| {
        let (token, body) = (&server.token, good());
        format!(
            "POST /rpc HTTP/1.0\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n{extra}\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    let mut client = server.connect().await;
    client.write(old("").as_bytes()).await;
    assert_eq!(client.read().await.told(), good_answer());
    assert_eq!(client.read_to_end().await, b"");
    let mut client = server.connect().await;
    for _ in 0..2 {
        client.write(old("Connection: keep-alive\r\n").as_bytes()).await;
        assert_eq!(client.read().await.told(), good_answer());
    }
}

#[tokio::test]
async fn bytes_that_are_no_http_get_a_bare_400() {
    let server = start().await;
    let junk = vec![b'\x01'; 1_000_000];
    let cases: [&[u8]; 9] = [
        b"\x00\x01\x02\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"hello\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET\r\n\r\n",
        b"{\"jsonrpc\":\"2.0\"}\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost localhost\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1x\r\n\r\n",
        &junk,
    ];
    for bytes in cases {
        let mut client = server.connect().await;
        client.write(bytes).await;
        let bare = client.read().await;
        let headers = [("connection", "close"), ("content-length", "0")];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let shown = &bytes[..bytes.len().min(30)];
        assert_eq!(bare, Answer { status: 400, headers, body: String::new() }, "{shown:?}");
        assert_eq!(client.read_to_end().await, b"");
    }
    assert_eq!(
        server.connect().await.exchange(&server.post("/", good())).await.told(),
        good_answer()
    );
}

#[tokio::test]
async fn a_client_that_leaves_in_the_middle_harms_nobody() {
    let server = start_with_agent().await;
    let send = r#"{"jsonrpc":"2.0","id":1,"method":"send","params":{"request_id":"r","content":"call sleep {\"seconds\": 3600}"}}"#;
    let whole = server.post("/agent/a", send).bytes();
    for written in [0, 1, 20, whole.len() - send.len(), whole.len() - 1] {
        let mut client = server.connect().await;
        client.write(&whole[..written]).await;
        drop(client);
    }
    let status = async || {
        let ask = json!({"request_id": "r"});
        server.call("/agent/a", "get_request", ask).await["result"]["status"].clone()
    };
    assert_eq!(status().await, Value::Null, "no request came whole");
    let mut client = server.connect().await;
    client.write(&whole).await;
    while status().await != "running" {}
    drop(client);
    // A turn goes on without its caller.
    assert_eq!(server.connect().await.exchange(&server.post("/x", "")).await.status, 404);
    assert_eq!(status().await, "running");
    let messages = async || server.call("/agent/a", "get_context", json!({})).await;
    while messages().await["result"]["message_count"] != 2 {}
    server.call("/agent/a", "cancel", json!({})).await;
}

#[tokio::test]
async fn a_body_that_is_malformed_or_cut_off_gets_400() {
    let server = start().await;
    let chunked = server.request("POST", "/rpc").header("Transfer-Encoding", "chunked");
    for chunk in ["zz\r\n", "-1\r\n", "fffffffffffffffff\r\n", "2\r\n{}x"] {
        let mut client = server.connect().await;
        client.write(&[chunked.head(), chunk.as_bytes().to_vec()].concat()).await;
        let answer = client.read().await;
        let expected = refusal(400, -32600, "Request body malformed or cut off");
        assert_eq!(answer.told(), expected, "{chunk:?}");
        assert_eq!(client.read_to_end().await, b"");
    }
    let half = server.post("/rpc", good()).bytes();
    let mut client = server.connect().await;
    client.write(&half[..half.len() - 1]).await;
    client.finish().await;
    assert_eq!(client.read().await.status, 400);
    // Half a head is nothing that could be answered.
    let mut client = server.connect().await;
    client.write(&half[..20]).await;
    client.finish().await;
    assert_eq!(client.read_to_end().await, b"");
}

#[tokio::test]
async fn no_answer_has_a_cors_or_a_date_header() {
    let server = start().await;
    let page = server.post("/rpc", good()).header("Origin", "http://localhost:3000");
    let preflight = server
        .request("OPTIONS", "/rpc")
        .header("Origin", "http://localhost:3000")
        .header("Access-Control-Request-Method", "POST");
    let requests = [
        page.clone(),
        preflight,
        page.clone().without("Authorization"),
        page.clone().with("Origin", "null"),
        server.request("GET", "/healthz"),
        server.post("/x", ""),
        server.post("/rpc", "{"),
        server.post("/rpc", r#"{"jsonrpc":"2.0","method":"list_agents"}"#),
    ];
    for request in requests {
        let answer = server.connect().await.exchange(&request).await;
        let names: Vec<&str> = answer.headers.iter().map(|(name, _)| name.as_str()).collect();
        let strange = |name: &&str| name.starts_with("access-control") || *name == "date";
        assert!(!names.iter().any(strange), "{names:?}");
    }
}

#[tokio::test]
async fn a_server_that_stops_answers_what_it_has_and_closes_the_rest() {
    let server = start().await;
    let (mut idle, mut fresh, mut last) =
        (server.connect().await, server.connect().await, server.connect().await);
    assert_eq!(idle.exchange(&server.post("/rpc", good())).await.told(), good_answer());
    let stop = r#"{"jsonrpc":"2.0","id":1,"method":"shutdown_server"}"#;
    let answer = last.exchange(&server.post("/rpc", stop)).await;
    let result = json!({"success": true, "message": "Server shutting down"});
    assert_eq!(answer.told(), (200, json!({"jsonrpc": "2.0", "id": 1, "result": result})));
    for client in [&mut idle, &mut fresh, &mut last] {
        assert_eq!(client.read_to_end().await, b"");
    }
    server.stop().await;
}
