//! Reads `providers`: where models are asked, and by which names.
//! It never shows the value of a header or of `api_key_env`: people put secrets there by mistake.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use indexmap::IndexMap;

use super::address::base_url;
use super::load::absolute_path;
use super::section::{Field, Section, Zero};
use super::words::{nearest, quoted};
use super::{
    AuthMethod, HeaderText, ModelConfig, ProviderConfig, ProviderKind, context_window, max_output,
    max_retries, prompt_caching, request_timeout, stream_idle_timeout,
};
use crate::limits;
use crate::reach::Reach;

const DEMO: &str = "demo";
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

pub(super) fn read(
    field: Option<Field<'_>>,
    reach: Reach,
) -> (IndexMap<String, ProviderConfig>, Names<'_>) {
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
            let provider = provider(field.name, section, &mut names, reach);
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

fn provider<'a>(
    name: &'a str,
    mut section: Section<'a>,
    names: &mut Names<'a>,
    reach: Reach,
) -> ProviderConfig {
    let kinds = ProviderKind::ALL.map(|kind| (kind.name(), kind));
    let kind = section.required("type", PROVIDER_HINT, |f| f.choice(&kinds, &[]));
    refuse_idle_keys(kind, &mut section);
    let allow_insecure_http = section.value("allow_insecure_http", false, Field::flag);
    let key_env = section.given("api_key_env", "");
    let key_file = section.given("api_key_file", "");
    let auth_method = section.optional("auth_method", "leave it out for the usual one", |f| {
        f.choice(&AUTH_METHODS, &[])
    });
    match (key_env, key_file) {
        (Some(_), Some(second)) => {
            let message = "`api_key_env` and `api_key_file` are both given";
            second.refuse_key(message, "keep one of them");
        }
        (Some(key), None) | (None, Some(key)) if auth_method == Some(AuthMethod::None) => {
            key.refuse_key("does nothing where `auth_method` is \"none\"", "remove one of them");
        }
        (Some(_) | None, None) | (None, Some(_)) => {}
    }
    let header_fields = section
        .field("headers", "write \"headers\": {\"name\": \"value\"}".to_owned())
        .and_then(|field| field.entries())
        .unwrap_or_default();
    let provider = ProviderConfig {
        // Without a type there is no configuration in the end, so that any stands in for it.
        kind: kind.unwrap_or(ProviderKind::Openai),
        base_url: url(kind, &mut section, |f| base_url(f, allow_insecure_http, reach)),
        api_key_env: section.optional("api_key_env", "name a variable", variable),
        api_key_file: section.optional("api_key_file", "name a file", absolute_path),
        auth_method,
        headers: headers(&header_fields),
        request_timeout: section
            .value("request_timeout", request_timeout(), |f| f.seconds(Zero::Refused)),
        stream_idle_timeout: section
            .value("stream_idle_timeout", stream_idle_timeout(), |f| f.seconds(Zero::Refused)),
        allow_insecure_http,
        max_retries: section.value("max_retries", max_retries(), |f| {
            f.whole(0..=limits::PROVIDER_RETRIES_CONFIGURED_MAX.into())
        }),
        prompt_caching: section.value("prompt_caching", prompt_caching(), Field::flag),
        ca_file: section.optional("ca_file", "name a file", absolute_path),
        api_version: section.optional("api_version", "write it like \"2024-10-21\"", url_part),
        deployment: section.optional("deployment", "leave it out for the model's id", url_part),
        script: script(kind, &mut section),
        models: section
            .required("models", MODELS_HINT, |f| models(name, f, names))
            .unwrap_or_default(),
    };
    section.finish(&[]);
    provider
}

const AUTH_METHODS: [(&str, AuthMethod); 4] = [
    ("bearer", AuthMethod::Bearer),
    ("api-key", AuthMethod::ApiKey),
    ("x-api-key", AuthMethod::XApiKey),
    ("none", AuthMethod::None),
];

/// A key that is accepted does something: what cannot is refused. `demo` asks nobody, and a script
/// is no other machine, but keeps its reader waiting and can fail in passing.
fn refuse_idle_keys(kind: Option<ProviderKind>, section: &mut Section<'_>) {
    // The missing type is told.
    let Some(kind) = kind else { return };
    let idle: [&[&'static str]; 3] = match kind {
        ProviderKind::Demo => [&WAIT_KEYS, &CONNECTION_KEYS, &AZURE_KEYS],
        ProviderKind::Script => [&[], &CONNECTION_KEYS, &AZURE_KEYS],
        ProviderKind::Openai
        | ProviderKind::Openrouter
        | ProviderKind::Ollama
        | ProviderKind::Vllm
        | ProviderKind::Anthropic => [&[], &[], &AZURE_KEYS],
        ProviderKind::Azure => [&[], &[], &[]],
    };
    for key in idle.concat() {
        if let Some(field) = section.given(key, "") {
            field.refuse_key(&format!("does nothing for the type `{}`", kind.name()), "remove it");
        }
    }
}

const WAIT_KEYS: [&str; 3] = ["request_timeout", "stream_idle_timeout", "max_retries"];
const CONNECTION_KEYS: [&str; 8] = [
    "base_url",
    "api_key_env",
    "api_key_file",
    "auth_method",
    "headers",
    "allow_insecure_http",
    "prompt_caching",
    "ca_file",
];
const AZURE_KEYS: [&str; 2] = ["api_version", "deployment"];

/// The URL of a provider, which only `azure` has to name: everybody has an own one there.
fn url<'a>(
    kind: Option<ProviderKind>,
    section: &mut Section<'a>,
    read: impl FnOnce(&Field<'a>) -> Option<String>,
) -> Option<String> {
    const HINT: &str =
        "name your resource, as in \"base_url\": \"https://my-resource.openai.azure.com\"";
    match kind {
        Some(ProviderKind::Azure) => section.required("base_url", HINT, read),
        Some(
            ProviderKind::Openai
            | ProviderKind::Openrouter
            | ProviderKind::Ollama
            | ProviderKind::Vllm
            | ProviderKind::Anthropic
            | ProviderKind::Demo
            | ProviderKind::Script,
        )
        | None => section.optional("base_url", "write a URL", read),
    }
}

/// A word that stands in a URL as it is.
fn url_part(field: &Field<'_>) -> Option<String> {
    let text = field.text()?;
    let plain = text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
    if !plain || text.bytes().all(|b| b == b'.') {
        field.refuse("this cannot stand in a URL", "use letters, digits, `.`, `_` and `-`");
        return None;
    }
    Some(text.to_owned())
}

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
    let id = section.required("id", "name the model as its provider does", model_id);
    let model = ModelConfig {
        id: id.unwrap_or_default().to_owned(),
        context_window: section
            .value("context_window", context_window(), |f| f.whole(tokens.clone())),
        max_output: section.value("max_output", max_output(), |f| f.whole(tokens)),
        reasoning: section.value("reasoning", false, Field::flag),
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
    section.finish(&[]);
    model
}

fn model_id<'a>(field: &Field<'a>) -> Option<&'a str> {
    let id = field.text()?;
    if id.len() > limits::MODEL_ID_BYTES_MAX || id.bytes().all(|byte| byte == b'.') {
        let max = limits::MODEL_ID_BYTES_MAX;
        field.refuse(
            &format!("expected a name of at most {max} bytes, and not of dots alone"),
            "name the model as its provider does",
        );
        return None;
    }
    Some(id)
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

fn headers(fields: &[Field<'_>]) -> BTreeMap<String, HeaderText> {
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
        headers.insert(field.name.to_owned(), value.into());
    }
    headers
}
