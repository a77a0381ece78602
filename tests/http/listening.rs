//! The client library on an event stream that misbehaves: the other side is the test itself.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use nexus3::client::{ClientError, EventStream, NexusClient};
use nexus3::event::What;
use nexus3::limits::CLIENT_ANSWER_BYTES_MAX;
use nexus3::world::{Net, Stream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, sleep};

use super::memory::Memory;

const HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
const STOPPING: &str = "event: server_stopping\ndata: {\"type\":\"server_stopping\",\
                        \"agent_id\":null,\"at\":\"2026-01-01T00:00:00.000Z\"}\n\n";

/// The other end of a stream that a client has opened.
async fn opened(answer: &[u8]) -> (Result<EventStream, ClientError>, Box<dyn Stream>) {
    let net = Memory::new();
    let address: SocketAddr = "127.0.0.1:1".parse().expect("it is an address");
    let mut listener = net.bind(address).await.expect("the net is ours");
    let client = NexusClient::new(Arc::clone(&net) as Arc<dyn Net>, address, None);
    let serving = async {
        let mut stream = listener.accept().await.expect("a client comes");
        let mut request = vec![0; 4096];
        let read = stream.read(&mut request).await.expect("it asks");
        let request = String::from_utf8_lossy(&request[..read]).into_owned();
        assert!(request.starts_with("GET /events?after=7 HTTP/1.1\r\n"), "{request}");
        stream.write_all(answer).await.expect("it reads");
        stream
    };
    tokio::join!(client.open_events(None, Some(7)), serving)
}

fn chunk(text: &str) -> Vec<u8> {
    format!("{:x}\r\n{text}\r\n", text.len()).into_bytes()
}

async fn listen(pieces: &[&[u8]]) -> (EventStream, Box<dyn Stream>) {
    let (stream, mut server) = opened(HEAD).await;
    for piece in pieces {
        server.write_all(piece).await.expect("it reads");
    }
    (stream.expect("it opens"), server)
}

/// The types of the events until the stream ends, and how it ended.
async fn outcome(mut stream: EventStream) -> (Vec<&'static str>, Option<ClientError>) {
    let mut names = Vec::new();
    while let Some(event) = stream.next().await {
        match event {
            Ok(event) => names.push(event.what.name()),
            Err(error) => {
                assert!(stream.next().await.is_none(), "nothing follows an error");
                return (names, Some(error));
            }
        }
    }
    (names, None)
}

#[tokio::test(start_paused = true)]
async fn records_come_in_any_pieces_and_strange_types_are_passed_over() {
    let strange = "event: agent_dreamed\ndata: {\"type\":\"agent_dreamed\",\"agent_id\":\"a\"}\n\n";
    let text = [strange, ": ping\n\n", STOPPING, strange, STOPPING].concat();
    let pieces: Vec<Vec<u8>> =
        text.as_bytes().chunks(7).map(|piece| chunk(str::from_utf8(piece).unwrap())).collect();
    let mut pieces: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
    pieces.push(b"0\r\n\r\n");
    let (stream, _server) = listen(&pieces).await;
    let (names, error) = outcome(stream).await;
    assert_eq!(names, ["server_stopping", "server_stopping"]);
    assert!(error.is_none(), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_breaks_off_is_an_error_after_what_came() {
    let whole = chunk(STOPPING);
    for last in [&b""[..], b"5\r\nev"] {
        let (stream, server) = listen(&[&whole, last]).await;
        drop(server);
        let (names, error) = outcome(stream).await;
        assert_eq!(names, ["server_stopping"]);
        assert!(matches!(error, Some(ClientError::Protocol { .. })), "{error:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_no_event_is_an_error() {
    let broken = chunk("data: {\"type\":\"content_chunk\"}\n\n");
    let (stream, _server) = listen(&[&chunk(STOPPING), &broken, &chunk(STOPPING)]).await;
    let (names, error) = outcome(stream).await;
    assert_eq!(names, ["server_stopping"]);
    assert!(matches!(error, Some(ClientError::Protocol { .. })), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn three_pings_that_do_not_come_are_an_error() {
    let (mut stream, mut server) = listen(&[]).await;
    let opened = Instant::now();
    let pinging = async {
        for _ in 0..3 {
            sleep(Duration::from_secs(44)).await;
            server.write_all(&chunk(": ping\n\n")).await.expect("it reads");
        }
    };
    let (event, ()) = tokio::join!(stream.next(), pinging);
    assert!(matches!(event, Some(Err(ClientError::Timeout { .. }))), "{event:?}");
    assert_eq!(opened.elapsed(), Duration::from_secs(3 * 44 + 45));
    assert!(stream.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_is_given_up_loses_nothing() {
    let (mut stream, mut server) = listen(&[]).await;
    for half in chunk(STOPPING).chunks(30) {
        let waited = tokio::time::timeout(Duration::from_secs(1), stream.next()).await;
        assert!(waited.is_err(), "half an event is none");
        server.write_all(half).await.expect("it reads");
    }
    let event = stream.next().await.expect("it goes on").expect("it is an event");
    assert_eq!(event.what, What::ServerStopping {});
}

#[tokio::test(start_paused = true)]
async fn a_line_without_end_is_given_up() {
    let (stream, mut server) = listen(&[]).await;
    let endless = async move {
        let piece = "x".repeat(1024 * 1024);
        // The client hangs up on the way.
        for _ in 0..=CLIENT_ANSWER_BYTES_MAX / piece.len() {
            if server.write_all(&chunk(&piece)).await.is_err() {
                return;
            }
        }
    };
    let ((names, error), ()) = tokio::join!(outcome(stream), endless);
    assert_eq!(names, [""; 0]);
    assert!(matches!(error, Some(ClientError::Protocol { .. })), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_no_stream_is_an_error() {
    let page = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 2\r\n\r\nhi";
    let (stream, _server) = opened(page).await;
    assert!(matches!(stream, Err(ClientError::Protocol { .. })), "{stream:?}");
    let body = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"busy"}}"#;
    let busy =
        format!("HTTP/1.1 503 Service Unavailable\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let (stream, _server) = opened(busy.as_bytes()).await;
    match stream {
        Err(ClientError::Refused { status, error }) => {
            assert_eq!((status.as_u16(), error.code), (503, -32001));
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_is_given_up() {
    let opening = Instant::now();
    let (stream, _server) = opened(b"HTTP/1.1 200 OK\r\n").await;
    assert!(matches!(stream, Err(ClientError::Timeout { .. })), "{stream:?}");
    assert_eq!(opening.elapsed(), Duration::from_mins(1));
}
