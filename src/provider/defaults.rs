//! What a provider has where the configuration does not say, and which one is used where it says
//! nothing at all.

use indexmap::IndexMap;

use super::key::KeyFinder;
use crate::config::{ModelConfig, ProviderConfig, ProviderKind};

/// How the models of a type are reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Completions(Defaults),
    BuiltIn,
    Script,
}

/// The defaults of a type that speaks chat completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Defaults {
    pub(super) base_url: &'static str,
    pub(super) key_variable: Option<&'static str>,
}

impl Way {
    pub(super) fn of(kind: ProviderKind) -> Self {
        let (base_url, key_variable) = match kind {
            ProviderKind::Openai => ("https://api.openai.com/v1", Some(OPENAI.key_variable)),
            ProviderKind::Openrouter => {
                ("https://openrouter.ai/api/v1", Some(OPENROUTER.key_variable))
            }
            ProviderKind::Ollama => ("http://localhost:11434/v1", None),
            ProviderKind::Vllm => ("http://localhost:8000/v1", None),
            ProviderKind::Azure => ("", Some("AZURE_OPENAI_KEY")),
            ProviderKind::Anthropic => ("https://api.anthropic.com", Some("ANTHROPIC_API_KEY")),
            ProviderKind::Demo => return Self::BuiltIn,
            ProviderKind::Script => return Self::Script,
        };
        Self::Completions(Defaults { base_url, key_variable })
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
const OPENROUTER: Offered = Offered {
    name: "openrouter",
    kind: ProviderKind::Openrouter,
    key_variable: "OPENROUTER_API_KEY",
    model: "openai/gpt-4.1",
};

impl Offered {
    /// The first one whose key is there.
    pub(super) fn in_environment(keys: KeyFinder<'_>) -> Option<Self> {
        [OPENAI, OPENROUTER]
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
