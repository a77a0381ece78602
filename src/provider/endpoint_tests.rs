//! What a request carries besides its body, and which settings are refused.

use super::*;
use crate::config::ProviderKind;
use crate::id::AgentId;
use crate::provider::defaults::Way;
use crate::provider::key::KeySource;

const CANARY: &str = "sk-canary-0123456789";

fn config() -> ProviderConfig {
    ProviderConfig {
        base_url: Some("https://models.example/v1/".to_owned()),
        ..ProviderConfig::of(ProviderKind::Openai)
    }
}

fn key() -> Key {
    Key { value: SecretString::from(CANARY), source: KeySource::Variable("KEY".to_owned()) }
}

fn built(config: &ProviderConfig) -> Result<Endpoint, EndpointError> {
    let redactor = Arc::default();
    Endpoint::new("p", config, defaults(config.kind), Some(key()), redactor)
}

fn defaults(kind: ProviderKind) -> Defaults {
    match Way::of(kind) {
        Way::Remote(defaults) => defaults,
        Way::BuiltIn | Way::Script => panic!("it has no endpoint"),
    }
}

fn asked_by(agent: &str, model: &str) -> ModelRequest {
    ModelRequest {
        agent: AgentId::parse(agent).unwrap(),
        model: model.to_owned(),
        system: "".into(),
        messages: [].into_iter().collect(),
        tools: [].into(),
        output_tokens_max: 1,
        reasoning: false,
    }
}

fn headers(config: &ProviderConfig) -> Vec<(String, String)> {
    let request = built(config).unwrap().request(&asked_by("worker", "m"), Vec::new());
    let text = |value: &HeaderValue| value.to_str().unwrap().to_owned();
    request.headers().iter().map(|(name, value)| (name.to_string(), text(value))).collect()
}

fn refusal(change: impl FnOnce(&mut ProviderConfig)) -> EndpointError {
    let mut config = config();
    change(&mut config);
    built(&config).expect_err("these settings cannot work")
}

#[test]
fn every_auth_method_has_its_header() {
    let with = |method| {
        let config = ProviderConfig { auth_method: method, ..config() };
        headers(&config).split_off(2)
    };
    let bearer = format!("Bearer {CANARY}");
    let header = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];
    assert_eq!(with(None), header("authorization", &bearer));
    assert_eq!(with(Some(AuthMethod::Bearer)), header("authorization", &bearer));
    assert_eq!(with(Some(AuthMethod::ApiKey)), header("api-key", CANARY));
    assert_eq!(with(Some(AuthMethod::XApiKey)), header("x-api-key", CANARY));
    assert_eq!(with(Some(AuthMethod::None)), []);
}

#[test]
fn a_configured_header_names_the_asking_agent() {
    let headers_configured = [("X-Title", "nexus3 ${agent_id}/${agent_id}")];
    let config = ProviderConfig {
        headers: headers_configured.map(|(name, value)| (name.to_owned(), value.into())).into(),
        auth_method: Some(AuthMethod::None),
        ..config()
    };
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(
        headers(&config),
        [
            pair("content-type", "application/json"),
            pair("accept", "text/event-stream"),
            pair("x-title", "nexus3 worker/worker"),
        ]
    );
}

#[test]
fn every_type_is_asked_at_its_place_with_its_kind_of_key() {
    let sent = |kind, change: fn(&mut ProviderConfig)| {
        let mut config = ProviderConfig::of(kind);
        change(&mut config);
        let request = built(&config).unwrap().request(&asked_by("main", "a/b c"), Vec::new());
        let names = ["authorization", "api-key", "x-api-key", "anthropic-version"];
        let held: Vec<_> =
            names.into_iter().filter(|n| request.headers().contains_key(*n)).collect();
        (request.uri().to_string(), held.join(" "))
    };
    let at = |url: &str, headers: &str| (url.to_owned(), headers.to_owned());
    let bearer = "authorization";
    let openai = at("https://api.openai.com/v1/chat/completions", bearer);
    assert_eq!(sent(ProviderKind::Openai, |_| ()), openai);
    let router = at("https://openrouter.ai/api/v1/chat/completions", bearer);
    assert_eq!(sent(ProviderKind::Openrouter, |_| ()), router);
    let ollama = at("http://localhost:11434/v1/chat/completions", bearer);
    assert_eq!(sent(ProviderKind::Ollama, |_| ()), ollama);
    let vllm = at("http://localhost:8000/v1/chat/completions", bearer);
    assert_eq!(sent(ProviderKind::Vllm, |_| ()), vllm);
    let anthropic = at("https://api.anthropic.com/v1/messages", "x-api-key anthropic-version");
    assert_eq!(sent(ProviderKind::Anthropic, |_| ()), anthropic);
    let with_version = |config: &mut ProviderConfig| {
        config.base_url = Some("https://api.anthropic.com/v1/".to_owned());
    };
    assert_eq!(sent(ProviderKind::Anthropic, with_version), anthropic);
    let resource = |config: &mut ProviderConfig| {
        config.base_url = Some("https://me.openai.azure.com/".to_owned());
    };
    let azure = "https://me.openai.azure.com/openai/deployments/a%2Fb%20c/chat/completions?api-version=2024-10-21";
    assert_eq!(sent(ProviderKind::Azure, resource), at(azure, "api-key"));
    let deployment = |config: &mut ProviderConfig| {
        config.base_url = Some("https://me.openai.azure.com/openai".to_owned());
        config.deployment = Some("mine".to_owned());
        config.api_version = Some("2025-01-01-preview".to_owned());
    };
    let azure = "https://me.openai.azure.com/openai/deployments/mine/chat/completions?api-version=2025-01-01-preview";
    assert_eq!(sent(ProviderKind::Azure, deployment), at(azure, "api-key"));
    let nowhere = built(&ProviderConfig::of(ProviderKind::Azure));
    assert_eq!(nowhere.unwrap_err(), EndpointError::NoUrl);
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let url = |url: &str| refusal(|config| config.base_url = Some(url.to_owned()));
    for bad in [
        "",
        "models.example/v1",
        "ftp://models.example",
        "https://user:pw@models.example",
        "https://models.example/v1?key=1",
        "https://models.example/#v1",
    ] {
        assert_eq!(url(bad), EndpointError::Url, "{bad}");
    }
    let header = |name: &str, value: &str| {
        refusal(|config| drop(config.headers.insert(name.to_owned(), value.into())))
    };
    let refused = |name: &str| EndpointError::Header { name: name.to_owned() };
    assert_eq!(header("a b", "v"), refused("a b"));
    assert_eq!(header("a", "v\nw"), refused("a"));
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(
            refusal(|config| config.request_timeout = bad),
            EndpointError::Seconds { key: "request_timeout" }
        );
    }
}

#[test]
fn unencrypted_requests_leave_this_host_only_when_allowed() {
    let at = |url: &str, allow_insecure_http| {
        let base_url = Some(url.to_owned());
        let config = ProviderConfig { base_url, allow_insecure_http, ..config() };
        built(&config).map(|endpoint| endpoint.url.of("m").to_string())
    };
    for local in ["http://localhost:1", "http://127.0.0.2", "http://[::1]:8000"] {
        assert_eq!(at(local, false), Ok(format!("{local}/chat/completions")));
    }
    let refused = EndpointError::InsecureUrl { host: "models.example".to_owned() };
    assert_eq!(at("http://models.example", false), Err(refused));
    assert!(at("http://models.example", true).is_ok());
}

#[test]
fn no_debug_print_shows_the_key() {
    let mut config = config();
    config.headers.insert("x-more".to_owned(), CANARY.into());
    let endpoint = built(&config).unwrap();
    let request = endpoint.request(&asked_by("worker", "m"), Vec::new());
    assert!(!format!("{endpoint:?} {request:?} {:?}", key()).contains("canary"));
}
