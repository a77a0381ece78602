//! Whole exchanges with a scripted server, in virtual time.

use std::time::Duration;

use secrecy::SecretString;
use tokio::time::Instant;

use super::*;
use crate::config::{ProviderConfig, ProviderKind};
use crate::id::AgentId;
use crate::limits::{ERROR_BODY_BYTES_MAX, SSE_LINE_BYTES_MAX};
use crate::message::{Message, Usage};
use crate::provider::anthropic::Messages;
use crate::provider::defaults::completions;
use crate::provider::key::{Key, KeySource, Redactor};
use crate::provider::openai::Completions;
use crate::provider::replay::{Piece, Replay, Script, seams};
use crate::provider::{Fault, FinishReason};
use crate::world::HttpFault;

const CANARY: &str = "sk-canary-0123456789";
const HELLO: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"Héllo\"}}]}\r\n\r\n";
const FINISH: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
const USAGE: &str =
    ": hm\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":1}}\n\n";
const DONE: &str = "data: [DONE]\n\n";

type Outcome = (Vec<ModelEvent>, Option<ProviderError>);

fn provider(replay: &Arc<Replay>) -> Remote {
    patient(replay, 0)
}

/// A provider that repeats what fails in passing.
fn patient(replay: &Arc<Replay>, max_retries: u32) -> Remote {
    let config = ProviderConfig { max_retries, ..ProviderConfig::of(ProviderKind::Vllm) };
    let key = Key {
        value: SecretString::from(CANARY),
        source: KeySource::Variable("SOME_KEY".to_owned()),
    };
    let defaults = completions("http://localhost:8000/v1", None);
    let mut secrets = Redactor::default();
    secrets.hide_key(CANARY);
    let endpoint = Endpoint::new("p", &config, defaults, Some(key), Arc::new(secrets)).unwrap();
    Remote::new(seams(replay.clone()), endpoint, Arc::new(Completions::of(&config)))
}

fn request() -> ModelRequest {
    ModelRequest {
        agent: AgentId::parse("main").unwrap(),
        model: "m".to_owned(),
        system: "".into(),
        messages: [Arc::new(Message::User { content: "hi".into(), meta: None })]
            .into_iter()
            .collect(),
        tools: Arc::new([]),
        output_tokens_max: 10,
        reasoning: false,
    }
}

async fn outcome(script: Script) -> Outcome {
    played(&provider(&Replay::new([script]))).await
}

async fn played(provider: &Remote) -> Outcome {
    let mut stream = provider.stream(request());
    let mut events = Vec::new();
    while let Some(item) = stream.next().await {
        match item {
            Ok(event) => events.push(event),
            Err(error) => {
                assert!(stream.next().await.is_none(), "nothing follows an error");
                return (events, Some(error));
            }
        }
    }
    assert!(stream.next().await.is_none(), "an ended stream stays ended");
    (events, None)
}

fn streamed(body: impl IntoIterator<Item = Piece>) -> Script {
    Script::Answer {
        status: 200,
        content_type: "text/event-stream",
        body: body.into_iter().collect(),
    }
}

fn bytes(text: &str) -> Piece {
    Piece::Bytes(text.as_bytes().to_vec())
}

fn refused(status: u16, body: &str) -> Script {
    Script::Answer { status, content_type: "application/json", body: vec![bytes(body)] }
}

fn hello() -> ModelEvent {
    ModelEvent::Text("Héllo".to_owned())
}

fn whole() -> Outcome {
    let usage = ModelEvent::Usage(Usage { input_tokens: 3, output_tokens: 1 });
    let finished = ModelEvent::Finished(FinishReason::Stop);
    (vec![hello(), usage, finished], None)
}

fn failure(fault: Fault, retryable: bool, message: &str) -> ProviderError {
    ProviderError {
        fault,
        status: None,
        attempts: 1,
        retryable,
        message: format!("provider `p` {message}"),
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_the_same_wherever_its_bytes_are_cut() {
    let body = [HELLO, FINISH, USAGE, DONE].concat();
    for piece_bytes in [1, 2, 3, 7, 64, body.len()] {
        let pieces = body.as_bytes().chunks(piece_bytes);
        let pieces = pieces.map(|piece| Piece::Bytes(piece.to_vec()));
        assert_eq!(outcome(streamed(pieces)).await, whole());
    }
}

#[tokio::test(start_paused = true)]
async fn a_whole_answer_needs_no_closing_record() {
    for end in [bytes(""), Piece::Fault(HttpFault::Broken), Piece::Silence] {
        let body = [bytes(HELLO), bytes(FINISH), bytes(USAGE), end];
        assert_eq!(outcome(streamed(body)).await, whole());
    }
}

#[tokio::test(start_paused = true)]
async fn the_request_goes_to_the_endpoint_with_the_key() {
    let replay = Replay::new([streamed([bytes(FINISH)])]);
    let mut stream = provider(&replay).stream(request());
    assert!(replay.asked().is_empty(), "nothing is sent before the first poll");
    while stream.next().await.is_some() {}
    let asked = replay.asked();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].method(), http::Method::POST);
    assert_eq!(asked[0].uri(), "http://localhost:8000/v1/chat/completions");
    assert_eq!(asked[0].headers()["authorization"], format!("Bearer {CANARY}"));
    let body: serde_json::Value = serde_json::from_slice(asked[0].body()).unwrap();
    assert_eq!(body["messages"][0]["content"], "hi");
}

#[tokio::test(start_paused = true)]
async fn failures_before_the_answer_are_told_apart() {
    let before = |script| async { outcome(script).await };
    let connect = failure(Fault::Connect, true, "cannot be reached");
    let reset = failure(Fault::Reset, true, "closed the connection before it answered");
    let late = failure(Fault::Timeout, true, "did not answer within 120 s");
    let fault = Script::Fault;
    assert_eq!(before(fault(HttpFault::Connect)).await, (vec![], Some(connect)));
    assert_eq!(before(fault(HttpFault::Reset)).await, (vec![], Some(reset)));
    let started = Instant::now();
    assert_eq!(before(Script::Silence).await, (vec![], Some(late)));
    assert_eq!(started.elapsed(), Duration::from_mins(2));
}

#[tokio::test(start_paused = true)]
async fn failures_within_the_answer_are_told_apart_and_keep_the_text() {
    let after = |rest: Vec<Piece>| async {
        let body = [bytes(HELLO)].into_iter().chain(rest);
        let (events, error) = outcome(streamed(body)).await;
        assert_eq!(events, [hello()]);
        error.expect("the stream broke")
    };
    assert_eq!(
        after(vec![]).await,
        failure(Fault::Eof, true, "ended its answer without a finish reason")
    );
    assert_eq!(
        after(vec![bytes(DONE)]).await,
        failure(Fault::Eof, true, "ended its answer without a finish reason")
    );
    assert_eq!(
        after(vec![Piece::Fault(HttpFault::Broken)]).await,
        failure(Fault::Reset, true, "broke the connection in the middle of its answer")
    );
    assert_eq!(
        after(vec![bytes(""), Piece::Silence]).await,
        failure(Fault::Stall, true, "sent nothing for 60 s in the middle of its answer")
    );
    assert_eq!(
        after(vec![bytes("data: {\"choices\": [\n\n")]).await,
        failure(Fault::BadJson, true, "sent malformed JSON in its answer")
    );
    let error = "data: {\"error\": {\"message\": \"overloaded\", \"code\": 400}}\n\n";
    assert_eq!(
        after(vec![bytes(error)]).await,
        ProviderError {
            status: Some(400),
            ..failure(Fault::ErrorInStream, true, "reported an error in its answer: overloaded")
        }
    );
}

#[tokio::test(start_paused = true)]
async fn a_status_says_whether_asking_again_may_help() {
    for (status, retryable) in [
        (400, false),
        (404, false),
        (418, false),
        (429, true),
        (500, true),
        (501, false),
        (502, true),
        (503, true),
        (504, true),
        (529, true),
        (301, false),
    ] {
        let script = refused(status, "{\"error\": {\"message\": \"so\\nit is\"}}");
        let message = format!("answered HTTP {status}: so it is");
        let expected =
            ProviderError { status: Some(status), ..failure(Fault::Status, retryable, &message) };
        assert_eq!(outcome(script).await, (vec![], Some(expected)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_key_is_named_by_its_source_and_never_shown() {
    for status in [401, 403] {
        let quoted = format!(
            "{{\"error\": {{\"message\": \"Incorrect key {CANARY}, also as sk-canary-*6789\"}}}}"
        );
        let message = format!(
            "refused access (HTTP {status}; check the key in the variable `SOME_KEY`): \
             Incorrect key [redacted], also as [redacted]"
        );
        let expected =
            ProviderError { status: Some(status), ..failure(Fault::Auth, false, &message) };
        assert_eq!(outcome(refused(status, &quoted)).await, (vec![], Some(expected)));
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_body_that_is_slow_long_or_no_json_is_left_out() {
    let long = format!("{{\"error\": \"{}\"}}", "x".repeat(ERROR_BODY_BYTES_MAX));
    for body in [
        vec![bytes("{\"error\": "), Piece::Silence],
        vec![bytes("{\"error\": "), Piece::Fault(HttpFault::Broken)],
        vec![bytes(&long)],
        vec![bytes("<html>")],
        vec![],
    ] {
        let script = Script::Answer { status: 500, content_type: "text/html", body };
        let expected = ProviderError {
            status: Some(500),
            ..failure(Fault::Status, true, "answered HTTP 500")
        };
        assert_eq!(outcome(script).await, (vec![], Some(expected)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_success_that_is_no_stream_is_an_error() {
    let error = failure(Fault::ErrorInStream, true, "reported an error in its answer: no room");
    let script = refused(200, "{\"error\": \"no room\"}");
    assert_eq!(outcome(script).await, (vec![], Some(error)));
    let page = failure(Fault::BadJson, false, "answered with something that is no event stream");
    assert_eq!(outcome(refused(200, "{\"id\": 1}")).await, (vec![], Some(page)));
}

#[tokio::test(start_paused = true)]
async fn a_record_over_the_limit_ends_the_answer() {
    let endless = Piece::Bytes(vec![b'x'; SSE_LINE_BYTES_MAX / 2]);
    let body = [bytes(HELLO), endless.clone(), endless.clone(), endless];
    let (events, error) = outcome(streamed(body)).await;
    assert_eq!(events, [hello()]);
    let too_long = "sent a record of more than 4194304 bytes in its answer";
    assert_eq!(error, Some(failure(Fault::BadJson, true, too_long)));
}

fn told(attempt: u32, after_ms: u64, message: &str) -> ModelEvent {
    ModelEvent::Retry(Retry {
        attempt,
        after: Duration::from_millis(after_ms),
        reason: format!("provider `p` {message}"),
    })
}

fn answered() -> Script {
    streamed([bytes(HELLO), bytes(FINISH), bytes(USAGE), bytes(DONE)])
}

#[tokio::test(start_paused = true)]
async fn what_fails_in_passing_is_repeated_with_growing_waits() {
    let silent = streamed([Piece::Silence]);
    let broken = streamed([Piece::Fault(HttpFault::Broken)]);
    let scripts = [refused(503, ""), Script::Fault(HttpFault::Connect), broken, answered()];
    let begun = Instant::now();
    let (events, error) = played(&patient(&Replay::new(scripts), 3)).await;
    let (answer, _) = whole();
    assert_eq!(error, None);
    let told_first = [
        told(1, 500, "answered HTTP 503"),
        told(2, 1000, "cannot be reached"),
        told(3, 2000, "broke the connection in the middle of its answer"),
    ];
    assert_eq!(events, [told_first.to_vec(), answer].concat());
    assert_eq!(begun.elapsed(), Duration::from_millis(500 + 1000 + 2000));
    // Time-outs count too, before the headers and before the first content.
    let (events, error) = played(&patient(&Replay::new([Script::Silence, silent]), 1)).await;
    assert_eq!(events.len(), 1);
    let stalled = failure(Fault::Stall, true, "sent nothing for 60 s in the middle of its answer");
    assert_eq!(error, Some(ProviderError { attempts: 2, ..stalled }));
}

#[tokio::test(start_paused = true)]
async fn what_was_partly_passed_on_is_never_repeated() {
    let after_content = |end: Piece| streamed([bytes(HELLO), end]);
    for end in [Piece::Silence, Piece::Fault(HttpFault::Broken), bytes("data: {\n\n")] {
        let replay = Replay::new([after_content(end), answered()]);
        let (events, error) = played(&patient(&replay, 3)).await;
        assert_eq!(events, [hello()]);
        let error = error.expect("the answer broke");
        assert_eq!((error.attempts, error.retryable), (1, true));
        assert_eq!(replay.asked().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn what_waiting_cannot_mend_is_not_repeated() {
    let no_json = || streamed([bytes("data: {\n\n")]);
    let no_finish = || streamed([bytes(DONE)]);
    for script in [refused(400, ""), refused(401, ""), refused(404, ""), no_json(), no_finish()] {
        let (events, error) = played(&patient(&Replay::new([script]), 3)).await;
        assert_eq!((events, error.expect("it failed").attempts), (Vec::new(), 1));
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_in_place_of_the_answer_is_repeated_where_it_says_that_it_passes() {
    let busy = streamed([bytes("data: {\"error\":{\"message\":\"busy\",\"code\":429}}\n\n")]);
    let (events, error) = played(&patient(&Replay::new([busy, answered()]), 3)).await;
    assert_eq!(events[0], told(1, 500, "reported an error in its answer: busy"));
    assert_eq!((events.len(), error), (4, None));
    let odd = streamed([bytes("data: {\"error\":{\"message\":\"odd\"}}\n\n")]);
    let (events, error) = played(&patient(&Replay::new([odd]), 3)).await;
    assert_eq!((events, error.expect("it failed").attempts), (Vec::new(), 1));
}

#[tokio::test(start_paused = true)]
async fn repetition_ends_at_its_bound() {
    let scripts = (0..3).map(|_| refused(500, ""));
    let (events, error) = played(&patient(&Replay::new(scripts), 2)).await;
    assert_eq!(events.len(), 2);
    let expected = ProviderError {
        status: Some(500),
        attempts: 3,
        ..failure(Fault::Status, true, "answered HTTP 500")
    };
    assert_eq!(error, Some(expected));
}

#[tokio::test(start_paused = true)]
async fn a_kept_connection_that_was_given_up_costs_no_attempt() {
    let stale = || Script::Fault(HttpFault::Stale);
    let replay = Replay::new([stale(), answered()]);
    let begun = Instant::now();
    assert_eq!(played(&patient(&replay, 0)).await, whole());
    assert_eq!(begun.elapsed(), Duration::ZERO, "nobody waits for a fresh one");
    let asked = replay.asked();
    let connections: Vec<_> = asked.iter().map(Connection::of).collect();
    assert_eq!(connections, [Connection::Kept, Connection::Fresh]);
    let (events, error) = played(&patient(&Replay::new([stale(), stale()]), 0)).await;
    let expected = failure(Fault::Reset, true, "closed a kept connection before it answered");
    assert_eq!((events, error), (Vec::new(), Some(expected)), "once is enough");
}

/// An answer of each wire with text, a thought, a call and the counts of its tokens.
fn whole_answers() -> [(Arc<dyn Wire>, String); 2] {
    let completions = [
        r#"{"choices":[{"delta":{"reasoning":"Hm, 世."}}]}"#,
        r#"{"choices":[{"delta":{"content":"Grüße 🌍"}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"read","arguments":"{\"p\":\"ß\"}"}}]}}]}"#,
        r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1}}"#,
        "[DONE]",
    ];
    let messages = [
        r#"{"type":"message_start","message":{"usage":{"input_tokens":3}}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm, 世."}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Grüße 🌍"}}"#,
        r#"{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"a","name":"read","input":{}}}"#,
        r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"p\":\"ß\"}"}}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":1}}"#,
        r#"{"type":"message_stop"}"#,
    ];
    let body = |records: &[&str]| -> String {
        // Every way to end a line, and lines that say nothing.
        let ends = ["\n\n", "\r\n\r\n", "\r\r", "\n: ping\n\n"];
        let framed = records.iter().zip(ends.iter().cycle());
        let framed: Vec<String> =
            framed.map(|(data, end)| format!("event: e\ndata: {data}{end}")).collect();
        framed.concat()
    };
    let of = |kind| ProviderConfig::of(kind);
    [
        (Arc::new(Completions::of(&of(ProviderKind::Vllm))), body(&completions)),
        (Arc::new(Messages::of(&of(ProviderKind::Anthropic))), body(&messages)),
    ]
}

async fn read_in(wire: Arc<dyn Wire>, pieces: Vec<Piece>) -> Outcome {
    let config = ProviderConfig::of(ProviderKind::Vllm);
    let defaults = completions("http://localhost:8000/v1", None);
    let endpoint = Endpoint::new("p", &config, defaults, None, Arc::default()).unwrap();
    played(&Remote::new(seams(Replay::new([streamed(pieces)])), endpoint, wire)).await
}

proptest::proptest! {
    #[test]
    fn any_split_of_the_bytes_gives_the_same_events(cuts in proptest::collection::vec(1_usize..40, 1..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let expected = vec![
            ModelEvent::Reasoning("Hm, 世.".to_owned()),
            ModelEvent::Text("Grüße 🌍".to_owned()),
            ModelEvent::ToolCallStarted { index: 0, id: "a".to_owned(), name: "read".to_owned() },
            ModelEvent::ToolCallDelta { index: 0, arguments: "{\"p\":\"ß\"}".to_owned() },
            ModelEvent::Usage(Usage { input_tokens: 3, output_tokens: 1 }),
            ModelEvent::Finished(FinishReason::ToolCalls),
        ];
        for (wire, body) in whole_answers() {
            let mut rest = body.as_bytes();
            let mut pieces = Vec::new();
            for cut in cuts.iter().cycle() {
                let (piece, more) = rest.split_at((*cut).min(rest.len()));
                pieces.push(Piece::Bytes(piece.to_vec()));
                rest = more;
                if rest.is_empty() {
                    break;
                }
            }
            let outcome = runtime.block_on(read_in(wire, pieces));
            proptest::prop_assert_eq!(outcome, (expected.clone(), None));
        }
    }
}
