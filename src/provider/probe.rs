//! Whether a provider can be reached and takes its key: one request that asks no model and costs
//! nothing. It repeats nothing, and what it says never shows the key.

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, StatusCode, Uri};
use tokio::time::timeout;

use super::defaults::{Address, Defaults, Offered, Way};
use super::endpoint::Endpoint;
use super::failure::Forwarded;
use super::key::{KeyFinder, Redactor};
use super::{ModelError, ModelRequest, ProviderError, terms};
use crate::config::{Config, NetworkConfig, ProviderConfig, ProviderKind};
use crate::id::AgentId;
use crate::limits::PROVIDER_PROBE_MAX;
use crate::messages::Messages;
use crate::world::World;

/// What a provider said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probed {
    /// Its models are in this program: there is nobody to ask.
    Inside,
    /// It lets us in.
    Welcome,
    /// It answers, but not in a way that tells whether it would let us in.
    Unclear,
}

#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    #[error(transparent)]
    Unusable(ModelError),
    /// It cannot be reached, or refuses us.
    #[error(transparent)]
    Failed(ProviderError),
}

/// The providers that a server would use: those that are configured, else the one whose key is there.
pub fn in_use(world: &World, config: &Config) -> Vec<(String, ProviderConfig)> {
    let keys = KeyFinder { environment: world.environment.as_ref(), fs: world.fs.as_ref() };
    let found = Offered::in_environment(keys).filter(|_| config.providers.is_empty());
    let found = found.map(|found| (found.name.to_owned(), found.config()));
    let configured = config.providers.iter().map(|(name, config)| (name.clone(), config.clone()));
    configured.chain(found).collect()
}

/// Asks the provider `name` what it offers, with all that a real request would carry.
pub async fn probe(
    world: &World,
    name: &str,
    config: &ProviderConfig,
    network: &NetworkConfig,
) -> Result<Probed, ProbeError> {
    let Way::Remote(defaults) = Way::of(config.kind) else {
        return Ok(Probed::Inside);
    };
    let endpoint = endpoint(world, name, config, defaults).map_err(ProbeError::Unusable)?;
    let terms =
        terms::of(world.fs.as_ref(), name, config, network).map_err(ProbeError::Unusable)?;
    let http = Arc::clone(&world.http).with(&terms);
    let failures = &endpoint.failures;
    let failed = match timeout(PROVIDER_PROBE_MAX, http.send(question(&endpoint, config))).await {
        Err(_) => failures.late(PROVIDER_PROBE_MAX),
        Ok(Err(error)) => failures.transport(&error, Forwarded::Nothing),
        Ok(Ok(answer)) => match answer.status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                failures.status(answer.status, None, None)
            }
            status if status.is_success() => return Ok(Probed::Welcome),
            _ => return Ok(Probed::Unclear),
        },
    };
    Err(ProbeError::Failed(failed.error))
}

fn endpoint(
    world: &World,
    name: &str,
    config: &ProviderConfig,
    defaults: Defaults,
) -> Result<Endpoint, ModelError> {
    let keys = KeyFinder { environment: world.environment.as_ref(), fs: world.fs.as_ref() };
    let key = keys.find(name, config, defaults.key_variable)?;
    let mut redactor = Redactor::default();
    redactor.hide_all(config, key.as_ref());
    Endpoint::new(name, config, defaults, key, Arc::new(redactor))
        .map_err(|source| ModelError::Provider { provider: name.to_owned(), source })
}

/// A request as a model would get it, turned to the list of models.
fn question(endpoint: &Endpoint, config: &ProviderConfig) -> Request<Bytes> {
    let model = ModelRequest {
        agent: AgentId::parse("doctor").expect("a plain word is an id"),
        model: "model".to_owned(),
        system: "".into(),
        messages: Messages::default(),
        tools: Arc::from([]),
        output_tokens_max: 1,
        reasoning: false,
    };
    let mut request = endpoint.request(&model, Vec::new());
    *request.method_mut() = Method::GET;
    *request.uri_mut() = listing(request.uri(), config.kind);
    request
}

/// Where a provider says what it offers, from where its models are asked.
fn listing(asked: &Uri, kind: ProviderKind) -> Uri {
    let whole = asked.to_string();
    let (path, query) = match whole.split_once('?') {
        Some((path, query)) => (path, format!("?{query}")),
        None => (whole.as_str(), String::new()),
    };
    let base = match Way::of(kind) {
        Way::Remote(Defaults { address: Address::Completions, .. }) => {
            path.strip_suffix("/chat/completions")
        }
        Way::Remote(Defaults { address: Address::Deployment { .. }, .. }) => {
            path.rsplit_once("/deployments/").map(|(base, _)| base)
        }
        Way::Remote(Defaults { address: Address::Messages, .. }) => path.strip_suffix("/messages"),
        Way::BuiltIn | Way::Script => None,
    };
    let base = base.expect("an endpoint asks where its kind does");
    // Everybody may read what OpenRouter offers; about a key it tells elsewhere.
    let what = if kind == ProviderKind::Openrouter { "key" } else { "models" };
    format!("{base}/{what}{query}").parse().expect("a part of a URL is one, too")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_provider_tells_somewhere_what_it_offers() {
        let told = |kind, asked: &str| listing(&asked.parse().unwrap(), kind).to_string();
        assert_eq!(
            told(ProviderKind::Openai, "https://api.openai.com/v1/chat/completions"),
            "https://api.openai.com/v1/models"
        );
        assert_eq!(
            told(ProviderKind::Openrouter, "https://openrouter.ai/api/v1/chat/completions"),
            "https://openrouter.ai/api/v1/key"
        );
        assert_eq!(
            told(ProviderKind::Anthropic, "https://api.anthropic.com/v1/messages"),
            "https://api.anthropic.com/v1/models"
        );
        let azure = "https://me.openai.azure.com/openai";
        assert_eq!(
            told(
                ProviderKind::Azure,
                &format!("{azure}/deployments/model/chat/completions?api-version=2024-10-21")
            ),
            format!("{azure}/models?api-version=2024-10-21")
        );
    }
}
