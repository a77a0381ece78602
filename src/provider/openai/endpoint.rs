//! Where requests go and what they carry besides their body: URL, key, headers, waits.
//! Built once from the configuration, where everything that can be wrong with it is refused.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Request, Uri};
use secrecy::{ExposeSecret, SecretString};

use super::failure::Failures;
use super::request::LengthField;
use crate::config::{AuthMethod, ProviderConfig, is_loopback};
use crate::id::AgentId;
use crate::limits::TIMEOUT_SECONDS_MAX;
use crate::provider::key::{AGENT_PLACE, Key, Redactor};

const OPENAI_HOST: &str = "api.openai.com";

/// A provider's settings that cannot work. No message shows a value: it may be a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    #[error("`base_url` must be http(s)://host[:port][/path], without user, query or fragment")]
    Url,
    #[error(
        "`base_url` sends the key and all messages unencrypted to `{host}`: use https, or set \
         `allow_insecure_http`"
    )]
    InsecureUrl { host: String },
    #[error("the key has characters that cannot be sent")]
    Key,
    #[error("the header `{name}` cannot be sent")]
    Header { name: String },
    #[error("`{key}` must be a number of seconds above 0 and at most {TIMEOUT_SECONDS_MAX}")]
    Seconds { key: &'static str },
}

#[derive(Debug)]
pub(super) struct Endpoint {
    uri: Uri,
    authorization: Option<(HeaderName, SecretString)>,
    headers: Vec<(HeaderName, SecretString)>,
    pub(super) length_field: LengthField,
    pub(super) request_timeout: Duration,
    pub(super) idle_timeout: Duration,
    pub(super) failures: Failures,
}

impl Endpoint {
    pub(super) fn new(
        provider: &str,
        config: &ProviderConfig,
        default_base_url: &str,
        key: Option<Key>,
    ) -> Result<Self, EndpointError> {
        let base_url = config.base_url.as_deref().unwrap_or(default_base_url);
        let uri = completions_uri(base_url)?;
        let host = uri.host().ok_or(EndpointError::Url)?;
        let encrypted = uri.scheme_str() == Some("https");
        if !encrypted && !config.allow_insecure_http && !is_loopback(host) {
            return Err(EndpointError::InsecureUrl { host: host.to_owned() });
        }
        let length_field = match host {
            OPENAI_HOST => LengthField::MaxCompletionTokens,
            _ => LengthField::MaxTokens,
        };
        let mut redactor = Redactor::default();
        let mut headers = Vec::new();
        for (name, value) in &config.headers {
            headers.push(configured_header(name, value)?);
        }
        redactor.hide_all(config, key.as_ref());
        Ok(Self {
            authorization: authorization(config.auth_method, key.as_ref())?,
            headers,
            length_field,
            request_timeout: seconds("request_timeout", config.request_timeout)?,
            idle_timeout: seconds("stream_idle_timeout", config.stream_idle_timeout)?,
            failures: Failures {
                provider: provider.to_owned(),
                key_source: key.map(|key| key.source),
                redactor,
            },
            uri,
        })
    }

    /// Returns the request that `agent` sends. A configured header replaces ours of the same name.
    pub(super) fn request(&self, agent: &AgentId, body: Vec<u8>) -> Request<Bytes> {
        let mut request = Request::post(self.uri.clone())
            .body(Bytes::from(body))
            .expect("the URL was parsed at the start");
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        if let Some((name, value)) = &self.authorization {
            headers.insert(name, secret_header(value.expose_secret()));
        }
        for (name, value) in &self.headers {
            let value = value.expose_secret().replace(AGENT_PLACE, agent.as_str());
            headers.insert(name, secret_header(&value));
        }
        request
    }
}

fn completions_uri(base_url: &str) -> Result<Uri, EndpointError> {
    let full = format!("{}/chat/completions", base_url.trim_end_matches('/'));
    let uri: Uri = full.parse().map_err(|_| EndpointError::Url)?;
    let scheme_known = matches!(uri.scheme_str(), Some("http" | "https"));
    let has_user = uri.authority().is_some_and(|authority| authority.as_str().contains('@'));
    if !scheme_known || has_user || base_url.contains(['?', '#']) {
        return Err(EndpointError::Url);
    }
    Ok(uri)
}

fn authorization(
    method: Option<AuthMethod>,
    key: Option<&Key>,
) -> Result<Option<(HeaderName, SecretString)>, EndpointError> {
    let Some(key) = key else { return Ok(None) };
    let value = key.value.expose_secret();
    let (name, value) = match method {
        Some(AuthMethod::Bearer) | None => (AUTHORIZATION, format!("Bearer {value}")),
        Some(AuthMethod::ApiKey) => (HeaderName::from_static("api-key"), value.to_owned()),
        Some(AuthMethod::XApiKey) => (HeaderName::from_static("x-api-key"), value.to_owned()),
        Some(AuthMethod::None) => return Ok(None),
    };
    HeaderValue::from_str(&value).map_err(|_| EndpointError::Key)?;
    Ok(Some((name, SecretString::from(value))))
}

fn configured_header(name: &str, value: &str) -> Result<(HeaderName, SecretString), EndpointError> {
    let refused = || EndpointError::Header { name: name.to_owned() };
    let parsed = HeaderName::from_bytes(name.as_bytes()).map_err(|_| refused())?;
    HeaderValue::from_str(value).map_err(|_| refused())?;
    Ok((parsed, SecretString::from(value)))
}

/// Marks the value, so that no debug print of a request shows it.
fn secret_header(value: &str) -> HeaderValue {
    let mut header = HeaderValue::from_str(value)
        .expect("headers are parsed at the start, and agent ids are plain ASCII");
    header.set_sensitive(true);
    header
}

fn seconds(key: &'static str, value: f64) -> Result<Duration, EndpointError> {
    if value > 0.0 && value <= TIMEOUT_SECONDS_MAX {
        Ok(Duration::from_secs_f64(value))
    } else {
        Err(EndpointError::Seconds { key })
    }
}

#[cfg(test)]
#[path = "endpoint_tests.rs"]
mod tests;
