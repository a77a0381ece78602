//! The parts of a scenario as they are written down: the keys that `nexus3-sim` reads, as far as a
//! recording uses them. Types only.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::provider::script::{Ask, Chunks, ScriptUsage, Stall, Time, Times};

#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Model {
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
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) stdout: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) stderr: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) exit: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) takes: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) writes: Files,
}

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
