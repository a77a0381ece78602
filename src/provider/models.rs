//! Which models there are: from the configuration, else from the keys in the environment, and
//! always the built-in `demo`.
//! Built once at the start; it never asks a provider.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use indexmap::IndexMap;

use super::Provider;
use super::anthropic::Messages;
use super::defaults::{Address, Defaults, Offered, Way};
use super::demo::Demo;
use super::ear::Ear;
use super::endpoint::{Endpoint, EndpointError};
use super::key::{Key, KeyFinder, Redactor, Secrets};
use super::openai::Completions;
use super::remote::{Remote, Seams};
use super::script::{self, BuildError, ScriptFileError};
use super::terms;
use super::traffic::{Traffic, Watch};
use super::wire::Wire;
use crate::config::{Config, ProviderConfig, ProviderKind};
use crate::limits::{CONTEXT_WINDOW_TOKENS, MODEL_ID_BYTES_MAX, OUTPUT_TOKENS_RESERVED};
use crate::world::{AuthoritiesError, Fs, World};

const DEMO: &str = "demo";

#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    #[error(
        "provider `{provider}` needs a key: set the environment variable `{variable}`, or name \
         another one with `api_key_env` or a file with `api_key_file`"
    )]
    MissingKey { provider: String, variable: String },
    #[error(
        "provider `{provider}` has an `auth_method` but neither `api_key_env` nor `api_key_file`"
    )]
    NoKeySource { provider: String },
    #[error("cannot read the key of provider `{provider}` from {path:?}")]
    KeyFile {
        provider: String,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("the key file {path:?} of provider `{provider}` is empty")]
    EmptyKeyFile { provider: String, path: PathBuf },
    #[error("cannot read the `ca_file` of provider `{provider}` from {path:?}")]
    CaFile {
        provider: String,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("the `ca_file` of provider `{provider}`, {path:?}, cannot be used")]
    Authorities {
        provider: String,
        path: PathBuf,
        #[source]
        source: AuthoritiesError,
    },
    #[error("provider `{provider}` cannot be used")]
    Provider {
        provider: String,
        #[source]
        source: EndpointError,
    },
    #[error("provider `{provider}` is of the type `script` and names no `script`")]
    NoScript { provider: String },
    #[error("provider `{provider}` cannot be used")]
    Script {
        provider: String,
        #[source]
        source: ScriptFileError,
    },
    #[error("the alias `{alias}` names a model of `{first}` and one of `{second}`: rename one")]
    AliasTwice { alias: String, first: String, second: String },
    #[error("the alias `{DEMO}` is the built-in model's: rename that of provider `{provider}`")]
    AliasReserved { provider: String },
    #[error("Unknown model: {name} (known: {known}, or provider/model-id)")]
    Unknown { name: String, known: String },
}

/// A model that can be asked. Cloning is cheap.
#[derive(Clone)]
pub struct Model {
    /// Its alias, or `provider/model-id`.
    pub name: Arc<str>,
    pub provider_name: Arc<str>,
    /// The model as its provider knows it.
    pub id: Arc<str>,
    pub context_window: u64,
    pub output_tokens_max: u64,
    /// Whether it is asked to think before it answers.
    pub reasoning: bool,
    pub provider: Arc<dyn Provider>,
}

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Model")
            .field("name", &self.name)
            .field("provider_name", &self.provider_name)
            .field("id", &self.id)
            .field("context_window", &self.context_window)
            .field("output_tokens_max", &self.output_tokens_max)
            .finish_non_exhaustive()
    }
}

/// The same name may stand for another model after a restart, never within a run.
impl PartialEq for Model {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && Arc::ptr_eq(&self.provider, &other.provider)
    }
}

/// Who is told of what passes between providers and us.
#[derive(Clone, Default)]
pub struct Watchers {
    /// The traffic, free of secrets.
    pub traffic: Option<Arc<dyn Traffic>>,
    /// What is answered.
    pub ear: Option<Arc<dyn Ear>>,
}

impl fmt::Debug for Watchers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watchers")
    }
}

/// All models.
pub struct Models {
    /// By alias, in the order of the configuration, with `demo`.
    by_alias: IndexMap<String, Model>,
    providers: IndexMap<Arc<str>, Arc<dyn Provider>>,
    default: Model,
    /// The one that sums up conversations, if it is not each agent's own.
    compaction: Option<Model>,
    secrets: Secrets,
    notice: Option<String>,
    found: Option<(String, ProviderConfig)>,
}

impl fmt::Debug for Models {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Models")
            .field("models", &self.by_alias.keys())
            .field("default", &self.default)
            .finish_non_exhaustive()
    }
}

impl Models {
    /// Reads every key that is needed and builds the providers. A `default_model` that does not
    /// exist is refused here, not at the first turn. `traffic` is told of all that passes between
    /// providers and us.
    pub fn new(
        world: &World,
        config: &Config,
        traffic: Option<Arc<dyn Traffic>>,
    ) -> Result<Self, ModelError> {
        Self::watched(world, config, Watchers { traffic, ear: None })
    }

    /// The same, with all who are told.
    pub fn watched(world: &World, config: &Config, watchers: Watchers) -> Result<Self, ModelError> {
        let keys = KeyFinder { environment: world.environment.as_ref(), fs: world.fs.as_ref() };
        let seams = Seams { http: Arc::clone(&world.http), chance: Arc::clone(&world.chance) };
        Self::build(&seams, keys, config, watchers)
    }

    pub(super) fn build(
        seams: &Seams,
        keys: KeyFinder<'_>,
        config: &Config,
        Watchers { traffic, ear }: Watchers,
    ) -> Result<Self, ModelError> {
        let unconfigured = config.providers.is_empty();
        let found = Offered::in_environment(keys).filter(|_| unconfigured);
        let notice = unconfigured.then(|| match found {
            Some(found) => found.notice(),
            None => DEMO_NOTICE.to_owned(),
        });
        let mut models = Self {
            by_alias: IndexMap::new(),
            providers: IndexMap::new(),
            default: demo(),
            compaction: None,
            secrets: Secrets::default(),
            notice,
            found: found.map(|found| (found.name.to_owned(), found.config())),
        };
        let found = models.found.clone();
        let found = found.as_ref().map(|(name, config)| (name, config));
        // All keys first: what passes between us and one provider may hold the key of another.
        let mut secrets = Redactor::default();
        let mut keyed = Vec::new();
        for (name, provider) in config.providers.iter().chain(found) {
            let key = key_of(keys, name, provider)?;
            secrets.hide_all(provider, key.as_ref());
            keyed.push((name, provider, key));
        }
        let secrets = Arc::new(secrets);
        let watch = traffic.map(|traffic| Watch::new(traffic, Arc::clone(&secrets)));
        for (name, provider, key) in keyed {
            let terms = terms::of(keys.fs, name, provider, &config.network)?;
            let http = Arc::clone(&seams.http).with(&terms);
            let seams = Seams { http, chance: Arc::clone(&seams.chance) };
            let built = build_provider(&seams, keys.fs, name, provider, key, &secrets)?;
            models.add(name, provider, built.watched(watch.as_ref(), ear.as_ref()))?;
        }
        if let Some(model) = models.by_alias.values().next() {
            models.default = model.clone();
        }
        models.by_alias.entry(DEMO.to_owned()).or_insert_with(demo);
        if let Some(name) = &config.default_model {
            models.default = models.resolve(Some(name))?;
        }
        if let Some(name) = &config.compaction.model {
            models.compaction = Some(models.resolve(Some(name))?);
        }
        models.secrets = Secrets(secrets);
        Ok(models)
    }

    /// Finds the model called `name`, an alias or `provider/model-id`; `None` is the default.
    pub fn resolve(&self, name: Option<&str>) -> Result<Model, ModelError> {
        let Some(name) = name else {
            return Ok(self.default.clone());
        };
        if let Some(model) = self.by_alias.get(name) {
            return Ok(model.clone());
        }
        self.of_provider(name).ok_or_else(|| ModelError::Unknown {
            name: name.chars().take(NAME_SHOWN_CHARS_MAX).collect(),
            known: self.names().collect::<Vec<_>>().join(", "),
        })
    }

    /// The model that sums up conversations; `None` where each agent's own does.
    pub fn compaction(&self) -> Option<&Model> {
        self.compaction.as_ref()
    }

    /// All that must not be seen in any text.
    pub fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// The aliases, in the order of the configuration.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_alias.keys().map(String::as_str)
    }

    /// What `serve` tells a person who configured no provider: which model answers, and why.
    pub fn notice(&self) -> Option<&str> {
        self.notice.as_deref()
    }

    /// The provider that is used since its key was found and none is configured.
    pub fn found(&self) -> Option<&(String, ProviderConfig)> {
        self.found.as_ref()
    }

    fn add(
        &mut self,
        name: &str,
        config: &ProviderConfig,
        provider: Arc<dyn Provider>,
    ) -> Result<(), ModelError> {
        let provider_name: Arc<str> = name.into();
        for (alias, model) in &config.models {
            if alias == DEMO && config.kind != ProviderKind::Demo {
                return Err(ModelError::AliasReserved { provider: name.to_owned() });
            }
            let model = Model {
                name: alias.as_str().into(),
                provider_name: Arc::clone(&provider_name),
                id: model.id.as_str().into(),
                context_window: model.context_window,
                output_tokens_max: model.max_output,
                reasoning: model.reasoning,
                provider: Arc::clone(&provider),
            };
            if let Some(first) = self.by_alias.insert(alias.clone(), model) {
                return Err(ModelError::AliasTwice {
                    alias: alias.clone(),
                    first: first.provider_name.to_string(),
                    second: name.to_owned(),
                });
            }
        }
        self.providers.insert(provider_name, provider);
        Ok(())
    }

    /// A model by `provider/model-id`: as configured where its provider lists it, else with the
    /// usual bounds. The id may have slashes of its own.
    fn of_provider(&self, name: &str) -> Option<Model> {
        let (provider_name, id) = name.split_once('/')?;
        let (provider_name, provider) = self.providers.get_key_value(provider_name)?;
        // It may stand in a URL, where dots alone lead elsewhere.
        if id.len() > MODEL_ID_BYTES_MAX || id.bytes().all(|byte| byte == b'.') {
            return None;
        }
        let listed = self
            .by_alias
            .values()
            .find(|model| model.provider_name == *provider_name && &*model.id == id);
        Some(listed.cloned().unwrap_or_else(|| Model {
            name: name.into(),
            provider_name: Arc::clone(provider_name),
            id: id.into(),
            context_window: CONTEXT_WINDOW_TOKENS,
            output_tokens_max: OUTPUT_TOKENS_RESERVED,
            reasoning: false,
            provider: Arc::clone(provider),
        }))
    }
}

const NAME_SHOWN_CHARS_MAX: usize = 100;

const DEMO_NOTICE: &str = "no model is configured: the built-in `demo` model answers. For a real one set \
     OPENAI_API_KEY, ANTHROPIC_API_KEY or OPENROUTER_API_KEY, or put this into config.json in the home of the server:\n  \
     {\"providers\": {\"local\": {\"type\": \"ollama\", \"models\": {\"small\": {\"id\": \"qwen3\"}}}}}";

fn demo() -> Model {
    Model {
        name: DEMO.into(),
        provider_name: DEMO.into(),
        id: DEMO.into(),
        context_window: CONTEXT_WINDOW_TOKENS,
        output_tokens_max: OUTPUT_TOKENS_RESERVED,
        reasoning: false,
        provider: Arc::new(Demo),
    }
}

fn key_of(
    keys: KeyFinder<'_>,
    name: &str,
    config: &ProviderConfig,
) -> Result<Option<Key>, ModelError> {
    match Way::of(config.kind) {
        Way::BuiltIn | Way::Script => Ok(None),
        Way::Remote(Defaults { key_variable, .. }) => keys.find(name, config, key_variable),
    }
}

/// A provider before it is watched.
enum Built {
    Demo,
    Remote(Remote),
}

impl Built {
    fn watched(self, watch: Option<&Watch>, ear: Option<&Arc<dyn Ear>>) -> Arc<dyn Provider> {
        match self {
            Self::Demo => Arc::new(Demo),
            Self::Remote(remote) => Arc::new(remote.watched(watch.cloned(), ear.cloned())),
        }
    }
}

fn build_provider(
    seams: &Seams,
    fs: &dyn Fs,
    name: &str,
    config: &ProviderConfig,
    key: Option<Key>,
    secrets: &Arc<Redactor>,
) -> Result<Built, ModelError> {
    let unusable = |source| ModelError::Provider { provider: name.to_owned(), source };
    match Way::of(config.kind) {
        Way::BuiltIn => Ok(Built::Demo),
        Way::Remote(defaults) => {
            let endpoint = Endpoint::new(name, config, defaults, key, Arc::clone(secrets))
                .map_err(unusable)?;
            let wire: Arc<dyn Wire> = match defaults.address {
                Address::Completions | Address::Deployment { .. } => {
                    Arc::new(Completions::of(config))
                }
                Address::Messages => Arc::new(Messages::of(config)),
            };
            Ok(Built::Remote(Remote::new(seams.clone(), endpoint, wire)))
        }
        Way::Script => {
            let provider = name.to_owned();
            match script::provider(&seams.chance, fs, name, config) {
                Ok(scripted) => Ok(Built::Remote(scripted)),
                Err(BuildError::NoScript) => Err(ModelError::NoScript { provider }),
                Err(BuildError::File(source)) => Err(ModelError::Script { provider, source }),
                Err(BuildError::Endpoint(source)) => Err(unusable(source)),
            }
        }
    }
}

#[cfg(test)]
#[path = "models_tests.rs"]
mod tests;
