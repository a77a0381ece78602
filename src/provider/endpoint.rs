//! Where requests go and what they carry besides their body: URL, key, headers, waits.
//! Built once from the configuration, where everything that can be wrong with it is refused.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Request, Uri};
use secrecy::{ExposeSecret, SecretString};

use super::ModelRequest;
use super::defaults::{Address, Defaults};
use super::failure::Failures;
use super::key::{AGENT_PLACE, Key, Redactor};
use crate::config::{AuthMethod, ProviderConfig, is_loopback};
use crate::limits::TIMEOUT_SECONDS_MAX;

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
    #[error("`base_url` is missing: name your resource, such as https://NAME.openai.azure.com")]
    NoUrl,
    #[error("the key has characters that cannot be sent")]
    Key,
    #[error("the header `{name}` cannot be sent")]
    Header { name: String },
    #[error("`{key}` must be a number of seconds above 0 and at most {TIMEOUT_SECONDS_MAX}")]
    Seconds { key: &'static str },
}

#[derive(Debug)]
pub(super) struct Endpoint {
    url: Url,
    authorization: Option<(HeaderName, SecretString)>,
    /// What the wire itself wants in every request.
    fixed: &'static [(&'static str, &'static str)],
    headers: Vec<(HeaderName, SecretString)>,
    allow_insecure_http: bool,
    pub(super) request_timeout: Duration,
    pub(super) idle_timeout: Duration,
    pub(super) retries_max: u32,
    pub(super) failures: Failures,
}

/// Where a request goes.
#[derive(Debug)]
enum Url {
    One(Uri),
    /// Each model has its own; its name goes between the two.
    PerModel {
        before: String,
        after: String,
    },
}

impl Endpoint {
    pub(super) fn new(
        provider: &str,
        config: &ProviderConfig,
        defaults: Defaults,
        key: Option<Key>,
        redactor: Arc<Redactor>,
    ) -> Result<Self, EndpointError> {
        let base_url = config.base_url.as_deref().or(defaults.base_url);
        let url = Url::new(base_url.ok_or(EndpointError::NoUrl)?, defaults.address, config)?;
        let mut headers = Vec::new();
        for (name, value) in &config.headers {
            headers.push(configured_header(name, value.expose())?);
        }
        let auth_method = config.auth_method.unwrap_or(defaults.auth_method);
        let endpoint = Self {
            authorization: authorization(auth_method, key.as_ref())?,
            fixed: defaults.headers,
            headers,
            allow_insecure_http: config.allow_insecure_http,
            request_timeout: seconds("request_timeout", config.request_timeout)?,
            idle_timeout: seconds("stream_idle_timeout", config.stream_idle_timeout)?,
            retries_max: config.max_retries,
            failures: Failures {
                provider: provider.to_owned(),
                key_source: key.map(|key| key.source),
                redactor,
            },
            url,
        };
        let uri = endpoint.url.of("model");
        if !endpoint.may_be_asked(&uri) {
            let host = uri.host().unwrap_or_default().to_owned();
            return Err(EndpointError::InsecureUrl { host });
        }
        Ok(endpoint)
    }

    /// Returns the request as it is sent. A configured header replaces ours of the same name.
    pub(super) fn request(&self, request: &ModelRequest, body: Vec<u8>) -> Request<Bytes> {
        let mut sent = Request::post(self.url.of(&request.model))
            .body(Bytes::from(body))
            .expect("the URL was parsed at the start");
        let headers = sent.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        for (name, value) in self.fixed {
            headers.insert(*name, HeaderValue::from_static(value));
        }
        if let Some((name, value)) = &self.authorization {
            headers.insert(name, secret_header(value.expose_secret()));
        }
        for (name, value) in &self.headers {
            let value = value.expose_secret().replace(AGENT_PLACE, request.agent.as_str());
            headers.insert(name, secret_header(&value));
        }
        sent
    }

    /// Whether our messages may travel to this address as it says they would.
    pub(super) fn may_be_asked(&self, uri: &Uri) -> bool {
        let encrypted = uri.scheme_str() == Some("https");
        encrypted || self.allow_insecure_http || uri.host().is_some_and(is_loopback)
    }
}

impl Url {
    fn new(
        base_url: &str,
        address: Address,
        config: &ProviderConfig,
    ) -> Result<Self, EndpointError> {
        if base_url.contains(['?', '#']) {
            return Err(EndpointError::Url);
        }
        let base_url = base_url.trim_end_matches('/');
        let url = match address {
            Address::Completions => Self::One(checked(&format!("{base_url}/chat/completions"))?),
            Address::Messages => {
                // Other servers of this wire give their address with the version.
                let base_url = base_url.trim_end_matches("/v1");
                Self::One(checked(&format!("{base_url}/v1/messages"))?)
            }
            Address::Deployment { api_version } => {
                let api_version = config.api_version.as_deref().unwrap_or(api_version);
                let base_url = base_url.trim_end_matches("/openai");
                let before = format!("{base_url}/openai/deployments/");
                let after = format!("/chat/completions?api-version={}", encoded(api_version));
                checked(&format!("{before}model{after}"))?;
                match &config.deployment {
                    Some(name) => Self::One(checked(&format!("{before}{}{after}", encoded(name)))?),
                    None => Self::PerModel { before, after },
                }
            }
        };
        Ok(url)
    }

    fn of(&self, model: &str) -> Uri {
        match self {
            Self::One(uri) => uri.clone(),
            Self::PerModel { before, after } => {
                let url = format!("{before}{}{after}", encoded(model));
                url.parse().expect("the parts were checked, and the name is encoded")
            }
        }
    }
}

fn checked(url: &str) -> Result<Uri, EndpointError> {
    let uri: Uri = url.parse().map_err(|_| EndpointError::Url)?;
    let scheme_known = matches!(uri.scheme_str(), Some("http" | "https"));
    let has_user = uri.authority().is_some_and(|authority| authority.as_str().contains('@'));
    if !scheme_known || has_user || uri.host().is_none() {
        return Err(EndpointError::Url);
    }
    Ok(uri)
}

/// A name as one segment of a path, or one value of a query.
fn encoded(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                text.push(byte.into());
            }
            _ => {
                let _ = write!(text, "%{byte:02X}");
            }
        }
    }
    text
}

fn authorization(
    method: AuthMethod,
    key: Option<&Key>,
) -> Result<Option<(HeaderName, SecretString)>, EndpointError> {
    let Some(key) = key else { return Ok(None) };
    let value = key.value.expose_secret();
    let (name, value) = match method {
        AuthMethod::Bearer => (AUTHORIZATION, format!("Bearer {value}")),
        AuthMethod::ApiKey => (HeaderName::from_static("api-key"), value.to_owned()),
        AuthMethod::XApiKey => (HeaderName::from_static("x-api-key"), value.to_owned()),
        AuthMethod::None => return Ok(None),
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
