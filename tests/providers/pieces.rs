//! Answers that come in pieces cut anywhere, and connections that end between two answers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use nexus3::provider::{FinishReason, ModelEvent};
use nexus3::world::{Net, Stream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_util::task::AbortOnDropHandle;

use crate::support::{Reason, WIRES, Wire, ask, ask_one_of, models, provider, world};

/// An answer with letters of two, three and four bytes, and a tool call.
fn answer(wire: Wire) -> String {
    let call = wire.asks(1, Some("c1"), &["{\"message\": \"Ä", "\u{20ac}\"}"]);
    [wire.says("Hé\u{20ac}"), wire.says("\u{1f980}"), call, wire.ends(Reason::Calls)].concat()
}

fn answer_events() -> Vec<ModelEvent> {
    let delta =
        |arguments: &str| ModelEvent::ToolCallDelta { index: 0, arguments: arguments.to_owned() };
    vec![
        ModelEvent::Text("Hé\u{20ac}".to_owned()),
        ModelEvent::Text("\u{1f980}".to_owned()),
        ModelEvent::ToolCallStarted { index: 0, id: "c1".to_owned(), name: "echo".to_owned() },
        delta("{\"message\": \"Ä"),
        delta("\u{20ac}\"}"),
        ModelEvent::Finished(FinishReason::ToolCalls),
    ]
}

/// A response whose body comes in chunks of this many bytes.
fn chunked(body: &str, size: usize) -> Vec<u8> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
                transfer-encoding: chunked\r\n\r\n";
    let mut response = head.as_bytes().to_vec();
    for piece in body.as_bytes().chunks(size) {
        response.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
        response.extend_from_slice(piece);
        response.extend_from_slice(b"\r\n");
    }
    response.extend_from_slice(b"0\r\n\r\n");
    response
}

/// A response whose body comes at once.
fn sized(body: &str) -> Vec<u8> {
    let length = body.len();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n";
    format!("{head}content-length: {length}\r\n\r\n{body}").into_bytes()
}

/// A server that gives the same response again and again, but on each connection only so often:
/// one more request is read, forgotten, and the connection closed.
struct Server {
    address: SocketAddr,
    forgotten: Arc<AtomicUsize>,
    _serving: AbortOnDropHandle<()>,
}

async fn server(net: Arc<dyn Net>, response: Vec<u8>, per_connection: usize) -> Server {
    let listener = net.bind(([127, 0, 0, 1], 0).into()).await;
    let mut listener = listener.expect("a test may listen");
    let address = listener.local_addr().expect("it listens");
    let forgotten = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&forgotten);
    let serving = tokio::spawn(async move {
        loop {
            let mut stream = listener.accept().await.expect("a test may be connected to");
            let mut answered = 0;
            while read_request(stream.as_mut()).await.is_some() {
                if answered == per_connection {
                    counter.fetch_add(1, Ordering::Relaxed);
                    break;
                }
                stream.write_all(&response).await.expect("the client reads");
                stream.flush().await.expect("the client reads");
                answered += 1;
            }
        }
    });
    Server { address, forgotten, _serving: AbortOnDropHandle::new(serving) }
}

/// Reads one request to its end; none comes on a connection that has ended.
async fn read_request(stream: &mut dyn Stream) -> Option<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?.to_ascii_lowercase());
    }
    let head = String::from_utf8(head).expect("heads are ASCII");
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let length = length.expect("it has a body").parse().expect("a length is a number");
    stream.read_exact(&mut vec![0; length]).await.expect("the body comes");
    Some(())
}

#[tokio::test]
async fn an_answer_is_the_same_wherever_its_bytes_are_cut() {
    for wire in WIRES {
        for size in [1, 2, 3, 7, 4096] {
            let world = world();
            let server = server(Arc::clone(&world.net), chunked(&answer(wire), size), 1).await;
            let provider = provider(wire, format!("http://{}", server.address));
            let outcome = ask(&world, provider).await;
            assert_eq!(outcome, (answer_events(), None), "{wire:?} in pieces of {size}");
        }
    }
}

/// Where the connection is used again, its end is seen in the middle of a request. A repetition that
/// was counted would be an event, and none is allowed here.
#[tokio::test]
async fn a_connection_that_was_given_up_is_replaced_at_once() {
    for wire in WIRES {
        let world = world();
        let server = server(Arc::clone(&world.net), sized(&answer(wire)), 2).await;
        let mut provider = provider(wire, format!("http://{}", server.address));
        provider.max_retries = 0;
        let models = models(&world, provider);
        for nth in 1..=6 {
            let outcome = ask_one_of(&models).await;
            assert_eq!(outcome, (answer_events(), None), "{wire:?}, answer {nth}");
            // The client takes its connection back in a task of its own, which has nothing to wait
            // for.
            for _ in 0..16 {
                tokio::task::yield_now().await;
            }
        }
        assert_eq!(server.forgotten.load(Ordering::Relaxed), 2, "{wire:?}: answers 3 and 6");
    }
}
