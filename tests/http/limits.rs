//! The limits of one request and of all connections, each at its edge.

use serde_json::{Value, json};

use super::support::client::{Client, Request};
use super::support::server::Running;
use super::{good, good_answer, refusal, start, start_with};

const MIB: usize = 1_048_576;
const TOO_LARGE: &str = "Request body too large: at most 1048576 bytes";
const TOO_MANY_HEADERS: &str = "Request headers too large: at most 128 fields and 32768 bytes";

fn chunked(server: &Running, path: &str, chunks: &[&[u8]]) -> Vec<u8> {
    let head = server.request("POST", path).header("Transfer-Encoding", "chunked").head();
    let mut bytes = head;
    for chunk in chunks {
        bytes.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        bytes.extend_from_slice(chunk);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"0\r\n\r\n");
    bytes
}

/// A call, filled up with blanks to exactly `bytes`.
fn padded(bytes: usize) -> Vec<u8> {
    let mut body = good().into_bytes();
    body.resize(bytes, b' ');
    body
}

async fn is_closed(client: &mut Client) -> bool {
    client.read_to_end().await.is_empty()
}

#[tokio::test]
async fn a_body_of_1_mib_is_read_and_one_byte_more_is_not() {
    let server = start().await;
    let mut client = server.connect().await;
    let exact = client.exchange(&server.post("/rpc", padded(MIB))).await;
    assert_eq!(exact.told(), good_answer());
    // The connection lives on; too long a body ends it, after it was thrown away.
    let over = client.exchange(&server.post("/rpc", padded(MIB + 1))).await;
    assert_eq!(over.told(), refusal(413, -32600, TOO_LARGE));
    assert_eq!(over.header("connection"), Some("close"));
    assert!(is_closed(&mut client).await);
}

#[tokio::test]
async fn a_declared_length_is_refused_before_the_body_comes() {
    let server = start().await;
    for length in ["1048577", "18446744073709551613"] {
        // Asking first keeps the server from waiting for a body to throw away.
        let head = server
            .request("POST", "/rpc")
            .header("Content-Length", length)
            .header("Expect", "100-continue");
        let mut client = server.connect().await;
        client.write(&head.head()).await;
        let answer = client.read().await;
        assert_eq!(answer.told(), refusal(413, -32600, TOO_LARGE), "{length}");
        assert!(is_closed(&mut client).await);
    }
}

#[tokio::test]
async fn a_chunked_body_is_held_to_the_same_limit() {
    let server = start().await;
    let body = padded(MIB);
    let (front, back) = body.split_at(300_000);
    let mut client = server.connect().await;
    client.write(&chunked(&server, "/rpc", &[front, back])).await;
    assert_eq!(client.read().await.told(), good_answer());
    client.write(&chunked(&server, "/rpc", &[front, back, b" "])).await;
    let over = client.read().await;
    assert_eq!(over.told(), refusal(413, -32600, TOO_LARGE));
    assert_eq!(over.header("connection"), Some("close"));
    assert!(is_closed(&mut client).await);
}

/// A good call whose headers have exactly this many bytes, each line with its end.
fn with_header_bytes(server: &Running, bytes: usize) -> Request {
    let request = server.post("/rpc", good());
    let line = "POST /rpc HTTP/1.1\r\n".len();
    let fixed = request.head().len() - line - "\r\n".len() + "X-Pad: \r\n".len();
    request.header("X-Pad", "x".repeat(bytes - fixed))
}

fn with_fields(server: &Running, fields: usize) -> Request {
    // Host, token and length are three.
    (3..fields)
        .fold(server.post("/rpc", good()), |request, n| request.header(&format!("X-{n}"), "x"))
}

#[tokio::test]
async fn headers_are_counted_to_32_kib_and_128_fields() {
    let server = start().await;
    for fits in [with_header_bytes(&server, 32_768), with_fields(&server, 128)] {
        assert_eq!(server.connect().await.exchange(&fits).await.told(), good_answer());
    }
    let same_name =
        (3..129).fold(server.post("/rpc", good()), |request, _| request.header("X", "x"));
    for over in [with_header_bytes(&server, 32_769), with_fields(&server, 129), same_name] {
        let mut client = server.connect().await;
        let answer = client.exchange(&over).await;
        assert_eq!(answer.told(), refusal(431, -32600, TOO_MANY_HEADERS));
        assert_eq!(answer.header("connection"), Some("close"));
        assert!(is_closed(&mut client).await);
    }
}

#[tokio::test]
async fn headers_far_beyond_the_limit_get_a_bare_431() {
    let server = start().await;
    for far in [with_header_bytes(&server, MIB), with_fields(&server, 2000)] {
        let mut client = server.connect().await;
        client.write(&far.bytes()).await;
        let answer = client.read().await;
        assert_eq!((answer.status, answer.body.as_str()), (431, ""));
        assert!(is_closed(&mut client).await);
    }
}

#[tokio::test]
async fn one_connection_too_many_is_told_so_and_a_place_is_given_back() {
    let server = start_with(|_, config| config.server.max_connections = 2).await;
    let health = server.request("GET", "/healthz");
    let mut first = server.connect().await;
    let mut second = server.connect().await;
    assert_eq!(first.exchange(&health).await.status, 200);
    assert_eq!(second.exchange(&health).await.status, 200);
    let mut third = server.connect().await;
    // What it asks is thrown away, however long it is.
    third.write(&server.post("/rpc", padded(MIB)).bytes()).await;
    let told = third.read().await;
    assert_eq!(told.told(), refusal(503, -32001, "Too many connections; try again later"));
    assert_eq!(told.header("connection"), Some("close"));
    assert!(is_closed(&mut third).await);
    // A client that says so leaves its place with its answer.
    let last = health.clone().header("Connection", "close");
    assert_eq!(second.exchange(&last).await.status, 200);
    assert!(is_closed(&mut second).await);
    assert_eq!(answered_in_the_end(&server, &health).await["status"], "ok");
    assert_eq!(first.exchange(&health).await.status, 200);
}

/// The server may notice a closed connection after its client has come back.
async fn answered_in_the_end(server: &Running, request: &Request) -> Value {
    loop {
        let answer = server.connect().await.exchange(request).await;
        match answer.status {
            200 => return answer.json(),
            status => assert_eq!(status, 503, "{:?}", json!(answer.body)),
        }
    }
}
