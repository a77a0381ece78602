//! A model that the tests play: every request to it gets one answer.

use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;
use wiremock::matchers::any;
use wiremock::{Mock, MockServer, ResponseTemplate};

use super::support::private_home;

/// A home whose configuration leads to a model that says `text` after a while.
pub async fn saying(text: &str, after: Duration) -> (MockServer, TempDir) {
    let model = MockServer::start().await;
    let record = |value: serde_json::Value| format!("data: {value}\n\n");
    let body = [
        record(json!({"choices": [{"delta": {"content": text}}]})),
        record(json!({"choices": [{"delta": {}, "finish_reason": "stop"}]})),
        "data: [DONE]\n\n".to_owned(),
    ];
    let answer = ResponseTemplate::new(200)
        .set_body_raw(body.concat(), "text/event-stream")
        .set_delay(after);
    Mock::given(any()).respond_with(answer).mount(&model).await;
    let home = private_home();
    let config = json!({"providers": {"local": {
        "type": "vllm", "base_url": format!("{}/v1", model.uri()), "models": {"m": {"id": "m-1"}},
    }}});
    std::fs::write(home.path().join("config.json"), config.to_string()).unwrap();
    (model, home)
}

/// Runs a test's commands beside the model, which needs the runtime to answer.
pub async fn beside<T: Send + 'static>(test: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(test).await.expect("the test does not panic")
}
