//! The configuration: its keys with their types and defaults. `gather` puts its layers together.
//! A key is listed here only once it does something; the rest of the contract's keys are refused
//! by name until then. No key is ever a secret itself.

mod address;
mod environment;
mod header;
mod keys;
mod layer;
mod lineage;
mod load;
mod mcp;
mod problem;
mod project;
mod providers;
mod screen;
mod section;
mod shown;
mod source;
mod syntax;
mod tree;
mod trust;
pub mod words;

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

pub use address::is_loopback;
pub use header::HeaderText;
pub use layer::{Flag, Loaded, Notice, base, gather};
pub use lineage::{BuiltIn, Lineage, LineageError};
pub use load::{load, needing_trust};
pub use mcp::{McpConfigError, McpServer, McpServerForm, check_name};
pub use problem::{ConfigError, Problem};
pub use project::{Project, Unreadable, directories};
pub use shown::Shown;
pub use source::{Position, Source, position};
pub use trust::{Standing, TrustError, Trusted};

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Serialize;

use crate::limits;
use crate::reach::Reach;

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// An alias of `providers.*.models`, or `provider/model-id`. Default: the first model of the
    /// first provider, else `demo`.
    pub default_model: Option<String>,
    pub providers: IndexMap<String, ProviderConfig>,
    /// How often one turn may go back to the model after tool calls.
    #[schemars(range(min = 1, max = limits::TOOL_ITERATIONS_CONFIGURED_MAX))]
    pub max_tool_iterations: u32,
    #[schemars(range(min = 1, max = limits::CONCURRENT_TOOLS_CONFIGURED_MAX))]
    pub max_concurrent_tools: usize,
    /// Seconds one tool call may take.
    #[schemars(extend("exclusiveMinimum" = 0, "maximum" = limits::TIMEOUT_SECONDS_MAX))]
    pub skill_timeout: f64,
    /// Seconds a send may wait and run, where it names no `timeout`.
    #[schemars(extend("exclusiveMinimum" = 0, "maximum" = limits::TIMEOUT_SECONDS_MAX))]
    pub turn_timeout: f64,
    /// Seconds somebody has to confirm a tool call.
    #[schemars(extend("exclusiveMinimum" = 0, "maximum" = limits::TIMEOUT_SECONDS_MAX))]
    pub confirmation_timeout: f64,
    /// Messages of one conversation that are in memory; all of them are in the database.
    #[schemars(range(min = 1, max = limits::MESSAGES_LOADED_CONFIGURED_MAX))]
    pub max_messages: usize,
    pub compaction: CompactionConfig,
    pub permissions: PermissionsConfig,
    pub network: NetworkConfig,
    pub server: ServerConfig,
    pub storage: StorageConfig,
    pub events: EventsConfig,
    /// Those of `mcp.json`, by name; no key of this file.
    #[serde(skip)]
    pub mcp_servers: BTreeMap<String, McpServer>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            default_model: None,
            providers: IndexMap::new(),
            max_tool_iterations: limits::TOOL_ITERATIONS_MAX,
            max_concurrent_tools: limits::CONCURRENT_TOOLS_MAX,
            skill_timeout: limits::SKILL_TIMEOUT_SECONDS,
            turn_timeout: limits::TURN_TIMEOUT_SECONDS,
            confirmation_timeout: limits::CONFIRMATION_TIMEOUT_SECONDS,
            max_messages: limits::MESSAGES_LOADED_MAX,
            compaction: CompactionConfig::default(),
            permissions: PermissionsConfig::default(),
            network: NetworkConfig::default(),
            server: ServerConfig::default(),
            storage: StorageConfig::default(),
            events: EventsConfig::default(),
            mcp_servers: BTreeMap::new(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProviderConfig {
    #[serde(rename = "type")]
    pub kind: ProviderKind,
    pub base_url: Option<String>,
    /// The environment variable that holds the key.
    pub api_key_env: Option<String>,
    /// A file that holds the key, and nothing else.
    pub api_key_file: Option<PathBuf>,
    pub auth_method: Option<AuthMethod>,
    /// Further request headers. `${agent_id}` in a value stands for the agent that asks.
    #[serde(default)]
    pub headers: BTreeMap<String, HeaderText>,
    /// Seconds until the response headers.
    #[serde(default = "request_timeout")]
    #[schemars(extend("exclusiveMinimum" = 0, "maximum" = limits::TIMEOUT_SECONDS_MAX))]
    pub request_timeout: f64,
    /// Seconds without a byte of the answer.
    #[serde(default = "stream_idle_timeout")]
    #[schemars(extend("exclusiveMinimum" = 0, "maximum" = limits::TIMEOUT_SECONDS_MAX))]
    pub stream_idle_timeout: f64,
    /// Sends requests unencrypted to hosts other than this one.
    #[serde(default)]
    pub allow_insecure_http: bool,
    /// How often a request that failed in passing is repeated.
    #[serde(default = "max_retries")]
    #[schemars(range(max = limits::PROVIDER_RETRIES_CONFIGURED_MAX))]
    pub max_retries: u32,
    /// Marks the part of a request that stays the same, where the wire knows such marks.
    #[serde(default = "prompt_caching")]
    pub prompt_caching: bool,
    /// Certificates (PEM) of authorities that are trusted besides the machine's own.
    pub ca_file: Option<PathBuf>,
    /// Of the type `azure`: the version of its interface.
    pub api_version: Option<String>,
    /// Of the type `azure`: the deployment that is asked; without it the model's id.
    pub deployment: Option<String>,
    /// Of the type `script`: a scenario file, of which only the `[[model]]` entries are read.
    pub script: Option<PathBuf>,
    /// The models it offers, by alias.
    #[schemars(extend("minProperties" = 1))]
    pub models: IndexMap<String, ModelConfig>,
}

impl ProviderConfig {
    /// A provider of which only the type is given.
    pub fn of(kind: ProviderKind) -> Self {
        Self {
            kind,
            base_url: None,
            api_key_env: None,
            api_key_file: None,
            auth_method: None,
            headers: BTreeMap::new(),
            request_timeout: request_timeout(),
            stream_idle_timeout: stream_idle_timeout(),
            allow_insecure_http: false,
            max_retries: max_retries(),
            prompt_caching: prompt_caching(),
            ca_file: None,
            api_version: None,
            deployment: None,
            script: None,
            models: IndexMap::new(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProviderKind {
    Openai,
    Openrouter,
    Ollama,
    Vllm,
    Azure,
    Anthropic,
    Demo,
    Script,
}

impl ProviderKind {
    pub const ALL: [Self; 8] = [
        Self::Openai,
        Self::Openrouter,
        Self::Ollama,
        Self::Vllm,
        Self::Azure,
        Self::Anthropic,
        Self::Demo,
        Self::Script,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Openai => "openai",
            Self::Openrouter => "openrouter",
            Self::Ollama => "ollama",
            Self::Vllm => "vllm",
            Self::Azure => "azure",
            Self::Anthropic => "anthropic",
            Self::Demo => "demo",
            Self::Script => "script",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AuthMethod {
    Bearer,
    ApiKey,
    XApiKey,
    None,
}

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelConfig {
    /// The model as its provider knows it.
    pub id: String,
    #[serde(default = "context_window")]
    #[schemars(range(min = 1, max = limits::CONTEXT_WINDOW_TOKENS_MAX))]
    pub context_window: u64,
    /// Tokens kept free for the answer, and asked for at most.
    #[serde(default = "max_output")]
    #[schemars(range(min = 1, max = limits::CONTEXT_WINDOW_TOKENS_MAX))]
    pub max_output: u64,
    /// Whether the model is asked to think before it answers.
    #[serde(default)]
    pub reasoning: bool,
}

impl ModelConfig {
    /// A model of which only the id is given.
    pub fn of(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            context_window: context_window(),
            max_output: max_output(),
            reasoning: false,
        }
    }
}

/// When the older messages of a conversation become a summary. Both shares are of what the agent's
/// model takes: its window less `max_output`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CompactionConfig {
    /// Whether they do by themselves.
    pub enabled: bool,
    /// Who sums up, by alias or `provider/model-id`. Default: the agent's own model.
    pub model: Option<String>,
    /// The share from which on they do.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub trigger_threshold: f64,
    /// The share that the newest messages may have to stay word for word.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub recent_preserve_ratio: f64,
}

impl Default for CompactionConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            model: None,
            trigger_threshold: limits::COMPACTION_THRESHOLD,
            recent_preserve_ratio: limits::COMPACTION_KEPT,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PermissionsConfig {
    pub default_preset: String,
    pub presets: BTreeMap<String, PresetConfig>,
    /// Directories closed to every agent below `yolo`.
    pub blocked_paths: Vec<PathBuf>,
}

impl Default for PermissionsConfig {
    fn default() -> Self {
        Self {
            default_preset: "sandboxed".to_owned(),
            presets: BTreeMap::new(),
            blocked_paths: Vec::new(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PresetConfig {
    /// The preset it starts from: a built-in one, or another one of the file.
    pub extends: String,
    pub description: Option<String>,
    /// The directories its agents may use, of those that their level allows; an empty list is none.
    pub allowed_paths: Option<Vec<PathBuf>>,
    /// Directories closed to its agents.
    #[serde(default)]
    pub blocked_paths: Vec<PathBuf>,
    #[serde(default)]
    pub tools: BTreeMap<String, ToolConfig>,
}

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolConfig {
    pub enabled: Option<bool>,
    /// The directories this tool may use, instead of those of the preset.
    pub allowed_paths: Option<Vec<PathBuf>>,
    /// Seconds one call of this tool may take.
    #[schemars(extend("exclusiveMinimum" = 0, "maximum" = limits::TIMEOUT_SECONDS_MAX))]
    pub timeout: Option<f64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NetworkConfig {
    /// Lets providers be asked at private addresses other than this machine.
    pub allow_private: bool,
}

impl NetworkConfig {
    pub fn reach(&self) -> Reach {
        if self.allow_private { Reach::Private } else { Reach::Public }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ServerConfig {
    /// Always this machine itself; `localhost` means 127.0.0.1.
    #[schemars(with = "String", extend("enum" = ["127.0.0.1", "localhost", "::1"]))]
    pub host: IpAddr,
    pub port: u16,
    #[schemars(range(min = 1, max = limits::CONNECTIONS_CONFIGURED_MAX))]
    pub max_connections: usize,
    /// Requests that execute at the same time; waiting for a turn does not count.
    #[schemars(range(min = 1, max = limits::EXECUTING_CONFIGURED_MAX))]
    pub max_concurrent: usize,
    /// Seconds without a request, a running turn and a reader of events after which the server stops.
    /// Default: it never does by itself.
    #[schemars(extend("exclusiveMinimum" = 0, "maximum" = limits::TIMEOUT_SECONDS_MAX))]
    pub idle_timeout: Option<f64>,
    /// Seconds that running turns may go on once the server is asked to stop.
    #[schemars(range(min = 0.0, max = limits::TIMEOUT_SECONDS_MAX))]
    pub shutdown_grace: f64,
    pub log_level: LogLevel,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            host: IpAddr::from([127, 0, 0, 1]),
            port: 8765,
            max_connections: limits::CONNECTIONS_MAX,
            max_concurrent: limits::EXECUTING_MAX,
            idle_timeout: None,
            shutdown_grace: limits::SHUTDOWN_GRACE_SECONDS,
            log_level: LogLevel::Info,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StorageConfig {
    /// `full` survives the loss of power with every commit, `normal` may lose the last ones.
    pub sync: SyncMode,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SyncMode {
    #[default]
    Full,
    Normal,
}

impl SyncMode {
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Normal => "normal",
        }
    }
}

impl fmt::Display for SyncMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EventsConfig {
    pub retain: RetainConfig,
}

/// How long events are kept; what is over either bound is forgotten.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RetainConfig {
    #[schemars(range(min = 1, max = limits::EVENTS_KEPT_CONFIGURED_MAX))]
    pub per_agent: u64,
    #[schemars(range(min = 1, max = limits::EVENTS_KEPT_DAYS_CONFIGURED_MAX))]
    pub days: u64,
}

impl Default for RetainConfig {
    fn default() -> Self {
        Self { per_agent: limits::EVENTS_KEPT_PER_AGENT, days: limits::EVENTS_KEPT_DAYS }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

impl LogLevel {
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }
}

impl fmt::Display for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The JSON schema of a configuration file, for editors.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(Config).to_value()
}

fn request_timeout() -> f64 {
    limits::PROVIDER_REQUEST_SECONDS
}

fn stream_idle_timeout() -> f64 {
    limits::PROVIDER_STREAM_IDLE_SECONDS
}

fn max_retries() -> u32 {
    limits::PROVIDER_RETRIES
}

fn prompt_caching() -> bool {
    true
}

fn context_window() -> u64 {
    limits::CONTEXT_WINDOW_TOKENS
}

fn max_output() -> u64 {
    limits::OUTPUT_TOKENS_RESERVED
}
