//! The messages wire against a real HTTP server: a whole request, compared byte for byte, and an
//! answer with everything that can stand in one.

use nexus3::message::Usage;
use nexus3::provider::{FinishReason, ModelEvent};
use serde_json::{Value, json};
use wiremock::matchers::{body_json, header, method, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

use crate::support::{CANARY, Reason, Wire, ask, provider, record, world};

/// The end of what does not change is marked, for the provider to keep until the next request.
fn expected_body() -> Value {
    let kept = json!({"type": "ephemeral"});
    json!({
        "model": "m-1",
        "max_tokens": 7,
        "system": [{"type": "text", "text": "Be brief.", "cache_control": kept}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": kept}]},
        ],
        "stream": true,
    })
}

fn answer() -> String {
    let wire = Wire::Messages;
    let usage = json!({"input_tokens": 5, "cache_read_input_tokens": 2, "output_tokens": 1});
    let thought = json!({"type": "thinking_delta", "thinking": "Hm."});
    let started = json!({"type": "message_start", "message": {"usage": usage}});
    let thinks = json!({"type": "content_block_delta", "index": 0, "delta": thought});
    let counted = json!({"type": "message_delta", "delta": {}, "usage": {"output_tokens": 9}});
    [
        record(&started),
        record(&json!({"type": "ping"})),
        record(&thinks),
        wire.says("Hé"),
        wire.asks(2, Some("c1"), &["{\"message\"", ":\"x\"}"]),
        record(&counted),
        wire.ends(Reason::Calls),
    ]
    .concat()
}

#[tokio::test]
async fn a_request_is_made_whole_and_a_streamed_answer_arrives_whole() {
    let server = MockServer::start().await;
    Mock::given(method("POST"))
        .and(path("/v1/messages"))
        .and(header("x-api-key", CANARY))
        .and(body_json(expected_body()))
        .respond_with(ResponseTemplate::new(200).set_body_raw(answer(), "text/event-stream"))
        .expect(1)
        .mount(&server)
        .await;
    let delta =
        |arguments: &str| ModelEvent::ToolCallDelta { index: 0, arguments: arguments.to_owned() };
    let expected = vec![
        ModelEvent::Reasoning("Hm.".to_owned()),
        ModelEvent::Text("Hé".to_owned()),
        ModelEvent::ToolCallStarted { index: 0, id: "c1".to_owned(), name: "echo".to_owned() },
        delta("{\"message\""),
        delta(":\"x\"}"),
        ModelEvent::Usage(Usage { input_tokens: 7, output_tokens: 9 }),
        ModelEvent::Finished(FinishReason::ToolCalls),
    ];
    let outcome = ask(&world(), provider(Wire::Messages, server.uri())).await;
    assert_eq!(outcome, (expected, None));
}
