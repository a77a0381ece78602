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
    /// Whether it cannot be connected to: there is no such program, and nobody at its address.
    #[serde(default)]
    pub missing: bool,
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
    /// Whether those who listen are told that its tools are others: over HTTP on a stream of events of its
    /// own, of the newest revision in a subscription. Else it says so beside the answer that changed them,
    /// and one of the newest revision not at all.
    #[serde(default)]
    pub stream: bool,
    /// How many calls a session over HTTP lasts, before it is not known any more. Default: for ever, which
    /// ends with the host.
    #[schemars(range(min = 1))]
    pub session_calls: Option<u64>,
    /// It sends everybody elsewhere.
    pub moved: Option<McpMoved>,
    /// How many tools it lists at once. Default: all.
    #[schemars(range(min = 1))]
    pub page: Option<usize>,
    /// Tools that it lists a second time at the end.
    #[serde(default)]
    pub twins: Vec<String>,
    /// What it has. Several of one name are used in order.
    #[serde(default)]
    pub tool: Vec<McpTool>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct McpMoved {
    /// A path at its host or a whole URL, in which `${elsewhere}` is another origin of the same host.
    pub to: String,
    /// What it answers. Default: 307.
    #[serde(default = "temporarily")]
    #[schemars(range(min = 300, max = 399))]
    pub status: u16,
}

/// What stands for another origin of the same host.
pub const ELSEWHERE: &str = "${elsewhere}";

fn temporarily() -> u16 {
    307
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
    /// The same as a JSON object, in place of `schema`: with a null, which TOML has not.
    pub schema_json: Option<String>,
    /// It is only there once a call of another tool `changes_tools`.
    #[serde(default)]
    pub later: bool,
    /// It is only there from this time on that the server is asked for its tools. Default: the first.
    #[schemars(range(min = 1))]
    pub since: Option<u64>,
    /// And up to this one. Default: for ever.
    #[schemars(range(min = 1))]
    pub until: Option<u64>,
    /// How often it answers so; then the next entry of its name does. Default: always.
    pub times: Option<Times>,
    /// How long a call takes. Default: no time.
    pub takes: Option<McpTakes>,
    /// How often it tells how far it is, before it ends, or what it tells.
    #[serde(default)]
    pub progress: McpProgress,
    /// What it asks us before it answers, and does not wait for.
    pub asks: Option<McpAsks>,
    /// The text of its result. Default: none.
    pub returns: Option<String>,
    /// How often that text stands there. Default: once.
    #[schemars(range(min = 1))]
    pub repeat: Option<usize>,
    /// Further content, as the protocol has it.
    #[serde(default)]
    pub content: Vec<Value>,
    /// Structured content.
    pub structured: Option<Value>,
    /// The same as JSON, in place of `structured`: with a null, which TOML has not.
    pub structured_json: Option<String>,
    /// The result is an error.
    #[serde(default)]
    pub fails: bool,
    /// It answers with this error of the protocol.
    pub error: Option<McpError>,
    /// What goes wrong.
    pub fault: Option<McpFault>,
    /// What its program ends with where it dies. Default: 70.
    pub exit: Option<i32>,
    /// The signal that ends its program where it dies.
    pub signal: Option<i32>,
    /// Its host answers with this HTTP status, and nothing else.
    #[schemars(range(min = 400, max = 599))]
    pub status: Option<u16>,
}

impl McpTool {
    /// Its arguments, however they are written.
    pub fn schema(&self) -> Option<Value> {
        let given = self.schema_json.as_deref().and_then(|text| serde_json::from_str(text).ok());
        given.or_else(|| self.schema.clone().map(Value::Object))
    }

    /// Its structured content, however that is written.
    pub fn structured(&self) -> Option<Value> {
        let given =
            self.structured_json.as_deref().and_then(|text| serde_json::from_str(text).ok());
        given.or_else(|| self.structured.clone())
    }
}

#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum McpProgress {
    Times(u64),
    Told(Vec<McpTold>),
}

impl Default for McpProgress {
    fn default() -> Self {
        Self::Times(0)
    }
}

#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct McpTold {
    pub progress: f64,
    pub total: Option<f64>,
    pub message: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct McpAsks {
    /// As the protocol calls it, such as `sampling/createMessage`.
    pub method: String,
    #[serde(default)]
    pub params: Map<String, Value>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct McpError {
    pub code: i64,
    pub message: String,
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
    /// Over HTTP: the connection breaks before the answer, which whoever asks for the rest is given.
    Breaks,
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
        for (key, is_misplaced) in misplaced(server) {
            if is_misplaced {
                place.refuse_at(key, "it does not go with this transport", "remove it");
            }
        }
        let breaks = |tool: &McpTool| tool.fault == Some(McpFault::Breaks);
        if server.transport == Transport::Stdio && server.tool.iter().any(breaks) {
            place.refuse_at("tool", "`breaks` is a fault over HTTP", "choose `dies`");
        }
        let has = |name: &String| server.tool.iter().any(|tool| tool.name == *name);
        if !server.twins.iter().all(has) {
            place.refuse_at("twins", "there is no tool of this name", "name one that it has");
        }
        for (place, tool) in place.items_of("tool").iter().zip(&server.tool) {
            check_tool(place, server.transport, tool);
        }
    }
}

/// The keys that could stand in the wrong place, and whether they do.
fn misplaced(server: &McpServer) -> Vec<(&'static str, bool)> {
    match server.transport {
        Transport::Stdio => vec![
            ("headers", !server.headers.is_empty()),
            ("session_calls", server.session_calls.is_some()),
            ("moved", server.moved.is_some()),
        ],
        Transport::Http => {
            vec![("env", !server.env.is_empty()), ("stderr", !server.stderr.is_empty())]
        }
    }
}

fn check_tool(place: &Place<'_>, transport: Transport, tool: &McpTool) {
    let dies = tool.fault == Some(McpFault::Dies);
    let (of_program, of_host) = match transport {
        Transport::Stdio => (dies, false),
        Transport::Http => (false, true),
    };
    let misplaced = [
        ("exit", tool.exit.is_some() && !of_program, "only a program that `dies` ends with it"),
        ("signal", tool.signal.is_some() && !of_program, "only a program that `dies` ends with it"),
        ("status", tool.status.is_some() && !of_host, "only a host answers with it"),
    ];
    for (key, _, problem) in misplaced.iter().filter(|(_, is_misplaced, _)| *is_misplaced) {
        place.refuse_at(key, problem, "remove it");
    }
    let twice = [
        ("schema_json", tool.schema.is_some() && tool.schema_json.is_some()),
        ("structured_json", tool.structured.is_some() && tool.structured_json.is_some()),
        ("error", tool.error.is_some() && tool.fault == Some(McpFault::Refuses)),
        ("signal", tool.exit.is_some() && tool.signal.is_some()),
    ];
    for (key, _) in twice.iter().filter(|(_, is_twice)| *is_twice) {
        place.refuse_at(key, "the same is said twice", "keep one of the two");
    }
    let is_object = |text: &str| serde_json::from_str::<Map<String, Value>>(text).is_ok();
    if tool.schema_json.as_deref().is_some_and(|text| !is_object(text)) {
        place.refuse_at(
            "schema_json",
            "this is no JSON object",
            "write it like '{\"type\": \"object\"}'",
        );
    }
    let is_json = |text: &str| serde_json::from_str::<Value>(text).is_ok();
    if tool.structured_json.as_deref().is_some_and(|text| !is_json(text)) {
        place.refuse_at("structured_json", "this is no JSON", "write it like '{\"count\": null}'");
    }
}
