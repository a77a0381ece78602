//! Bodies that nobody wants: thrown away so that the client sees its answer, never parsed, and never
//! asked for.

use serde_json::Value;

use super::support::client::Request;
use super::support::server::Running;
use super::{good, good_answer, refusal, start};

const LARGE: usize = 900_000;
/// More than the buffers of both sockets hold, less than what is drained.
const OVER_LONG: usize = 2_000_000;

/// One refused request for every answer that does not look at its body.
fn refused(server: &Running) -> [(&'static str, Request, u16); 6] {
    let body = vec![b'x'; LARGE];
    let post = |path: &str| server.post(path, body.clone());
    [
        ("401", post("/rpc").without("Authorization"), 401),
        ("403 Host", post("/rpc").with("Host", "evil.example"), 403),
        ("403 token", post("/rpc").with("Authorization", "Bearer no"), 403),
        ("403 requester", post("/rpc").header("X-Nexus-Agent", "nobody"), 403),
        ("404", post("/x"), 404),
        ("405", server.request("PUT", "/rpc").body(body.clone()), 405),
    ]
}

#[tokio::test]
async fn a_refused_body_that_was_sent_whole_leaves_the_connection_usable() {
    let server = start().await;
    let mut client = server.connect().await;
    for (name, request, status) in refused(&server) {
        // The whole body is written before anything is read.
        let answer = client.exchange(&request).await;
        assert_eq!((answer.status, answer.header("connection")), (status, None), "{name}");
        let next = client.exchange(&server.post("/rpc", good())).await;
        assert_eq!(next.told(), good_answer(), "{name}");
    }
}

#[tokio::test]
async fn a_body_for_health_is_thrown_away_too() {
    let server = start().await;
    let mut client = server.connect().await;
    let health = server.request("GET", "/healthz").body(vec![b'x'; LARGE]);
    assert_eq!(client.exchange(&health).await.status, 200);
    assert_eq!(client.exchange(&server.post("/rpc", good())).await.told(), good_answer());
}

#[tokio::test]
async fn a_body_over_the_limit_is_thrown_away_before_the_answer() {
    let server = start().await;
    for _ in 0..10 {
        let mut client = server.connect().await;
        let answer = client.exchange(&server.post("/rpc", vec![b'x'; OVER_LONG])).await;
        assert_eq!(answer.status, 413);
        assert_eq!(client.read_to_end().await, b"");
    }
}

#[tokio::test]
async fn an_unauthenticated_body_is_never_parsed() {
    let server = start().await;
    let stop = r#"{"jsonrpc":"2.0","id":1,"method":"shutdown_server"}"#;
    let create = r#"{"jsonrpc":"2.0","id":1,"method":"create_agent"}"#;
    for body in [stop, create, "{", "\u{feff}"] {
        let request = server.post("/rpc", body).without("Authorization");
        let answer = server.connect().await.exchange(&request).await;
        assert_eq!(answer.told(), refusal(401, -32600, "Authorization header required"));
    }
    let list = server.connect().await.exchange(&server.post("/rpc", good())).await;
    assert_eq!(list.told(), good_answer());
}

#[tokio::test]
async fn a_client_that_asks_first_is_told_to_go_on_only_for_a_body_that_is_wanted() {
    let server = start().await;
    let asking = server.post("/rpc", good()).header("Expect", "100-continue");
    let mut client = server.connect().await;
    client.write(&asking.head()).await;
    let go_on = client.read().await;
    assert_eq!((go_on.status, go_on.headers), (100, vec![]));
    client.write(good().as_bytes()).await;
    assert_eq!(client.read().await.told(), good_answer());
    for (name, request, status) in refused(&server) {
        let mut client = server.connect().await;
        client.write(&request.header("Expect", "100-continue").head()).await;
        let answer = client.read().await;
        assert_eq!((answer.status, answer.header("connection")), (status, Some("close")), "{name}");
        assert_eq!(client.read_to_end().await, b"", "{name}");
    }
}

#[tokio::test]
async fn a_client_that_asks_but_does_not_wait_sees_its_answer_all_the_same() {
    let server = start().await;
    for (name, request, status) in refused(&server) {
        for _ in 0..5 {
            let mut client = server.connect().await;
            client.write(&request.clone().header("Expect", "100-continue").bytes()).await;
            assert_eq!(client.read().await.status, status, "{name}");
        }
    }
}

#[tokio::test]
async fn a_chunked_body_that_was_asked_for_and_is_too_long_is_thrown_away_too() {
    let server = start().await;
    let head = server
        .request("POST", "/rpc")
        .header("Transfer-Encoding", "chunked")
        .header("Expect", "100-continue")
        .head();
    for _ in 0..5 {
        let mut client = server.connect().await;
        client.write(&head).await;
        assert_eq!(client.read().await.status, 100);
        client.write(format!("{OVER_LONG:x}\r\n").as_bytes()).await;
        for piece in vec![b' '; OVER_LONG].chunks(100_000) {
            client.write(piece).await;
            // By the time of another answer the server has seen the piece.
            let health = server.request("GET", "/healthz");
            assert_eq!(server.connect().await.exchange(&health).await.status, 200);
        }
        client.write(b"\r\n0\r\n\r\n").await;
        let (status, answer) = client.read().await.told();
        assert_eq!((status, &answer["id"]), (413, &Value::Null));
    }
}
