//! Reads `providers`: where models are asked, and by which names.
//! It never shows the value of a header or of `api_key_env`: people put secrets there by mistake.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::PathBuf;

use indexmap::IndexMap;

use super::load::absolute_path;
use super::section::{Field, Section, Zero};
use super::words::{nearest, quoted};
use super::{
    AuthMethod, ModelConfig, ProviderConfig, ProviderKind, context_window, max_output, max_retries,
    prompt_caching, request_timeout, stream_idle_timeout,
};
use crate::limits;

const DEMO: &str = "demo";
const SCRIPT: &str = "script";
const PROVIDER_HINT: &str =
    "write \"name\": {\"type\": \"openai\", \"models\": {\"alias\": {\"id\": \"the-model\"}}}";
const MODELS_HINT: &str = "write \"models\": {\"alias\": {\"id\": \"the-model\"}}";

/// The names a model can be asked for by, taken from the keys alone: a provider with a fault
/// somewhere still has its names.
#[derive(Debug, Default)]
pub(super) struct Names<'a> {
    providers: BTreeSet<&'a str>,
    /// Alias → provider.
    aliases: BTreeMap<&'a str, &'a str>,
}

pub(super) fn read(field: Option<Field<'_>>) -> (IndexMap<String, ProviderConfig>, Names<'_>) {
    let entries = field.and_then(|field| field.with_hint(PROVIDER_HINT).entries());
    let mut providers = IndexMap::new();
    let mut names = Names::default();
    for field in entries.unwrap_or_default() {
        if field.name.contains('/') {
            field.refuse_key(
                "a provider's name cannot contain `/`",
                "choose another name: `provider/model-id` is read up to the first `/`",
            );
        }
        names.providers.insert(field.name);
        if let Some(section) = field.with_hint(PROVIDER_HINT).section() {
            let provider = provider(field.name, section, &mut names);
            providers.insert(field.name.to_owned(), provider);
        }
    }
    (providers, names)
}

/// The model that is named, if there is such a one.
pub(super) fn known_model(field: &Field<'_>, names: &Names<'_>) -> Option<String> {
    let name = field.text()?;
    let in_provider = name
        .split_once('/')
        .is_some_and(|(provider, id)| names.providers.contains(provider) && !id.is_empty());
    if name == DEMO || in_provider || names.aliases.contains_key(name) {
        return Some(name.to_owned());
    }
    let mut known: Vec<_> = names.aliases.keys().copied().collect();
    known.push(DEMO);
    let message = format!("there is no model {}", quoted(name));
    field.refuse(&message, &nearest(name, &known, "there are"));
    None
}

fn provider<'a>(name: &'a str, mut section: Section<'a>, names: &mut Names<'a>) -> ProviderConfig {
    let kind = section.required("type", PROVIDER_HINT, |f| f.choice(&KINDS, &KINDS_LATER));
    refuse_idle_keys(kind, &mut section);
    let allow_insecure_http = section.value("allow_insecure_http", false, Field::flag);
    let key_env = section.given("api_key_env", "");
    let key_file = section.given("api_key_file", "");
    if let (Some(_), Some(second)) = (key_env, key_file) {
        second.refuse_key("`api_key_env` and `api_key_file` are both given", "keep one of them");
    }
    let header_fields = section
        .field("headers", "write \"headers\": {\"name\": \"value\"}".to_owned())
        .and_then(|field| field.entries())
        .unwrap_or_default();
    let provider = ProviderConfig {
        // Without a type there is no configuration in the end, so that any stands in for it.
        kind: kind.unwrap_or(ProviderKind::Openai),
        base_url: section.optional("base_url", "write a URL", |f| base_url(f, allow_insecure_http)),
        api_key_env: section.optional("api_key_env", "name a variable", variable),
        api_key_file: section.optional("api_key_file", "name a file", absolute_path),
        auth_method: section.optional("auth_method", "leave it out for the usual one", |f| {
            f.choice(&AUTH_METHODS, &[])
        }),
        headers: headers(&header_fields),
        request_timeout: section
            .value("request_timeout", request_timeout(), |f| f.seconds(Zero::Refused)),
        stream_idle_timeout: section
            .value("stream_idle_timeout", stream_idle_timeout(), |f| f.seconds(Zero::Refused)),
        allow_insecure_http,
        max_retries: max_retries(),
        prompt_caching: prompt_caching(),
        ca_file: None,
        api_version: None,
        deployment: None,
        script: script(kind, &mut section),
        models: section
            .required("models", MODELS_HINT, |f| models(name, f, names))
            .unwrap_or_default(),
    };
    section.finish(&["max_retries", "prompt_caching", "ca_file", "api_version", "deployment"]);
    provider
}

const KINDS: [(&str, ProviderKind); 6] = [
    ("openai", ProviderKind::Openai),
    ("openrouter", ProviderKind::Openrouter),
    ("ollama", ProviderKind::Ollama),
    ("vllm", ProviderKind::Vllm),
    (DEMO, ProviderKind::Demo),
    (SCRIPT, ProviderKind::Script),
];
const KINDS_LATER: [&str; 2] = ["azure", "anthropic"];

const AUTH_METHODS: [(&str, AuthMethod); 4] = [
    ("bearer", AuthMethod::Bearer),
    ("api-key", AuthMethod::ApiKey),
    ("x-api-key", AuthMethod::XApiKey),
    ("none", AuthMethod::None),
];

/// A key that is accepted does something: what cannot is refused. `demo` asks nobody, and a script
/// is no other machine, but keeps its reader waiting.
fn refuse_idle_keys(kind: Option<ProviderKind>, section: &mut Section<'_>) {
    let (name, keys): (&str, &[&str]) = match kind {
        Some(ProviderKind::Demo) => (DEMO, &CONNECTION_KEYS),
        Some(ProviderKind::Script) => (SCRIPT, &CONNECTION_KEYS[WAIT_KEYS..]),
        Some(
            ProviderKind::Openai
            | ProviderKind::Openrouter
            | ProviderKind::Ollama
            | ProviderKind::Vllm
            | ProviderKind::Azure
            | ProviderKind::Anthropic,
        )
        | None => return,
    };
    for key in keys {
        if let Some(field) = section.given(key, "") {
            field.refuse_key(&format!("does nothing for the type `{name}`"), "remove it");
        }
    }
}

const CONNECTION_KEYS: [&str; 8] = [
    "request_timeout",
    "stream_idle_timeout",
    "base_url",
    "api_key_env",
    "api_key_file",
    "auth_method",
    "headers",
    "allow_insecure_http",
];
/// How many of them, from the first, are about waiting alone.
const WAIT_KEYS: usize = 2;

/// The file of a scripted model: needed for that type, refused for the others.
fn script(kind: Option<ProviderKind>, section: &mut Section<'_>) -> Option<PathBuf> {
    const HINT: &str = "name a scenario file, as in \"script\": \"/a/scenario.toml\"";
    match kind {
        Some(ProviderKind::Script) => section.required("script", HINT, absolute_path),
        Some(
            ProviderKind::Openai
            | ProviderKind::Openrouter
            | ProviderKind::Ollama
            | ProviderKind::Vllm
            | ProviderKind::Azure
            | ProviderKind::Anthropic
            | ProviderKind::Demo,
        ) => {
            if let Some(field) = section.given("script", "") {
                let hint = "remove it, or let the type be `script`";
                field.refuse_key("does nothing for this type", hint);
            }
            None
        }
        // The missing type is told.
        None => section.optional("script", HINT, absolute_path),
    }
}

fn models<'a>(
    provider: &'a str,
    field: &Field<'a>,
    names: &mut Names<'a>,
) -> Option<IndexMap<String, ModelConfig>> {
    let entries = field.entries()?;
    if entries.is_empty() {
        field.refuse("expected at least one model", MODELS_HINT);
    }
    let mut models = IndexMap::new();
    for field in entries {
        if let Some(other) = names.aliases.insert(field.name, provider) {
            let message = format!("the provider {} has a model of this name", quoted(other));
            field.refuse_key(&message, "give one of them another alias");
        }
        if let Some(section) = field.with_hint(MODELS_HINT).section() {
            models.insert(field.name.to_owned(), model(section));
        }
    }
    Some(models)
}

fn model(mut section: Section<'_>) -> ModelConfig {
    let tokens = 1..=limits::CONTEXT_WINDOW_TOKENS_MAX;
    let window = section.field("context_window", String::new());
    let output = section.field("max_output", String::new());
    let id = section.required("id", "name the model as its provider does", Field::text);
    let model = ModelConfig {
        id: id.unwrap_or_default().to_owned(),
        context_window: section
            .value("context_window", context_window(), |f| f.whole(tokens.clone())),
        max_output: section.value("max_output", max_output(), |f| f.whole(tokens)),
        reasoning: false,
    };
    if let Some(field) = output.or(window)
        && model.context_window <= model.max_output
    {
        let ModelConfig { context_window, max_output, .. } = model;
        field.refuse(
            &format!(
                "the context window of {context_window} tokens has no room beside an answer of \
                 {max_output}"
            ),
            "let `context_window` be larger than `max_output`",
        );
    }
    section.finish(&["reasoning"]);
    model
}

/// The name of an environment variable.
fn variable(field: &Field<'_>) -> Option<String> {
    let name = field.text()?;
    let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && !name.starts_with(|c: char| c.is_ascii_digit());
    if !plain {
        field.refuse(
            "expected the name of an environment variable",
            "name the variable that holds the key, such as \"OPENAI_API_KEY\"; the key itself \
             does not belong here",
        );
    }
    plain.then(|| name.to_owned())
}

fn headers(fields: &[Field<'_>]) -> BTreeMap<String, String> {
    const AGENT: &str = "${agent_id}";
    let mut names = BTreeSet::new();
    let mut headers = BTreeMap::new();
    for field in fields {
        match http::HeaderName::from_bytes(field.name.as_bytes()) {
            Ok(name) if names.insert(name.as_str().to_owned()) => (),
            Ok(_) => field.refuse_key("this header stands here twice", "remove one of the two"),
            Err(_) => field.refuse_key(
                "this is no header name",
                "use letters, digits and `-`, such as \"x-title\"",
            ),
        }
        let Some(value) = field.with_hint("write a string").text() else {
            continue;
        };
        let rest = value.replace(AGENT, "");
        if http::HeaderValue::from_str(&rest).is_err() || !rest.is_ascii() {
            field.refuse("this is no header value", "use visible ASCII characters and spaces only");
        }
        if rest.contains("${") {
            field.refuse(
                "only ${agent_id} is replaced in a header",
                "for a key use `api_key_env` or `api_key_file`",
            );
        }
        headers.insert(field.name.to_owned(), value.to_owned());
    }
    headers
}

fn base_url(field: &Field<'_>, allow_insecure_http: bool) -> Option<String> {
    let text = field.text()?;
    let uri = text.parse::<http::Uri>().unwrap_or_default();
    let host = uri.host().unwrap_or_default();
    let port_fits = uri.port_u16().is_some() || uri.authority().is_some_and(|a| a == host);
    let plain = !host.is_empty() && port_fits && !text.contains(['?', '#', '@']);
    match uri.scheme_str() {
        Some("https") if plain => Some(text.to_owned()),
        Some("http") if plain && (allow_insecure_http || is_loopback(host)) => {
            Some(text.to_owned())
        }
        Some("http") if plain => {
            field.refuse(
                "plain http to another machine shows the key and every message to the network",
                "use https, or set `allow_insecure_http` to true",
            );
            None
        }
        _ => {
            field.refuse(
                "expected an http or https URL with nothing but host, port and path",
                "write it like \"https://api.openai.com/v1\"",
            );
            None
        }
    }
}

/// Whether a URL's host is this machine.
pub fn is_loopback(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || address.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}
