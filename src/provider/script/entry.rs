//! One `[[model]]` entry of a scenario file. Types only.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What a scripted model says to one request, or how it fails. Entries are used in order for the
/// requests they match.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Entry {
    /// The agent whose requests it answers; any agent's where neither this nor `model` is given.
    pub agent: Option<String>,
    /// The alias of the model whose requests it answers.
    pub model: Option<String>,
    /// A regular expression that the last message must match.
    pub when: Option<String>,
    /// What is new in the request since the agent's request before, as a recording keeps it. A replay
    /// in which it is other tells where.
    pub shown: Option<String>,
    pub says: Option<Chunks>,
    /// What the model thinks before it speaks.
    pub thinks: Option<Chunks>,
    pub asks: Vec<Ask>,
    /// Before the response headers.
    pub delay: Option<Time>,
    /// What has to have happened before them, where the steps of the file are played as well; a model
    /// without them does not wait.
    pub after: Option<After>,
    /// Between two chunks.
    pub pause: Option<Time>,
    /// How often the entry is used. Default: once.
    pub times: Times,
    pub usage: Option<ScriptUsage>,
    /// The finish reason. Default: `stop`, or `tool_calls` with `asks`.
    pub finish: Option<String>,
    pub fault: Option<Fault>,
}

/// What an answer waits for: a step, an event, or both.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "AnswerAfter")]
pub struct After {
    /// The name of a step that has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// The type of an event that the server has told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// Whose event it is. Default: any agent's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Which of these events is meant. Default: the first.
    #[schemars(range(min = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nth: Option<u64>,
}

/// A text, whole or in the chunks in which it is streamed.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(untagged, expecting = "expected a string or a list of strings")]
pub enum Chunks {
    One(String),
    Many(Vec<String>),
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    pub tool: String,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub args: Map<String, Value>,
    /// The arguments as the model writes them, in place of `args`: with a null, which TOML has not, or
    /// as no JSON at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args_json: Option<String>,
}

impl Ask {
    /// The arguments as they are written.
    pub fn arguments(&self) -> String {
        let args = || Value::Object(self.args.clone()).to_string();
        self.args_json.clone().unwrap_or_else(args)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScriptUsage {
    pub input: u64,
    pub output: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Times {
    Exactly(u64),
    Always,
}

/// How the exchange goes wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[expect(clippy::struct_excessive_bools, reason = "a scenario names each fault by its own key")]
pub struct Fault {
    /// Answers with this HTTP status instead.
    pub status: Option<u16>,
    /// The `Retry-After` that comes with `status`.
    pub retry_after: Option<Time>,
    /// What the provider says of it, with `status` or `error_in_stream`.
    pub message: Option<String>,
    /// Closes the connection before any byte of an answer.
    pub refuse: bool,
    /// Ends the stream without a finish reason.
    pub eof_without_finish: bool,
    /// Sends a record that is no JSON.
    pub bad_json: bool,
    /// Sends an error object in the stream.
    pub error_in_stream: bool,
    /// Gives all tool calls the same id.
    pub duplicate_tool_ids: bool,
    /// Gives no tool call an id.
    pub missing_tool_ids: bool,
    /// Sends tool arguments that are no JSON object.
    pub bad_arguments: bool,
    /// Falls silent: before the headers, or after so many chunks.
    pub stall: Option<Stall>,
    /// Breaks the connection after so many chunks.
    pub reset_after: Option<u64>,
    /// Sends the body in pieces of so many bytes.
    pub split: Option<u64>,
    /// Sends one byte at a time, with this time between them.
    pub drip: Option<Time>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase", expecting = "expected \"headers\" or a number of chunks")]
pub enum Stall {
    Headers,
    #[serde(untagged)]
    Chunks(u64),
}

/// A length of time as scenario files write it: `20ms`, `2s`, `5m`, `1h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(pub Duration);
