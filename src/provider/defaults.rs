//! What a provider has where the configuration does not say, and which one is used where it says
//! nothing at all.

use std::collections::BTreeMap;

use indexmap::IndexMap;

use super::key::KeyFinder;
use crate::config::{ModelConfig, ProviderConfig, ProviderKind};
use crate::limits::{CONTEXT_WINDOW_TOKENS, OUTPUT_TOKENS_RESERVED};
use crate::limits::{PROVIDER_REQUEST_SECONDS, PROVIDER_STREAM_IDLE_SECONDS};

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
        let model = unset_model(self.model);
        ProviderConfig {
            models: IndexMap::from([(self.model.to_owned(), model)]),
            ..unset(self.kind)
        }
    }
}

/// The configuration of a provider of which only the type is given.
pub(super) fn unset(kind: ProviderKind) -> ProviderConfig {
    ProviderConfig {
        kind,
        base_url: None,
        api_key_env: None,
        api_key_file: None,
        auth_method: None,
        headers: BTreeMap::new(),
        request_timeout: PROVIDER_REQUEST_SECONDS,
        stream_idle_timeout: PROVIDER_STREAM_IDLE_SECONDS,
        allow_insecure_http: false,
        script: None,
        models: IndexMap::new(),
    }
}

/// The configuration of a model of which only the id is given.
pub(super) fn unset_model(id: &str) -> ModelConfig {
    ModelConfig {
        id: id.to_owned(),
        context_window: CONTEXT_WINDOW_TOKENS,
        max_output: OUTPUT_TOKENS_RESERVED,
    }
}
