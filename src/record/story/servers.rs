//! What was said with MCP servers, as entries of a scenario: what each offers, and what its tools
//! answered, in the order in which they were called.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::order::rounded;
use crate::config::{self, McpServerForm};
use crate::limits::MCP_MESSAGE_BYTES_MAX;
use crate::provider::script::{Time, Times};
use crate::record::form::{McpError, McpProgress, McpServer, McpTool, Yes};
use crate::record::hidden::Hidden;
use crate::record::note::Conversation;
use crate::record::text::{fits_toml, table};
use crate::tool::mcp::{End, Origin};
use crate::world::Exit;

/// What is closer together came at once.
const TAKES_MIN: Duration = Duration::from_millis(10);
/// A server that is there sooner is there at once.
const STARTS_MIN: Duration = Duration::from_secs(1);
const FOREVER: &str = "forever";
/// What scenarios speak unless they say otherwise, and the others that they know.
const OLDEST: &str = "2024-11-05";
const NEWEST: &str = "2026-07-28";

/// By their names.
#[derive(Debug, Default)]
pub(super) struct Servers(BTreeMap<String, Server>);

#[derive(Debug)]
struct Server {
    transport: &'static str,
    origin: Origin,
    /// When the last attempt at a connection began.
    began: Duration,
    /// How long the first connection took that was made.
    starts: Option<Duration>,
    presence: Presence,
    revision: Option<String>,
    /// What it was asked and has not answered, by the ids.
    open: BTreeMap<String, Asked>,
    /// The pages of a list that is not whole yet.
    pages: Vec<Tool>,
    /// What it offered, each time it was asked.
    listings: Vec<Vec<Tool>>,
    calls: Vec<Call>,
    /// Something it did cannot be played again.
    missing: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    Away,
    Connected,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Beginning,
    List,
    Call(usize),
}

#[derive(Clone, Debug, PartialEq)]
struct Tool {
    name: String,
    description: String,
    schema: Map<String, Value>,
}

#[derive(Debug)]
struct Call {
    tool: String,
    began: Duration,
    /// How often it had said what it offers.
    listing: usize,
    token: Value,
    progress: Vec<McpProgress>,
    took: Duration,
    answer: Answer,
    changes_tools: bool,
}

#[derive(Debug)]
enum Answer {
    /// None has come, or nobody wanted it any more.
    None,
    Result(Value),
    Error(McpError),
    Lost(End),
    /// It was not even looked at, and made again in another session, which a replay does not need.
    Unmade,
}

impl Servers {
    /// Takes in what was said. Returns whether the server is there since then.
    pub(super) fn said(&mut self, at: Duration, name: &str, what: &Conversation) -> bool {
        if let Conversation::Begins { transport, origin, .. } = what {
            let server = self.0.entry(name.to_owned()).or_insert_with(|| Server::new(*origin));
            (server.transport, server.origin, server.began) = (*transport, *origin, at);
            server.presence = Presence::Away;
            server.open.clear();
            return false;
        }
        let Some(server) = self.0.get_mut(name) else { return false };
        let before = server.presence;
        match what {
            Conversation::Begins { .. } => {}
            Conversation::Asks(message) => server.asked(at, message),
            Conversation::Hears(message) => server.heard(at, message),
            Conversation::Failed { id, end: End::SessionOver } => server.unmade(&id.to_string()),
            Conversation::Failed { id, end } => server.lost(at, &id.to_string(), *end),
            Conversation::Ended(end) => {
                server.presence = Presence::Away;
                let open: Vec<String> = server.open.keys().cloned().collect();
                for id in &open {
                    server.lost(at, id, *end);
                }
            }
        }
        (before, server.presence) == (Presence::Away, Presence::Connected)
    }

    /// Each with its tools. One that somebody tried in vain to connect to is none of the scenario's.
    pub(super) fn written(&self, hidden: &Hidden) -> Vec<(McpServer, Vec<McpTool>)> {
        let there = self.0.iter().filter(|(_, server)| {
            server.origin == Origin::Configuration || !server.listings.is_empty()
        });
        there.map(|(name, server)| (server.written(name), server.tools(hidden))).collect()
    }

    /// What a replay does otherwise.
    pub(super) fn missing(&self) -> Option<String> {
        let missing = self.0.iter().filter(|(_, server)| server.missing);
        let names: Vec<&str> = missing.map(|(name, _)| name.as_str()).collect();
        let told = || {
            format!("MCP servers that did what cannot be replayed as it was: {}.", names.join(", "))
        };
        (!names.is_empty()).then(told)
    }
}

impl Server {
    fn new(origin: Origin) -> Self {
        Self {
            transport: "stdio",
            origin,
            began: Duration::ZERO,
            starts: None,
            presence: Presence::Away,
            revision: None,
            open: BTreeMap::new(),
            pages: Vec::new(),
            listings: Vec::new(),
            calls: Vec::new(),
            missing: false,
        }
    }

    fn asked(&mut self, at: Duration, message: &Value) {
        let (id, params) = (message["id"].to_string(), &message["params"]);
        let asked = match message["method"].as_str().unwrap_or_default() {
            "initialize" | "server/discover" => Asked::Beginning,
            "tools/list" => {
                if params["cursor"].is_null() {
                    self.pages.clear();
                }
                Asked::List
            }
            "tools/call" => {
                self.calls.push(Call {
                    tool: text(&params["name"]),
                    began: at,
                    listing: self.listings.len(),
                    token: params["_meta"]["progressToken"].clone(),
                    progress: Vec::new(),
                    took: Duration::ZERO,
                    answer: Answer::None,
                    changes_tools: false,
                });
                Asked::Call(self.calls.len() - 1)
            }
            "notifications/cancelled" => {
                self.open.remove(&params["requestId"].to_string());
                return;
            }
            _ => return,
        };
        self.open.insert(id, asked);
    }

    fn heard(&mut self, at: Duration, message: &Value) {
        let params = &message["params"];
        match message["method"].as_str() {
            None => self.answered(at, message),
            Some("notifications/progress") => {
                let token = &params["progressToken"];
                let call = self.calls.iter_mut().rev().find(|call| call.token == *token);
                if let Some(call) = call.filter(|call| matches!(call.answer, Answer::None)) {
                    call.progress.push(McpProgress {
                        progress: params["progress"].as_f64().unwrap_or_default(),
                        total: params["total"].as_f64(),
                        message: params["message"].as_str().map(str::to_owned),
                    });
                }
            }
            Some("notifications/tools/list_changed") => match self.calls.last_mut() {
                Some(call) if !matches!(call.answer, Answer::Lost(_)) => {
                    call.changes_tools = true;
                }
                // Before anybody has called it, it might as well have begun so.
                None => {}
                Some(_) => self.missing = true,
            },
            Some(_) => {}
        }
    }

    fn answered(&mut self, at: Duration, message: &Value) {
        let Some(asked) = self.open.remove(&message["id"].to_string()) else { return };
        let result = message.get("result");
        match (asked, result) {
            (Asked::Beginning, Some(result)) => {
                let revision = result["protocolVersion"].as_str().unwrap_or(NEWEST);
                self.revision = Some(revision.to_owned());
            }
            (Asked::List, Some(result)) => {
                let tools = result["tools"].as_array().into_iter().flatten();
                self.pages.extend(tools.map(Tool::of));
                if result["nextCursor"].is_null() {
                    if self.calls.is_empty() {
                        self.listings.clear();
                    }
                    self.listings.push(std::mem::take(&mut self.pages));
                    self.presence = Presence::Connected;
                    self.starts.get_or_insert(at.saturating_sub(self.began));
                }
            }
            (Asked::Call(index), Some(result)) => {
                self.missing |= result["resultType"] == "input_required";
                self.ended(at, index, Answer::Result(result.clone()));
            }
            (Asked::Call(index), None) => {
                let (code, message) =
                    (message["error"]["code"].as_i64(), &message["error"]["message"]);
                let error = McpError { code: code.unwrap_or_default(), message: text(message) };
                self.ended(at, index, Answer::Error(error));
            }
            (Asked::Beginning | Asked::List, None) => {}
        }
    }

    fn lost(&mut self, at: Duration, id: &str, end: End) {
        if let Some(Asked::Call(index)) = self.open.remove(id) {
            let answer = match end {
                End::Ours => Answer::None,
                end => Answer::Lost(end),
            };
            let is_stdio = self.transport == "stdio";
            self.missing |= end == End::Unreachable || (is_stdio && end == End::Closed);
            self.ended(at, index, answer);
        }
    }

    fn unmade(&mut self, id: &str) {
        if let Some(Asked::Call(index)) = self.open.remove(id) {
            self.calls[index].answer = Answer::Unmade;
        }
    }

    fn ended(&mut self, at: Duration, index: usize, answer: Answer) {
        let call = &mut self.calls[index];
        call.took = at.saturating_sub(call.began);
        call.answer = answer;
    }

    fn written(&self, name: &str) -> McpServer {
        let changes = self.calls.iter().any(|call| call.changes_tools);
        // Scenarios of the newest revision tell nobody of changes.
        let revision = self.revision.as_deref().filter(|revision| match *revision {
            OLDEST => true,
            NEWEST => !changes,
            _ => false,
        });
        let starts = self.starts.filter(|starts| *starts >= STARTS_MIN);
        McpServer {
            name: name.to_owned(),
            transport: (self.transport != "stdio").then_some(self.transport),
            configured: (self.origin == Origin::Call).then_some(false),
            missing: self.listings.is_empty().then_some(Yes),
            revision: revision.map(str::to_owned),
            starts: starts.map(|starts| Time(rounded(starts))),
        }
    }

    /// The entries of all tools: for each as it was offered, what it answered.
    fn tools(&self, hidden: &Hidden) -> Vec<McpTool> {
        let all = self.listings.len();
        let mut entries = Vec::new();
        for (index, listing) in self.listings.iter().enumerate() {
            for tool in listing {
                let known = index.checked_sub(1).map(|before| &self.listings[before]);
                if known.is_some_and(|known| known.contains(tool)) {
                    continue;
                }
                let later = self.listings[index..].iter();
                let until = index + later.take_while(|listing| listing.contains(tool)).count();
                let span = McpTool {
                    name: hidden.text(&tool.name),
                    since: (index > 0).then_some(index + 1),
                    until: (until < all).then_some(until),
                    ..McpTool::default()
                };
                let during = |call: &&Call| {
                    let is_made = !matches!(call.answer, Answer::Unmade);
                    let is_then = (index + 1..=until).contains(&call.listing);
                    is_made && is_then && call.tool == tool.name
                };
                let calls = self.calls.iter().filter(during);
                let mut answers = merged(calls.map(|call| call.written(span.clone(), hidden)));
                if answers.is_empty() {
                    answers.push(span);
                }
                tool.define(&mut answers[0], hidden);
                entries.append(&mut answers);
            }
        }
        entries
    }
}

/// Equal answers in a row are one. The last is given as often as somebody asks.
fn merged(answers: impl Iterator<Item = McpTool>) -> Vec<McpTool> {
    let mut merged: Vec<(McpTool, u64)> = Vec::new();
    for answer in answers {
        match merged.last_mut() {
            Some((last, count)) if table(last) == table(&answer) => *count += 1,
            Some(_) | None => merged.push((answer, 1)),
        }
    }
    let last = merged.len().saturating_sub(1);
    let times = |(index, (tool, count)): (usize, (McpTool, u64))| McpTool {
        times: (index < last).then_some(Times::Exactly(count)),
        ..tool
    };
    merged.into_iter().enumerate().map(times).collect()
}

impl Tool {
    fn of(listed: &Value) -> Self {
        let description = listed["description"].as_str().or(listed["title"].as_str());
        Self {
            name: text(&listed["name"]),
            description: description.unwrap_or_default().to_owned(),
            schema: listed["inputSchema"].as_object().cloned().unwrap_or_default(),
        }
    }

    fn define(&self, entry: &mut McpTool, hidden: &Hidden) {
        entry.description = hidden.text(&self.description);
        let schema = hidden.members(&self.schema);
        if Value::Object(schema.clone()) == json!({ "type": "object" }) {
            return;
        }
        if fits_toml(&schema) {
            entry.schema = Some(schema);
        } else {
            entry.schema_json = Some(Value::Object(schema).to_string());
        }
    }
}

impl Call {
    fn written(&self, span: McpTool, hidden: &Hidden) -> McpTool {
        let takes = (self.took >= TAKES_MIN).then(|| Time(rounded(self.took)).to_string());
        let told = |told: &McpProgress| McpProgress {
            message: told.message.as_deref().map(|text| hidden.text(text)),
            ..told.clone()
        };
        let progress = self.progress.iter().map(told).collect();
        let fault = self.changes_tools.then_some("changes_tools");
        let entry = McpTool { takes, progress, fault, ..span };
        match &self.answer {
            Answer::None => McpTool { takes: Some(FOREVER.to_owned()), ..entry },
            Answer::Result(result) => given(entry, &hidden.value(result)),
            Answer::Error(error) => {
                let message = hidden.text(&error.message);
                McpTool { error: Some(McpError { message, ..*error }), ..entry }
            }
            Answer::Lost(end) => lost(entry, *end),
            Answer::Unmade => entry,
        }
    }
}

fn given(mut entry: McpTool, result: &Value) -> McpTool {
    let mut content = result["content"].as_array().map_or(&[][..], Vec::as_slice);
    if let Some((first, rest)) = content.split_first()
        && first["type"] == "text"
    {
        entry.returns = Some(text(&first["text"]));
        content = rest;
    }
    entry.content = content.to_vec();
    entry.fails = (result["isError"] == true).then_some(true);
    if let Some(structured) = result.get("structuredContent").filter(|given| !given.is_null()) {
        if fits_toml(&Map::from_iter([(String::new(), structured.clone())])) {
            entry.structured = Some(structured.clone());
        } else {
            entry.structured_json = Some(structured.to_string());
        }
    }
    entry
}

fn lost(entry: McpTool, end: End) -> McpTool {
    let dies = McpTool { fault: Some("dies"), ..entry };
    match end {
        End::Exit(Exit::Code(code)) => McpTool { exit: Some(code), ..dies },
        End::Exit(Exit::Signal(signal)) => McpTool { signal: Some(signal), ..dies },
        End::Flood => McpTool { fault: Some("floods"), ..dies },
        End::TooLong => {
            // Far enough beyond the bound that it is seen in the middle of a piece.
            let repeat = Some(MCP_MESSAGE_BYTES_MAX + MCP_MESSAGE_BYTES_MAX / 8);
            McpTool { fault: None, returns: Some("x".to_owned()), repeat, ..dies }
        }
        End::Status(status) => McpTool { fault: None, status: Some(status), ..dies },
        // As the protocol has it.
        End::SessionOver => McpTool { fault: None, status: Some(404), ..dies },
        End::Ours | End::Closed | End::Unreachable | End::Unbegun => dies,
    }
}

/// Leads a connection to the scenario's server of its name. What is wrong with it stays wrong, without its
/// arguments, in which a key may stand.
pub(super) fn simulated(params: &mut Map<String, Value>) {
    let name = params.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let Some(config) = params.get_mut("config") else { return };
    let form = serde_json::from_value::<McpServerForm>(config.clone());
    match form.map(|form| config::McpServer::of(form, None)) {
        Ok(Ok(config::McpServer::Stdio { .. })) => {
            *config = json!({ "command": format!("mcp-{name}") });
        }
        Ok(Ok(config::McpServer::Http { .. })) => {
            *config = json!({ "url": format!("${{mcp}}/{name}") });
        }
        Ok(Err(_)) | Err(_) => {
            if let Some(arguments) = config.get_mut("args").and_then(Value::as_array_mut) {
                arguments.fill("[redacted]".into());
            }
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
