//! The least that can be configured of each type asks at the right place, with the right key.
//! Requests are led from that place to a server of the test; nothing leaves the machine.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Uri};
use nexus3::config::{ProviderConfig, ProviderKind};
use nexus3::provider::{FinishReason, ModelEvent};
use nexus3::world::{BoxFuture, Http, HttpError, HttpResponse, HttpTerms};
use wiremock::matchers::{header, header_exists, method, path};
use wiremock::{Mock, MockBuilder, MockServer, ResponseTemplate};

use crate::support::{CANARY, Reason, Wire, ask, named, world};

/// Leads every request to one server, and notes where it was meant to go.
struct Led {
    inner: Arc<dyn Http>,
    to: Uri,
    /// Guards plain data; nothing is awaited while it is held.
    meant: Arc<Mutex<Vec<String>>>,
}

impl Http for Led {
    fn with(self: Arc<Self>, terms: &HttpTerms) -> Arc<dyn Http> {
        let inner = Arc::clone(&self.inner).with(terms);
        Arc::new(Self { inner, to: self.to.clone(), meant: Arc::clone(&self.meant) })
    }

    fn send(&self, mut request: Request<Bytes>) -> BoxFuture<'_, Result<HttpResponse, HttpError>> {
        self.meant.lock().expect("nothing panics while it is held").push(request.uri().to_string());
        let mut parts = self.to.clone().into_parts();
        parts.path_and_query = request.uri().path_and_query().cloned();
        *request.uri_mut() = Uri::from_parts(parts).expect("its parts are whole");
        self.inner.send(request)
    }
}

/// Asks a provider and returns where it asked. The server answers only what `expected` describes.
async fn asked_at(provider: ProviderConfig, wire: Wire, expected: MockBuilder) -> String {
    let server = MockServer::start().await;
    let body = [wire.says("Hi"), wire.ends(Reason::Done)].concat();
    let answer = ResponseTemplate::new(200).set_body_raw(body, "text/event-stream");
    expected.respond_with(answer).expect(1).mount(&server).await;
    let mut world = world();
    let meant = Arc::default();
    let to = server.uri().parse().expect("a server has an address");
    world.http = Arc::new(Led { inner: world.http, to, meant: Arc::clone(&meant) });
    let expected =
        vec![ModelEvent::Text("Hi".to_owned()), ModelEvent::Finished(FinishReason::Stop)];
    assert_eq!(ask(&world, provider).await, (expected, None));
    let meant = meant.lock().expect("nothing panics while it is held");
    assert_eq!(meant.len(), 1);
    meant[0].clone()
}

fn post(at: &str) -> MockBuilder {
    Mock::given(method("POST")).and(path(at))
}

fn bearer(at: &str) -> MockBuilder {
    post(at).and(header("authorization", format!("Bearer {CANARY}")))
}

fn without_key(request: &wiremock::Request) -> bool {
    ["authorization", "api-key", "x-api-key"]
        .iter()
        .all(|name| !request.headers.contains_key(*name))
}

#[tokio::test]
async fn openai_and_openrouter_are_asked_with_a_bearer_key() {
    let openai =
        asked_at(named(ProviderKind::Openai), Wire::Completions, bearer("/v1/chat/completions"));
    assert_eq!(openai.await, "https://api.openai.com/v1/chat/completions");
    let router = asked_at(
        named(ProviderKind::Openrouter),
        Wire::Completions,
        bearer("/api/v1/chat/completions"),
    );
    assert_eq!(router.await, "https://openrouter.ai/api/v1/chat/completions");
}

#[tokio::test]
async fn ollama_and_vllm_are_asked_on_this_machine_without_a_key() {
    for (kind, at) in [
        (ProviderKind::Ollama, "http://localhost:11434/v1/chat/completions"),
        (ProviderKind::Vllm, "http://localhost:8000/v1/chat/completions"),
    ] {
        let expected = post("/v1/chat/completions").and(without_key);
        assert_eq!(asked_at(named(kind), Wire::Completions, expected).await, at);
    }
}

#[tokio::test]
async fn anthropic_is_asked_with_its_own_headers() {
    let expected = post("/v1/messages")
        .and(header("x-api-key", CANARY))
        .and(header_exists("anthropic-version"));
    let asked = asked_at(named(ProviderKind::Anthropic), Wire::Messages, expected);
    assert_eq!(asked.await, "https://api.anthropic.com/v1/messages");
}

#[tokio::test]
async fn azure_is_asked_at_the_deployment_of_the_model() {
    let expected = post("/openai/deployments/m-1/chat/completions").and(header("api-key", CANARY));
    let provider = ProviderConfig {
        base_url: Some("https://me.openai.azure.com".to_owned()),
        ..named(ProviderKind::Azure)
    };
    assert_eq!(
        asked_at(provider, Wire::Completions, expected).await,
        "https://me.openai.azure.com/openai/deployments/m-1/chat/completions?api-version=2024-10-21"
    );
}
