//! Answers that only a whole turn can cope with: the real server, and what its model is told next.

use std::path::{Path, PathBuf};

use nexus3::client::{ClientError, NexusClient};
use nexus3::config::{ModelConfig, ProviderConfig};
use nexus3::policy::ceiling::Yolo;
use nexus3::rpc::method::{CreateAgentParams, SendParams, SendResult};
use serde_json::{Value, json};
use wiremock::matchers::method;
use wiremock::{Mock, MockServer, ResponseTemplate};

use crate::server::Running;
use crate::support::{Acted, CANARY, Reason, WIRES, Wire, config, provider, world};

/// What a turn came to, and the requests that it made of its model.
struct Turn {
    outcome: Result<SendResult, ClientError>,
    requests: Vec<Value>,
}

/// One turn of an agent whose model gives these answers, one after another.
async fn turn(wire: Wire, answers: &[String]) -> Turn {
    let model = MockServer::start().await;
    for answer in answers {
        let answer = ResponseTemplate::new(200).set_body_raw(answer.clone(), "text/event-stream");
        let given = Mock::given(method("POST")).respond_with(answer).up_to_n_times(1);
        given.expect(1).mount(&model).await;
    }
    let sizes = ModelConfig { context_window: 10_000, max_output: 100, ..ModelConfig::of("m-1") };
    let provider =
        ProviderConfig { models: [("m".to_owned(), sizes)].into(), ..provider(wire, model.uri()) };
    let server = Running::start(world(), config(provider), Yolo::Refused).await;
    let outcome = told(&server.client).await;
    server.client.shutdown_server().await.expect("it stops");
    let home = server.stopped().await;
    assert_eq!(files_with(CANARY, home.path()), Vec::<PathBuf>::new(), "{wire:?}");
    assert!(!format!("{outcome:?}").contains(CANARY), "{outcome:?}");
    model.verify().await;
    let requests = model.received_requests().await.expect("they are kept");
    let body = |request: &wiremock::Request| request.body_json().expect("a request is JSON");
    Turn { outcome, requests: requests.iter().map(body).collect() }
}

async fn told(client: &NexusClient) -> Result<SendResult, ClientError> {
    let agent = client.create_agent(&CreateAgentParams::default()).await;
    let agent = agent.expect("it is created").agent_id;
    let send = SendParams { content: "Echo!".to_owned(), ..SendParams::default() };
    client.send(&agent, &send).await
}

/// The files below a directory that hold this text.
fn files_with(text: &str, dir: &Path) -> Vec<PathBuf> {
    let (mut dirs, mut found) = (vec![dir.to_owned()], Vec::new());
    while let Some(dir) = dirs.pop() {
        for entry in dir.read_dir().expect("it is a directory") {
            let path = entry.expect("it is read").path();
            if path.is_dir() {
                dirs.push(path);
            } else if holds(&std::fs::read(&path).expect("it is read"), text.as_bytes()) {
                found.push(path);
            }
        }
    }
    found
}

fn holds(bytes: &[u8], text: &[u8]) -> bool {
    bytes.windows(text.len()).any(|part| part == text)
}

/// The answer of a turn that ended well, and the calls that its last request told of.
fn acted(wire: Wire, turn: &Turn) -> (String, Acted) {
    let outcome = turn.outcome.as_ref().expect("the turn ends well");
    let SendResult::Completed { content, .. } = outcome else { panic!("{outcome:?}") };
    (content.clone(), wire.acted(turn.requests.last().expect("the model was asked")))
}

fn words(wire: Wire) -> String {
    [wire.says("Héllo"), wire.ends(Reason::Done)].concat()
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(id, text)| ((*id).to_owned(), (*text).to_owned())).collect()
}

#[tokio::test]
async fn calls_in_pieces_are_run_and_their_results_told() {
    for wire in WIRES {
        let calls = [
            wire.asks(0, Some("c1"), &["{\"mess", "age\":", "\"Ä\"}"]),
            wire.asks(1, Some("c2"), &["{\"message\":\"b\"}"]),
            wire.ends(Reason::Calls),
        ];
        let turn = turn(wire, &[calls.concat(), words(wire)]).await;
        let (content, acted) = acted(wire, &turn);
        assert_eq!(content, "Héllo", "{wire:?}");
        let calls = pairs(&[("c1", "{\"message\":\"Ä\"}"), ("c2", "{\"message\":\"b\"}")]);
        assert_eq!(acted, Acted { calls, results: pairs(&[("c1", "Ä"), ("c2", "b")]) }, "{wire:?}");
    }
}

#[tokio::test]
async fn missing_and_duplicate_ids_are_replaced_by_our_own() {
    for wire in WIRES {
        for ids in [[None, None], [Some("c1"), Some("c1")], [Some(""), None]] {
            let calls = [
                wire.asks(0, ids[0], &["{\"message\":\"a\"}"]),
                wire.asks(1, ids[1], &["{\"message\":\"b\"}"]),
                wire.ends(Reason::Calls),
            ];
            let turn = turn(wire, &[calls.concat(), words(wire)]).await;
            let (content, acted) = acted(wire, &turn);
            assert_eq!(content, "Héllo", "{wire:?} {ids:?}");
            let [(first, _), (second, _)] = acted.calls.as_slice() else { panic!("{acted:?}") };
            assert!(!first.is_empty() && !second.is_empty() && first != second, "{acted:?}");
            assert_eq!(acted.results, pairs(&[(first, "a"), (second, "b")]), "{wire:?} {ids:?}");
        }
    }
}

#[tokio::test]
async fn arguments_that_are_no_object_come_back_with_guidance() {
    for wire in WIRES {
        for arguments in ["[1]", "{\"message\":", "\"a\""] {
            let call = [wire.asks(0, Some("c1"), &[arguments]), wire.ends(Reason::Calls)].concat();
            let turn = turn(wire, &[call, words(wire)]).await;
            let (content, acted) = acted(wire, &turn);
            assert_eq!(content, "Héllo", "{wire:?} {arguments}");
            let [(id, guidance)] = acted.results.as_slice() else { panic!("{acted:?}") };
            assert_eq!(id, "c1", "{wire:?} {arguments}");
            assert!(guidance.contains("must be one JSON object"), "{wire:?}: {guidance}");
        }
    }
}

#[tokio::test]
async fn an_empty_answer_is_asked_for_again_and_then_told() {
    for wire in WIRES {
        let empty = || wire.ends(Reason::Done);
        let mended = turn(wire, &[empty(), words(wire)]).await;
        let outcome = mended.outcome.expect("the turn ends well");
        assert!(
            matches!(&outcome, SendResult::Completed { content, .. } if content == "Héllo"),
            "{wire:?}: {outcome:?}"
        );
        assert_eq!(mended.requests[0], mended.requests[1], "{wire:?}: it is asked the same");

        let failed = turn(wire, &[empty(), empty()]).await;
        let Err(ClientError::Rpc { error }) = failed.outcome else { panic!("{wire:?}") };
        let data = json!({"kind": "provider", "fault": "empty", "attempts": 2, "retryable": true});
        assert_eq!((error.code, error.data), (-32000, Some(data)), "{wire:?}");
    }
}
