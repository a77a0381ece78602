//! What a request carries besides its body, and which settings are refused.

use super::*;
use crate::config::ProviderKind;
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
    Endpoint::new("p", config, "https://api.openai.com/v1", Some(key()))
}

fn headers(config: &ProviderConfig) -> Vec<(String, String)> {
    let agent = AgentId::parse("worker").unwrap();
    let request = built(config).unwrap().request(&agent, Vec::new());
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
        headers: headers_configured.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
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
fn the_length_is_bounded_in_the_words_of_the_server() {
    let default = ProviderConfig { base_url: None, ..config() };
    let openai = built(&default).unwrap();
    assert_eq!(openai.uri, "https://api.openai.com/v1/chat/completions");
    assert_eq!(openai.length_field, LengthField::MaxCompletionTokens);
    let other = built(&config()).unwrap();
    assert_eq!(other.uri, "https://models.example/v1/chat/completions");
    assert_eq!(other.length_field, LengthField::MaxTokens);
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
        refusal(|config| drop(config.headers.insert(name.to_owned(), value.to_owned())))
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
        built(&config).map(|endpoint| endpoint.uri.to_string())
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
    config.headers.insert("x-more".to_owned(), CANARY.to_owned());
    let endpoint = built(&config).unwrap();
    let request = endpoint.request(&AgentId::parse("worker").unwrap(), Vec::new());
    assert!(!format!("{endpoint:?} {request:?} {:?}", key()).contains("canary"));
}
