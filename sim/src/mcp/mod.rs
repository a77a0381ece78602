//! MCP servers that say what is scripted, over stdio and over HTTP, faults included. The server under
//! test cannot tell them from others. They have no clock of their own and draw no numbers.

mod http; // as a host
mod stdio; // as programs

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use nexus3::provider::script::Times;
use serde_json::{Value, json};

pub use http::serve;
pub use stdio::program;

use crate::hosts::now;
use crate::play::transcript::Transcript;
use crate::scenario::{McpFault, McpServer, McpTakes, McpTool, Revision, Transport};

/// More than anybody may say in a second without being asked.
const FLOOD: usize = 1200;

/// One server of a scenario, over all its starts.
#[derive(Debug)]
pub struct Scripted {
    server: McpServer,
    /// How often each tool entry was used.
    uses: Vec<AtomicU64>,
    has_changed: AtomicBool,
    transcript: Transcript,
}

/// What a server does about a message.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    Wait(Duration),
    WaitForEver,
    Say(Value),
    Die,
}

impl Scripted {
    pub fn new(server: &McpServer, transcript: &Transcript) -> Arc<Self> {
        Arc::new(Self {
            uses: server.tool.iter().map(|_| AtomicU64::new(0)).collect(),
            server: server.clone(),
            has_changed: AtomicBool::new(false),
            transcript: transcript.clone(),
        })
    }

    pub fn name(&self) -> &str {
        &self.server.name
    }

    pub fn is_at_host(&self) -> bool {
        self.server.transport == Transport::Http
    }

    /// Its entry in mcp.json, where it is to stand there; `root` is where its host is.
    pub fn configuration(&self, root: &str) -> Option<(String, Value)> {
        let McpServer { name, env, headers, .. } = &self.server;
        let entry = match self.server.transport {
            Transport::Stdio => json!({"command": format!("mcp-{name}"), "env": env}),
            Transport::Http => json!({"url": format!("{root}/{name}"), "headers": headers}),
        };
        self.server.configured.then(|| (name.clone(), entry))
    }

    fn note(&self, what: &str) {
        self.transcript.note(now(), self.name(), what);
    }

    /// What it does about a message; nothing about most that ask for nothing.
    fn on(&self, message: &Value) -> Vec<Step> {
        let method = message["method"].as_str().unwrap_or_default();
        let Some(id) = message.get("id").filter(|id| !id.is_null()) else {
            if method == "notifications/cancelled" {
                self.note(&format!("is told that call {} is off", message["params"]["requestId"]));
            }
            return Vec::new();
        };
        let result = |result: Value| json!({"jsonrpc": "2.0", "id": id, "result": result});
        let error = |code: i64, text: &str| {
            let error = json!({"code": code, "message": text});
            Step::Say(json!({"jsonrpc": "2.0", "id": id, "error": error}))
        };
        match (method, self.server.revision) {
            ("server/discover", Revision::Of2026) => self.slowly(result(json!({
                "resultType": "complete",
                "supportedVersions": [self.server.revision.name()],
                "capabilities": {"tools": {}},
                "ttlMs": 0,
                "cacheScope": "private",
            }))),
            ("initialize", Revision::Of2024 | Revision::Of2025) => self.slowly(result(json!({
                "protocolVersion": self.server.revision.name(),
                "capabilities": {"tools": {"listChanged": true}},
                "serverInfo": {"name": self.name(), "version": "1"},
            }))),
            ("ping", _) => vec![Step::Say(result(json!({})))],
            ("tools/list", _) => vec![Step::Say(result(self.page(&message["params"]["cursor"])))],
            ("tools/call", _) => {
                let (name, arguments) =
                    (&message["params"]["name"], &message["params"]["arguments"]);
                self.note(&format!(
                    "is asked for {} {arguments} as {id}",
                    name.as_str().unwrap_or("?")
                ));
                match self.entry(name) {
                    Some(tool) => self.call(tool, message, id),
                    None => vec![error(-32602, "there is no such tool")],
                }
            }
            (_, _) => vec![error(-32601, "there is no such method")],
        }
    }

    fn slowly(&self, answer: Value) -> Vec<Step> {
        self.note(&format!("is connected to, and speaks {}", self.server.revision.name()));
        let pause = self.server.starts.map(|time| Step::Wait(time.0));
        pause.into_iter().chain([Step::Say(answer)]).collect()
    }

    fn tools(&self) -> Vec<&McpTool> {
        let has_changed = self.has_changed.load(Ordering::Acquire);
        let mut there: Vec<&McpTool> = Vec::new();
        for tool in self.server.tool.iter().filter(|tool| has_changed || !tool.later) {
            // Further entries of a name are further answers.
            let is_entry = self.server.tool.iter().filter(|other| other.name == tool.name).count()
                > 1
                && there.iter().any(|known| known.name == tool.name);
            if !is_entry {
                there.push(tool);
            }
        }
        there
    }

    fn page(&self, cursor: &Value) -> Value {
        let all = self.tools();
        let from = cursor.as_str().and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
        let count = self.server.page.unwrap_or(all.len()).max(1);
        let shown = all.iter().skip(from).take(count).map(|tool| {
            let schema = tool.schema.clone().map(Value::Object);
            json!({
                "name": tool.name,
                "description": tool.description,
                "inputSchema": schema.unwrap_or_else(|| json!({"type": "object"})),
            })
        });
        let mut page = json!({"tools": shown.collect::<Vec<_>>()});
        if self.server.revision == Revision::Of2026 {
            page["resultType"] = "complete".into();
            page["ttlMs"] = 0.into();
            page["cacheScope"] = "private".into();
        }
        if from + count < all.len() {
            page["nextCursor"] = (from + count).to_string().into();
        }
        page
    }

    fn entry(&self, name: &Value) -> Option<&McpTool> {
        let has_changed = self.has_changed.load(Ordering::Acquire);
        let entries = self.server.tool.iter().zip(&self.uses);
        let (tool, used) = entries
            .filter(|(tool, _)| *name == *tool.name && (has_changed || !tool.later))
            .find(|(tool, used)| match tool.times {
                Some(Times::Exactly(times)) => used.load(Ordering::Relaxed) < times,
                Some(Times::Always) | None => true,
            })?;
        used.fetch_add(1, Ordering::Relaxed);
        Some(tool)
    }

    fn call(&self, tool: &McpTool, message: &Value, id: &Value) -> Vec<Step> {
        let mut steps = Vec::new();
        let news = |method: &str, params: Value| {
            Step::Say(json!({"jsonrpc": "2.0", "method": method, "params": params}))
        };
        let pieces = u32::try_from(tool.progress + 1).unwrap_or(u32::MAX);
        let pause = match tool.takes {
            Some(McpTakes::Forever) => Step::WaitForEver,
            Some(McpTakes::Time(time)) => Step::Wait(time.0 / pieces),
            None => Step::Wait(Duration::ZERO),
        };
        let token = &message["params"]["_meta"]["progressToken"];
        for done in 1..=tool.progress {
            let told = format!("step {done}");
            steps.push(pause.clone());
            steps.push(news(
                "notifications/progress",
                json!({"progressToken": token, "progress": done, "total": pieces, "message": told}),
            ));
        }
        steps.push(pause);
        let answer = |id: &Value| {
            Step::Say(json!({"jsonrpc": "2.0", "id": id, "result": self.result(tool)}))
        };
        match tool.fault {
            None => steps.push(answer(id)),
            Some(McpFault::Dies) => steps.push(Step::Die),
            Some(McpFault::Twice) => steps.extend([answer(id), answer(id)]),
            Some(McpFault::WrongId) => steps.extend([answer(&json!(999_999)), answer(id)]),
            Some(McpFault::Floods) => {
                let said = || news("notifications/message", json!({"level": "info", "data": "x"}));
                steps.extend((0..FLOOD).map(|_| said()));
                steps.push(answer(id));
            }
            Some(McpFault::ChangesTools) => {
                self.has_changed.store(true, Ordering::Release);
                steps.push(news("notifications/tools/list_changed", json!({})));
                steps.push(answer(id));
            }
            Some(McpFault::Refuses) => {
                let error = json!({"code": -32602, "message": "not like this"});
                steps.push(Step::Say(json!({"jsonrpc": "2.0", "id": id, "error": error})));
            }
        }
        steps
    }

    fn result(&self, tool: &McpTool) -> Value {
        let text = tool.returns.repeat(tool.repeat.unwrap_or(1));
        let mut content = vec![json!({"type": "text", "text": text})];
        content.extend(tool.content.iter().cloned());
        let mut result = json!({"content": content, "isError": tool.fails});
        if let Some(structured) = &tool.structured {
            result["structuredContent"] = structured.clone();
        }
        if self.server.revision == Revision::Of2026 {
            result["resultType"] = "complete".into();
        }
        result
    }
}
