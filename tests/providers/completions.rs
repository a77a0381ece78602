//! The chat completions wire against a real HTTP server: whole requests, compared byte for byte.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::StreamExt;
use nexus3::config::{Config, ModelConfig, ProviderConfig, ProviderKind};
use nexus3::id::AgentId;
use nexus3::message::{Message, ToolDefinition, Usage};
use nexus3::provider::{Fault, FinishReason, ModelEvent, ModelRequest, Models, ProviderError};
use nexus3::world::real;
use serde_json::{Value, json};
use wiremock::matchers::{body_json, header, method, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

const CANARY: &str = "sk-canary-0123456789";

/// What one request to a server that gives this answer comes to.
async fn outcome(answer: ResponseTemplate) -> (Vec<ModelEvent>, Option<ProviderError>) {
    let server = MockServer::start().await;
    Mock::given(method("POST"))
        .and(path("/v1/chat/completions"))
        .and(header("authorization", format!("Bearer {CANARY}")))
        .and(header("x-agent", "agent main"))
        .and(body_json(expected_body()))
        .respond_with(answer)
        .expect(1)
        .mount(&server)
        .await;
    let mut key_file = tempfile::NamedTempFile::new().expect("a test may write a file");
    writeln!(key_file, "{CANARY}").expect("a test may write a file");
    let config = config(format!("{}/v1", server.uri()), key_file.path().to_owned());
    let world = real::world().expect("a test runs in a runtime");
    let models = Models::new(&world, &config, None).expect("the configuration is sound");
    let model = models.resolve(None).expect("there is a default");
    let mut stream = model.provider.stream(ModelRequest {
        agent: AgentId::parse("main").expect("it is well formed"),
        model: model.id.to_string(),
        system: "Be brief.".into(),
        messages: [Arc::new(Message::User { content: "hi".into(), meta: None })]
            .into_iter()
            .collect(),
        tools: Arc::new([ToolDefinition {
            name: "read".into(),
            description: "Reads.".into(),
            parameters: json!({"type": "object"}).into(),
        }]),
        output_tokens_max: model.output_tokens_max,
        reasoning: false,
    });
    let mut events = Vec::new();
    while let Some(item) = stream.next().await {
        match item {
            Ok(event) => events.push(event),
            Err(error) => return (events, Some(error)),
        }
    }
    (events, None)
}

fn config(base_url: String, key_file: PathBuf) -> Config {
    let model =
        ModelConfig { id: "m-1".to_owned(), context_window: 1000, max_output: 7, reasoning: false };
    let provider = ProviderConfig {
        base_url: Some(base_url),
        api_key_file: Some(key_file),
        headers: [("X-Agent".to_owned(), "agent ${agent_id}".into())].into(),
        max_retries: 0,
        request_timeout: 10.0,
        stream_idle_timeout: 10.0,
        models: [("m".to_owned(), model)].into(),
        ..ProviderConfig::of(ProviderKind::Vllm)
    };
    Config { providers: [("wire".to_owned(), provider)].into(), ..Config::default() }
}

fn expected_body() -> Value {
    json!({
        "model": "m-1",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "hi"},
        ],
        "tools": [{"type": "function", "function": {
            "name": "read",
            "description": "Reads.",
            "parameters": {"type": "object"},
        }}],
        "stream": true,
        "stream_options": {"include_usage": true},
        "max_tokens": 7,
    })
}

fn streamed(records: &[&str]) -> ResponseTemplate {
    let body = format!("data: {}\n\n", records.join("\n\ndata: "));
    ResponseTemplate::new(200).set_body_raw(body, "text/event-stream")
}

fn failure(fault: Fault, status: Option<u16>, retryable: bool, message: &str) -> ProviderError {
    ProviderError {
        fault,
        status,
        attempts: 1,
        retryable,
        message: format!("provider `wire` {message}"),
    }
}

#[tokio::test]
async fn a_streamed_answer_arrives_whole() {
    let answer = streamed(&[
        r#"{"choices":[{"delta":{"role":"assistant","content":"Hé"}}]}"#,
        r#"{"choices":[{"delta":{"content":"llo"}}]}"#,
        r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2}}"#,
        "[DONE]",
    ]);
    let expected = vec![
        ModelEvent::Text("Hé".to_owned()),
        ModelEvent::Text("llo".to_owned()),
        ModelEvent::Usage(Usage { input_tokens: 5, output_tokens: 2 }),
        ModelEvent::Finished(FinishReason::Stop),
    ];
    assert_eq!(outcome(answer).await, (expected, None));
}

#[tokio::test]
async fn tool_calls_arrive_in_pieces() {
    let answer = streamed(&[
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"read","arguments":"{\"p\""}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]}}]}"#,
        r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#,
        "[DONE]",
    ]);
    let delta =
        |arguments: &str| ModelEvent::ToolCallDelta { index: 0, arguments: arguments.to_owned() };
    let expected = vec![
        ModelEvent::ToolCallStarted { index: 0, id: "a".to_owned(), name: "read".to_owned() },
        delta("{\"p\""),
        delta(":1}"),
        ModelEvent::Finished(FinishReason::ToolCalls),
    ];
    assert_eq!(outcome(answer).await, (expected, None));
}

#[tokio::test]
async fn an_error_status_is_reported_with_its_explanation() {
    let body = json!({"error": {"message": "slow down"}});
    let answer = ResponseTemplate::new(429).set_body_json(body);
    let expected = failure(Fault::Status, Some(429), true, "answered HTTP 429: slow down");
    assert_eq!(outcome(answer).await, (vec![], Some(expected)));
}

#[tokio::test]
async fn a_refused_key_is_reported_and_not_shown() {
    let body = json!({"error": {"message": format!("no such key: {CANARY}")}});
    let answer = ResponseTemplate::new(401).set_body_json(body);
    let expected = failure(
        Fault::Auth,
        Some(401),
        false,
        "refused access (HTTP 401; check the key in its `api_key_file`): no such key: [redacted]",
    );
    assert_eq!(outcome(answer).await, (vec![], Some(expected)));
}

#[tokio::test]
async fn malformed_json_is_reported_after_the_text_before_it() {
    let answer = streamed(&[r#"{"choices":[{"delta":{"content":"Hi"}}]}"#, "{oops"]);
    let expected = failure(Fault::BadJson, None, true, "sent malformed JSON in its answer");
    let text = vec![ModelEvent::Text("Hi".to_owned())];
    assert_eq!(outcome(answer).await, (text, Some(expected)));
}

#[tokio::test]
async fn an_early_end_is_no_answer() {
    let answer = streamed(&[r#"{"choices":[{"delta":{"content":"Hi"}}]}"#]);
    let message = "ended its answer without a finish reason";
    let expected = failure(Fault::Eof, None, true, message);
    let text = vec![ModelEvent::Text("Hi".to_owned())];
    assert_eq!(outcome(answer).await, (text, Some(expected)));
}
