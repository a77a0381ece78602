//! What a provider has where the configuration does not say, and which one is used where it says
//! nothing at all.

use indexmap::IndexMap;

use super::key::KeyFinder;
use crate::config::{AuthMethod, ModelConfig, ProviderConfig, ProviderKind};

/// How the models of a type are reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Remote(Defaults),
    BuiltIn,
    Script,
}

/// The defaults of a type whose models are on another machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Defaults {
    /// Nobody can guess that of a resource of one's own.
    pub(super) base_url: Option<&'static str>,
    pub(super) address: Address,
    pub(super) key_variable: Option<&'static str>,
    pub(super) auth_method: AuthMethod,
    /// What the wire itself wants in every request.
    pub(super) headers: &'static [(&'static str, &'static str)],
}

/// What follows the base URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Address {
    Completions,
    /// Chat completions of one deployment, by a version of the interface.
    Deployment {
        api_version: &'static str,
    },
    Messages,
}

/// Chat completions at a place of its own.
pub(super) const fn completions(
    base_url: &'static str,
    key_variable: Option<&'static str>,
) -> Defaults {
    Defaults {
        base_url: Some(base_url),
        address: Address::Completions,
        key_variable,
        auth_method: AuthMethod::Bearer,
        headers: &[],
    }
}

/// The last version that is generally available, not a preview.
const AZURE_VERSION: &str = "2024-10-21";
const ANTHROPIC_VERSION: (&str, &str) = ("anthropic-version", "2023-06-01");

impl Way {
    pub(super) fn of(kind: ProviderKind) -> Self {
        Self::Remote(match kind {
            ProviderKind::Openai => {
                completions("https://api.openai.com/v1", Some(OPENAI.key_variable))
            }
            ProviderKind::Openrouter => {
                completions("https://openrouter.ai/api/v1", Some(OPENROUTER.key_variable))
            }
            ProviderKind::Ollama => completions("http://localhost:11434/v1", None),
            ProviderKind::Vllm => completions("http://localhost:8000/v1", None),
            ProviderKind::Azure => Defaults {
                base_url: None,
                address: Address::Deployment { api_version: AZURE_VERSION },
                key_variable: Some("AZURE_OPENAI_KEY"),
                auth_method: AuthMethod::ApiKey,
                headers: &[],
            },
            ProviderKind::Anthropic => Defaults {
                base_url: Some("https://api.anthropic.com"),
                address: Address::Messages,
                key_variable: Some(ANTHROPIC.key_variable),
                auth_method: AuthMethod::XApiKey,
                headers: &[ANTHROPIC_VERSION],
            },
            ProviderKind::Demo => return Self::BuiltIn,
            ProviderKind::Script => return Self::Script,
        })
    }
}

/// A provider that is used where nothing is configured and its key is in the environment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offered {
    pub(super) name: &'static str,
    kind: ProviderKind,
    key_variable: &'static str,
    model: &'static str,
}

// A model that every account may stream, that calls tools, and that spends none of a short answer
// on reasoning; OpenRouter has the same one.
const OPENAI: Offered = Offered {
    name: "openai",
    kind: ProviderKind::Openai,
    key_variable: "OPENAI_API_KEY",
    model: "gpt-4.1",
};
const ANTHROPIC: Offered = Offered {
    name: "anthropic",
    kind: ProviderKind::Anthropic,
    key_variable: "ANTHROPIC_API_KEY",
    model: "claude-sonnet-4-5",
};
const OPENROUTER: Offered = Offered {
    name: "openrouter",
    kind: ProviderKind::Openrouter,
    key_variable: "OPENROUTER_API_KEY",
    model: "openai/gpt-4.1",
};

impl Offered {
    /// The first one whose key is there.
    pub(super) fn in_environment(keys: KeyFinder<'_>) -> Option<Self> {
        [OPENAI, ANTHROPIC, OPENROUTER]
            .into_iter()
            .find(|offered| keys.in_variable(offered.key_variable).is_some())
    }

    pub(super) fn notice(self) -> String {
        format!(
            "no model is configured: {} is set, so `{}` of {} answers. For another one set \
             `providers` in config.json in the home of the server",
            self.key_variable, self.model, self.name
        )
    }

    pub(super) fn config(self) -> ProviderConfig {
        let model = ModelConfig::of(self.model);
        ProviderConfig {
            models: IndexMap::from([(self.model.to_owned(), model)]),
            ..ProviderConfig::of(self.kind)
        }
    }
}
