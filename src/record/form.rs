//! The parts of a scenario as they are written down: the keys that `nexus3-sim` reads, as far as a
//! recording uses them. Types only.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::provider::script::{After, Ask, Chunks, ScriptUsage, Stall, Time, Times};

#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Model {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) agent: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) shown: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) times: Option<Times>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) thinks: Option<Chunks>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) says: Option<Chunks>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) asks: Vec<Ask>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) finish: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) usage: Option<ScriptUsage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) delay: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) after: Option<After>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) pause: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fault: Option<Fault>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Fault {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) retry_after: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) refuse: Option<Yes>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) eof_without_finish: Option<Yes>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) bad_json: Option<Yes>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error_in_stream: Option<Yes>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stall: Option<Stall>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reset_after: Option<u64>,
}

/// A key that is there or is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(into = "bool")]
pub(super) struct Yes;

impl From<Yes> for bool {
    fn from(Yes: Yes) -> Self {
        true
    }
}

#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Program {
    pub(super) run: Vec<String>,
    pub(super) times: u64,
    #[serde(skip_serializing_if = "Output::is_empty")]
    pub(super) stdout: Output,
    #[serde(skip_serializing_if = "Output::is_empty")]
    pub(super) stderr: Output,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) exit: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) signal: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) takes: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) writes: Files,
}

/// What a program says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(super) enum Output {
    Whole(String),
    /// The beginning, something as long as what is missing, and the end.
    Parts(String, Filler, String),
}

impl Default for Output {
    fn default() -> Self {
        Self::Whole(String::new())
    }
}

impl Output {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Filler {
    pub(super) text: &'static str,
    pub(super) repeat: u64,
}

/// The files and outputs of a scenario are no longer.
pub(super) const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

pub(super) type Files = BTreeMap<String, File>;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(super) enum File {
    Text(String),
    TextWithMode {
        text: String,
        mode: u32,
    },
    Repeated {
        text: &'static str,
        repeat: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        mode: Option<u32>,
    },
    Base64 {
        base64: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        mode: Option<u32>,
    },
    Dir {
        dir: Yes,
        #[serde(skip_serializing_if = "Option::is_none")]
        mode: Option<u32>,
    },
    Symlink {
        symlink: String,
    },
    Remove {
        remove: Yes,
    },
}

impl File {
    /// A directory as it is usually made.
    pub(super) const PLAIN_DIR: Self = Self::Dir { dir: Yes, mode: None };

    /// A mode is given where it is not the usual one.
    pub(super) fn text(text: String, mode: Option<u32>) -> Self {
        match mode {
            None => Self::Text(text),
            Some(mode) => Self::TextWithMode { text, mode },
        }
    }

    /// The same with other permission bits.
    pub(super) fn with_mode(self, mode: Option<u32>) -> Self {
        match self {
            Self::Text(text) | Self::TextWithMode { text, .. } => Self::text(text, mode),
            Self::Repeated { text, repeat, .. } => Self::Repeated { text, repeat, mode },
            Self::Base64 { base64, .. } => Self::Base64 { base64, mode },
            Self::Dir { dir, .. } => Self::Dir { dir, mode },
            Self::Symlink { .. } | Self::Remove { .. } => self,
        }
    }
}

#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Step {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) after: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) on: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) nth: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) in_order: Option<Yes>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) client: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) call: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) agent: Option<String>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub(super) params: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) params_json: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) headers: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) watch: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) unwatch: Option<Yes>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) disconnect: Option<Yes>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) confirm: Option<Confirm>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) raw: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sleep: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stop: Option<&'static str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) files: Files,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) background: Option<Yes>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) expect: Option<Value>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) save: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub(super) expect_error: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) expect_http: Option<u16>,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Confirm {
    pub(super) tool: String,
    pub(super) decision: String,
    pub(super) agent: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) delay: Option<Time>,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct McpServer {
    pub(super) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) transport: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) configured: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) missing: Option<Yes>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) revision: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) starts: Option<Time>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct McpTool {
    pub(super) name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) description: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) schema: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) schema_json: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) since: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) until: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) times: Option<Times>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) takes: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) progress: Vec<McpProgress>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) returns: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) repeat: Option<usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) content: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) structured: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) structured_json: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fails: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<McpError>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fault: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) exit: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) signal: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<u16>,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct McpProgress {
    pub(super) progress: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) total: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) message: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct McpError {
    pub(super) code: i64,
    pub(super) message: String,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Agent {
    pub(super) id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) parent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) depth: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) saved: Option<Yes>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) last: Option<Yes>,
    pub(super) preset: String,
    pub(super) model: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cwd: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) root: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) write_paths: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) disabled_tools: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) enabled_tools: Vec<String>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub(super) allowances: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ceiling: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) limits: Option<Limits>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) used: Option<Used>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tokens: Option<ScriptUsage>,
    pub(super) system_prompt: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) system_prompt_path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) summary: Option<Summary>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) messages: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) messages_json: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) requests: Vec<Request>,
}

/// A request that has ended.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Request {
    pub(super) id: String,
    pub(super) content: String,
    pub(super) status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) outcome_json: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Limits {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max_agents: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max_turns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) deadline: Option<Time>,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Used {
    pub(super) turns: u64,
    pub(super) tokens: u64,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Summary {
    pub(super) upto: u64,
    pub(super) text: String,
}
