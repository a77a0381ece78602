//! `[[mcp]]`: the MCP servers of a scenario, with what their tools answer and what is wrong with them.
//! Types and their checks only; they are played by `mcp`.

use std::collections::{BTreeMap, BTreeSet};

use nexus3::provider::script::{Time, Times};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::MCP;
use super::place::Place;

#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Mcp")]
pub struct McpServer {
    /// What it is called in mcp.json. One over stdio is the program `mcp-NAME`.
    pub name: String,
    /// How it is reached. Default: stdio.
    #[serde(default)]
    pub transport: Transport,
    /// Whether it stands in mcp.json of the home, unless `[files]` has one. Default: true.
    #[serde(default = "yes")]
    pub configured: bool,
    /// What mcp.json gives the program.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// What mcp.json sends to the host, which refuses requests without it.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The revision of the protocol it speaks.
    #[serde(default)]
    pub revision: Revision,
    /// How long it takes for its first answer.
    pub starts: Option<Time>,
    /// What its program writes to its error output when it starts.
    #[serde(default)]
    pub stderr: String,
    /// How many tools it lists at once. Default: all.
    #[schemars(range(min = 1))]
    pub page: Option<usize>,
    /// What it has. Several of one name are used in order.
    #[serde(default)]
    pub tool: Vec<McpTool>,
}

/// The host of those that are reached over HTTP, where there are any.
pub fn host(servers: &[McpServer]) -> Option<&'static str> {
    servers.iter().any(|server| server.transport == Transport::Http).then_some(MCP)
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "McpTransport")]
pub enum Transport {
    #[default]
    Stdio,
    Http,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(rename = "McpRevision")]
pub enum Revision {
    #[serde(rename = "2024-11-05")]
    Of2024,
    #[default]
    #[serde(rename = "2025-06-18")]
    Of2025,
    #[serde(rename = "2026-07-28")]
    Of2026,
}

impl Revision {
    pub fn name(self) -> &'static str {
        match self {
            Self::Of2024 => "2024-11-05",
            Self::Of2025 => "2025-06-18",
            Self::Of2026 => "2026-07-28",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct McpTool {
    pub name: String,
    #[serde(default)]
    pub description: String,
    /// Its arguments. Default: any.
    pub schema: Option<Map<String, Value>>,
    /// It is only there once a call of another tool `changes_tools`.
    #[serde(default)]
    pub later: bool,
    /// How often it answers so; then the next entry of its name does. Default: always.
    pub times: Option<Times>,
    /// How long a call takes. Default: no time.
    pub takes: Option<McpTakes>,
    /// How often it tells how far it is, before it ends.
    #[serde(default)]
    pub progress: u64,
    /// The text of its result.
    #[serde(default)]
    pub returns: String,
    /// How often that text stands there. Default: once.
    #[schemars(range(min = 1))]
    pub repeat: Option<usize>,
    /// Further content, as the protocol has it.
    #[serde(default)]
    pub content: Vec<Value>,
    /// Structured content.
    pub structured: Option<Value>,
    /// The result is an error.
    #[serde(default)]
    pub fails: bool,
    /// What goes wrong.
    pub fault: Option<McpFault>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum McpTakes {
    Forever,
    #[serde(untagged)]
    Time(Time),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum McpFault {
    /// It ends, or closes the connection, instead of an answer.
    Dies,
    /// It answers twice.
    Twice,
    /// It answers what nobody asked, and then what was asked.
    WrongId,
    /// It says very much that nobody asked for.
    Floods,
    /// It has other tools from then on, and says so.
    ChangesTools,
    /// It answers with an error of the protocol.
    Refuses,
}

fn yes() -> bool {
    true
}

pub(super) fn check(root: &Place<'_>, servers: &[McpServer]) {
    let mut names = BTreeSet::new();
    for (place, server) in root.items_of("mcp").iter().zip(servers) {
        if let Err(error) = nexus3::config::check_name(&server.name) {
            place.refuse_at("name", &error.to_string(), "choose another name");
        }
        if !names.insert(&server.name) {
            place.refuse_at("name", "another MCP server has this name", "choose another name");
        }
        let misplaced = match server.transport {
            Transport::Stdio => ("headers", !server.headers.is_empty()),
            Transport::Http => ("env", !server.env.is_empty()),
        };
        if let (key, true) = misplaced {
            place.refuse_at(key, "it does not go with this transport", "remove it");
        }
    }
}
