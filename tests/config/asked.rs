//! What the keys of a provider do: how the provider is asked by an agent of a server that was started
//! with them. The provider is one that the test plays.

use std::fs;

use serde_json::{Value, json};
use wiremock::matchers::any;
use wiremock::{Mock, MockServer, Request, ResponseTemplate};

use crate::support::Person;

const ANSWER: &str = "data: {\"choices\": [{\"delta\": {\"content\": \"Hi\"}}]}\n\n\
    data: {\"choices\": [{\"delta\": {}, \"finish_reason\": \"stop\"}]}\n\n\
    data: [DONE]\n\n";

/// The object with more members, or others.
fn with(mut object: Value, members: &Value) -> Value {
    for (name, value) in members.as_object().unwrap() {
        object[name] = value.clone();
    }
    object
}

/// A server of somebody who configured a provider so, asked once by the agent `scout`; every request
/// that the provider got. `MY_KEY` is a variable of that person's.
async fn requests(provider: &Value, answer: ResponseTemplate) -> Vec<Request> {
    let model = MockServer::start().await;
    Mock::given(any()).respond_with(answer).mount(&model).await;
    let usual = json!({
        "type": "vllm", "base_url": format!("{}/v1", model.uri()), "max_retries": 0,
        "models": {"m": {"id": "m-1"}},
    });
    let providers = json!({"p": with(usual, provider)});
    let mut person = Person::new();
    person.set("MY_KEY", "key-of-the-variable");
    person.write_home("config.json", &json!({"providers": providers}).to_string());
    let asked = tokio::task::spawn_blocking(move || {
        let server = person.serve(&[]);
        assert_eq!(server.rpc(&person, &["create", "scout"]).code, 0);
        server.rpc(&person, &["send", "scout", "Hello"])
    });
    asked.await.unwrap();
    model.received_requests().await.unwrap()
}

/// The one request of a provider that answers as it should.
async fn request(provider: Value) -> Request {
    let answer = ResponseTemplate::new(200).set_body_raw(ANSWER, "text/event-stream");
    let mut requests = requests(&provider, answer).await;
    assert_eq!(requests.len(), 1);
    requests.remove(0)
}

fn header<'a>(request: &'a Request, name: &str) -> Option<&'a str> {
    request.headers.get(name).map(|value| value.to_str().unwrap())
}

fn body(request: &Request) -> Value {
    serde_json::from_slice(&request.body).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_type_and_the_base_url_say_where_it_is_asked() {
    assert_eq!(request(json!({})).await.url.path(), "/v1/chat/completions");
    let messages = request(json!({"type": "anthropic", "api_key_env": "MY_KEY"})).await;
    assert_eq!(messages.url.path(), "/v1/messages");
    assert_eq!(header(&messages, "x-api-key"), Some("key-of-the-variable"));
    let azure = json!({
        "type": "azure", "api_key_env": "MY_KEY", "deployment": "mine", "api_version": "2030-01-01",
    });
    let url = request(azure).await.url;
    assert!(url.path().ends_with("/openai/deployments/mine/chat/completions"), "{url}");
    assert_eq!(url.query(), Some("api-version=2030-01-01"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_sent_as_it_is_configured() {
    let keyless = request(json!({})).await;
    assert_eq!(header(&keyless, "authorization"), None);
    let bearer = request(json!({"api_key_env": "MY_KEY"})).await;
    assert_eq!(header(&bearer, "authorization"), Some("Bearer key-of-the-variable"));
    for method in ["api-key", "x-api-key"] {
        let keyed = request(json!({"api_key_env": "MY_KEY", "auth_method": method})).await;
        assert_eq!(header(&keyed, method), Some("key-of-the-variable"));
        assert_eq!(header(&keyed, "authorization"), None);
    }
    let none = request(json!({"type": "openai", "auth_method": "none"})).await;
    assert_eq!(header(&none, "authorization"), None);
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), "key-of-the-file\n").unwrap();
    let filed = request(json!({"api_key_file": file.path()})).await;
    assert_eq!(header(&filed, "authorization"), Some("Bearer key-of-the-file"));
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_are_sent_and_name_the_agent() {
    let headers = json!({"headers": {"x-team": "blue", "x-agent": "of ${agent_id}"}});
    let sent = request(headers).await;
    assert_eq!(header(&sent, "x-team"), Some("blue"));
    assert_eq!(header(&sent, "x-agent"), Some("of scout"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_is_asked_for_as_it_is_configured() {
    let usual = body(&request(json!({})).await);
    assert_eq!((&usual["model"], &usual["max_tokens"]), (&json!("m-1"), &json!(4096)));
    assert_eq!(usual.get("reasoning_effort"), None);
    let model = json!({"id": "m-2", "max_output": 77, "reasoning": true});
    let sent = body(&request(json!({"models": {"m": model}})).await);
    assert_eq!((&sent["model"], &sent["max_tokens"]), (&json!("m-2"), &json!(77)));
    assert!(sent["reasoning_effort"].is_string(), "{sent}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_stays_the_same_is_marked_only_where_caching_is_on() {
    let anthropic = json!({"type": "anthropic", "api_key_env": "MY_KEY"});
    let marked = body(&request(anthropic.clone()).await).to_string();
    assert!(marked.contains("cache_control"), "{marked}");
    let plain = body(&request(with(anthropic, &json!({"prompt_caching": false}))).await);
    assert!(!plain.to_string().contains("cache_control"), "{plain}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_fails_in_passing_is_asked_again_as_often_as_configured() {
    let failing = || ResponseTemplate::new(503);
    assert_eq!(requests(&json!({"max_retries": 0}), failing()).await.len(), 1);
    assert_eq!(requests(&json!({"max_retries": 2}), failing()).await.len(), 3);
}
