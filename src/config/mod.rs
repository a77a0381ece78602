//! The configuration: its keys with their types and defaults. `load` reads the file.
//! A key is listed here only once it does something; the rest of the contract's keys are refused
//! by name until then.

mod load;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

pub use load::{ConfigError, Source, load};
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::limits;

#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Config {
    /// An alias of `providers.*.models`, or `provider/model-id`. Default: the first model of the
    /// first provider, else `demo`.
    pub default_model: Option<String>,
    pub providers: IndexMap<String, ProviderConfig>,
    /// How often one turn may go back to the model after tool calls.
    pub max_tool_iterations: u32,
    pub max_concurrent_tools: usize,
    /// Seconds one tool call may take.
    pub skill_timeout: f64,
    /// Seconds a send may wait and run, where it names no `timeout`.
    pub turn_timeout: f64,
    pub permissions: PermissionsConfig,
    pub server: ServerConfig,
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
            permissions: PermissionsConfig::default(),
            server: ServerConfig::default(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
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
    pub headers: BTreeMap<String, String>,
    /// Seconds until the response headers.
    #[serde(default = "request_timeout")]
    pub request_timeout: f64,
    /// Seconds without a byte of the answer.
    #[serde(default = "stream_idle_timeout")]
    pub stream_idle_timeout: f64,
    /// Sends requests unencrypted to hosts other than this one.
    #[serde(default)]
    pub allow_insecure_http: bool,
    /// The models it offers, by alias.
    pub models: IndexMap<String, ModelConfig>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProviderKind {
    Openai,
    Openrouter,
    Ollama,
    Vllm,
    Demo,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AuthMethod {
    Bearer,
    ApiKey,
    XApiKey,
    None,
}

#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
pub struct ModelConfig {
    /// The model as its provider knows it.
    pub id: String,
    #[serde(default = "context_window")]
    pub context_window: u64,
    /// Tokens kept free for the answer, and asked for at most.
    #[serde(default = "max_output")]
    pub max_output: u64,
}

#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(default)]
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

#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
pub struct PresetConfig {
    /// The preset it starts from: a built-in one.
    pub extends: String,
    pub description: Option<String>,
    #[serde(default)]
    pub tools: BTreeMap<String, ToolConfig>,
}

#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
pub struct ToolConfig {
    pub enabled: Option<bool>,
    /// Seconds one call of this tool may take.
    pub timeout: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ServerConfig {
    #[schemars(with = "String")]
    #[serde(deserialize_with = "load::loopback")]
    pub host: IpAddr,
    pub port: u16,
    pub max_connections: usize,
    /// Requests that execute at the same time; waiting for a turn does not count.
    pub max_concurrent: usize,
    /// Seconds that running turns may go on once the server is asked to stop.
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
            shutdown_grace: limits::SHUTDOWN_GRACE_SECONDS,
            log_level: LogLevel::Info,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

fn request_timeout() -> f64 {
    limits::PROVIDER_REQUEST_SECONDS
}

fn stream_idle_timeout() -> f64 {
    limits::PROVIDER_STREAM_IDLE_SECONDS
}

fn context_window() -> u64 {
    limits::CONTEXT_WINDOW_TOKENS
}

fn max_output() -> u64 {
    limits::OUTPUT_TOKENS_RESERVED
}
