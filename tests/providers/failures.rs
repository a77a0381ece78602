//! Every failure of a model, on both wires, over real sockets; and the key is seen in none of them.

use std::net::SocketAddr;
use std::sync::Arc;

use nexus3::config::ProviderConfig;
use nexus3::provider::{Fault, FinishReason, ModelEvent};
use nexus3::world::Net;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_util::task::AbortOnDropHandle;
use wiremock::matchers::method;
use wiremock::{Mock, MockServer, ResponseTemplate};

use crate::support::{CANARY, Outcome, Reason, WIRES, Wire, ask, provider, record, world};

/// What asking a server comes to that gives these answers, one after another.
async fn answered(wire: Wire, answers: Vec<ResponseTemplate>) -> Outcome {
    let server = MockServer::start().await;
    for answer in answers {
        Mock::given(method("POST"))
            .respond_with(answer)
            .up_to_n_times(1)
            .expect(1)
            .mount(&server)
            .await;
    }
    let outcome = ask(&world(), provider(wire, server.uri())).await;
    server.verify().await;
    outcome
}

fn streamed(body: String) -> ResponseTemplate {
    ResponseTemplate::new(200).set_body_raw(body, "text/event-stream")
}

fn refused(status: u16) -> ResponseTemplate {
    let body = json!({"error": {"message": format!("the key {CANARY} is no good")}});
    ResponseTemplate::new(status).set_body_json(body)
}

fn hello() -> ModelEvent {
    ModelEvent::Text("Héllo".to_owned())
}

/// The fault, its status, how many attempts were made, and whether another turn may do better.
type Told = (Fault, Option<u16>, u32, bool);

fn told(outcome: &Outcome) -> Told {
    assert!(!format!("{outcome:?}").contains("canary"), "the key is shown: {outcome:?}");
    let error = outcome.1.as_ref().expect("the exchange failed");
    (error.fault, error.status, error.attempts, error.retryable)
}

fn texts((events, _): &Outcome) -> Vec<ModelEvent> {
    events.iter().filter(|event| !matches!(event, ModelEvent::Retry(_))).cloned().collect()
}

#[tokio::test]
async fn what_passes_is_repeated_until_it_is_over() {
    for wire in WIRES {
        for status in [429, 500, 502, 503, 504, 529] {
            let whole = streamed([wire.says("Héllo"), wire.ends(Reason::Done)].concat());
            let asks_for_time = refused(status).insert_header("retry-after", "0");
            let outcome = answered(wire, vec![asks_for_time, refused(status), whole]).await;
            let finished = ModelEvent::Finished(FinishReason::Stop);
            assert_eq!(texts(&outcome), [hello(), finished], "{wire:?} {status}");
            assert_eq!((outcome.0.len(), outcome.1), (4, None), "{wire:?} {status}");
        }
        let outcome = answered(wire, vec![refused(503); 4]).await;
        assert_eq!(told(&outcome), (Fault::Status, Some(503), 4, true), "{wire:?}");
    }
}

#[tokio::test]
async fn what_waiting_cannot_mend_is_told_at_once() {
    for wire in WIRES {
        for (status, fault) in [
            (400, Fault::Status),
            (401, Fault::Auth),
            (403, Fault::Auth),
            (404, Fault::Status),
            (302, Fault::Status),
        ] {
            let outcome = answered(wire, vec![refused(status)]).await;
            assert_eq!(told(&outcome), (fault, Some(status), 1, false), "{wire:?}");
        }
        let page = ResponseTemplate::new(200).set_body_raw("<html>", "text/html");
        let outcome = answered(wire, vec![page]).await;
        assert_eq!(told(&outcome), (Fault::BadJson, None, 1, false), "{wire:?}");
    }
}

#[tokio::test]
async fn a_wrong_answer_is_told_apart_and_what_was_said_is_kept() {
    for wire in WIRES {
        let said = || wire.says("Héllo");
        let cut = record(&json!("")).replace("\"\"", "{");
        for (rest, fault) in [
            (wire.errs(&format!("we lost {CANARY}")), Fault::ErrorInStream),
            (String::new(), Fault::Eof),
            (cut, Fault::BadJson),
        ] {
            let outcome = answered(wire, vec![streamed([said(), rest].concat())]).await;
            assert_eq!(told(&outcome), (fault, None, 1, true), "{wire:?}");
            assert_eq!(texts(&outcome), [hello()], "{wire:?}");
        }
        let outcome =
            answered(wire, vec![streamed([said(), wire.ends(Reason::Length)].concat())]).await;
        let finished = ModelEvent::Finished(FinishReason::Length);
        assert_eq!(outcome, (vec![hello(), finished], None), "{wire:?}");
    }
}

/// What a server does with each connection once it has the request.
#[derive(Clone, Copy)]
enum Then {
    Close,
    Hold,
}

/// A server that writes the same bytes to whoever asks.
struct Rude {
    address: SocketAddr,
    _serving: AbortOnDropHandle<()>,
}

async fn rude(net: Arc<dyn Net>, bytes: String, then: Then) -> Rude {
    let listener = net.bind(([127, 0, 0, 1], 0).into()).await;
    let mut listener = listener.expect("a test may listen");
    let address = listener.local_addr().expect("it listens");
    let serving = tokio::spawn(async move {
        let mut kept = Vec::new();
        loop {
            let mut stream = listener.accept().await.expect("a test may be connected to");
            let mut head = Vec::new();
            while !head.windows(4).any(|end| end == b"\r\n\r\n") {
                head.push(stream.read_u8().await.expect("a whole request comes"));
            }
            stream.write_all(bytes.as_bytes()).await.expect("the client reads");
            stream.flush().await.expect("the client reads");
            if let Then::Hold = then {
                kept.push(stream);
            }
        }
    });
    Rude { address, _serving: AbortOnDropHandle::new(serving) }
}

/// A provider that soon loses its patience.
fn hasty(wire: Wire, address: SocketAddr) -> ProviderConfig {
    ProviderConfig {
        max_retries: 1,
        request_timeout: 0.1,
        stream_idle_timeout: 0.1,
        ..provider(wire, format!("http://{address}"))
    }
}

async fn met(wire: Wire, bytes: &str, then: Then) -> Outcome {
    let world = world();
    let server = rude(Arc::clone(&world.net), bytes.to_owned(), then).await;
    let outcome = ask(&world, hasty(wire, server.address)).await;
    drop(server);
    outcome
}

#[tokio::test]
async fn a_connection_that_fails_is_told_by_where_it_did() {
    for wire in WIRES {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
                    transfer-encoding: chunked\r\n\r\n";
        let said = wire.says("Héllo");
        let piece = format!("{head}{:x}\r\n{said}\r\n", said.len());
        let silent = met(wire, "", Then::Hold).await;
        assert_eq!(told(&silent), (Fault::Timeout, None, 2, true), "{wire:?}");
        let closed = met(wire, "", Then::Close).await;
        assert_eq!(told(&closed), (Fault::Reset, None, 2, true), "{wire:?}");
        let mute = met(wire, head, Then::Hold).await;
        assert_eq!(told(&mute), (Fault::Stall, None, 2, true), "{wire:?}");
        for (then, fault) in [(Then::Hold, Fault::Stall), (Then::Close, Fault::Reset)] {
            let broken = met(wire, &piece, then).await;
            assert_eq!(told(&broken), (fault, None, 1, true), "{wire:?}");
            assert_eq!(texts(&broken), [hello()], "{wire:?}");
        }
    }
}

#[tokio::test]
async fn nobody_at_the_address_is_told_as_such() {
    let world = world();
    // A listener that is dropped leaves an address at which nobody is.
    let listener = world.net.bind(([127, 0, 0, 1], 0).into()).await.expect("a test may listen");
    let nobody = listener.local_addr().expect("it listens");
    drop(listener);
    for wire in WIRES {
        let outcome = ask(&world, hasty(wire, nobody)).await;
        assert_eq!(told(&outcome), (Fault::Connect, None, 2, true), "{wire:?}");
    }
}
