//! MCP servers that say what is scripted, over stdio and over HTTP, faults included. The server under
//! test cannot tell them from others. They have no clock of their own and draw no numbers.

mod http; // as a host
mod stdio; // as programs

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nexus3::provider::script::Times;
use nexus3::world::Exit;
use serde_json::{Value, json};
use tokio::sync::broadcast;

pub use http::{ELSEWHERE_PORT, serve};
pub use stdio::program;

use crate::hosts::{NOBODY, now};
use crate::play::observed::{Observation, Observed};
use crate::play::story::Happening;
use crate::play::transcript::Transcript;
use crate::scenario::{
    ELSEWHERE, McpAsks, McpError, McpFault, McpProgress, McpServer, McpTakes, McpTold, McpTool,
    Revision, Transport,
};

/// More than anybody may say in a second without being asked.
const FLOOD: usize = 1200;
/// The status with which a server says that it does not know a session.
const SESSION_UNKNOWN: u16 = 404;
/// What a server that gives up exits with, unless it is said.
const DIED: i32 = 70;

/// News that a listener may leave unread.
const NEWS_MAX: usize = 16;
/// Where the protocol says to which subscription something belongs.
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// One server of a scenario, over all its starts.
#[derive(Debug)]
pub struct Scripted {
    server: McpServer,
    /// How often each tool entry was used.
    uses: Vec<AtomicU64>,
    has_changed: AtomicBool,
    /// What is told to those who listen.
    news: broadcast::Sender<Value>,
    /// Held for one look at a time; nothing is awaited under it.
    known: Mutex<Known>,
    /// How often it was asked for its tools.
    listings: AtomicU64,
    transcript: Transcript,
    observed: Observed,
}

/// What it knows of those who ask it.
#[derive(Debug, Default)]
struct Known {
    /// The sessions, with the calls that were made in each.
    sessions: BTreeMap<String, u64>,
    begun: u64,
    /// What has to be said yet, by the last event that was.
    unsaid: BTreeMap<String, Vec<Step>>,
    /// Under which id its program was asked for news last.
    subscription: Option<Value>,
}

/// What a server does about a message.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    Wait(Duration),
    WaitForEver,
    Say(Value),
    /// Says something to those who listen.
    Tell(Value),
    /// The connection breaks; the rest waits for whoever asks for it.
    Break,
    /// With which a host answers, in place of all that.
    Refuse(u16),
    Die(Exit),
}

impl Scripted {
    pub fn new(server: &McpServer, transcript: &Transcript, observed: &Observed) -> Arc<Self> {
        Arc::new(Self {
            uses: server.tool.iter().map(|_| AtomicU64::new(0)).collect(),
            server: server.clone(),
            has_changed: AtomicBool::new(false),
            news: broadcast::Sender::new(NEWS_MAX),
            known: Mutex::default(),
            listings: AtomicU64::new(0),
            transcript: transcript.clone(),
            observed: observed.clone(),
        })
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether another origin of its host is needed.
    pub fn leads_elsewhere(&self) -> bool {
        self.server.moved.as_ref().is_some_and(|moved| moved.to.contains(ELSEWHERE))
    }

    pub fn name(&self) -> &str {
        &self.server.name
    }

    /// Whether there is nothing but its configuration.
    pub fn is_missing(&self) -> bool {
        self.server.missing
    }

    pub fn is_at_host(&self) -> bool {
        self.server.transport == Transport::Http
    }

    /// Its entry in mcp.json, where it is to stand there; `root` is where its host is.
    pub fn configuration(&self, root: &str) -> Option<(String, Value)> {
        let McpServer { name, env, headers, .. } = &self.server;
        let root = if self.server.missing { NOBODY } else { root };
        let entry = match self.server.transport {
            Transport::Stdio => json!({"command": format!("mcp-{name}"), "env": env}),
            Transport::Http => json!({"url": format!("{root}/{name}"), "headers": headers}),
        };
        self.server.configured.then(|| (name.clone(), entry))
    }

    fn note(&self, what: &str) {
        self.transcript.tell(now(), self.name(), what, || Happening::Served(what.to_owned()));
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
        if method.is_empty() {
            let told = message.get("error").or_else(|| message.get("result"));
            self.note(&format!("is told {} as {id}", told.unwrap_or(&Value::Null)));
            return Vec::new();
        }
        let result = |result: Value| json!({"jsonrpc": "2.0", "id": id, "result": result});
        let error = |code: i64, text: &str| {
            let error = json!({"code": code, "message": text});
            Step::Say(json!({"jsonrpc": "2.0", "id": id, "error": error}))
        };
        match (method, self.server.revision) {
            ("server/discover", Revision::Of2026) => self.slowly(result(json!({
                "resultType": "complete",
                "supportedVersions": [self.server.revision.name()],
                "capabilities": {"tools": {"listChanged": self.server.stream}},
                "ttlMs": 0,
                "cacheScope": "private",
            }))),
            ("initialize", Revision::Of2024 | Revision::Of2025) => self.slowly(result(json!({
                "protocolVersion": self.server.revision.name(),
                "capabilities": {"tools": {"listChanged": true}},
                "serverInfo": {"name": self.name(), "version": "1"},
            }))),
            ("subscriptions/listen", Revision::Of2026) if self.server.stream => {
                self.note("is listened to");
                self.known().subscription = Some(id.clone());
                let accepted = json!({"notifications": {"toolsListChanged": true}});
                let accepted = news("notifications/subscriptions/acknowledged", &accepted);
                vec![Step::Say(of_subscription(accepted, id))]
            }
            ("ping", _) => vec![Step::Say(result(json!({})))],
            ("tools/list", _) => {
                let cursor = &message["params"]["cursor"];
                if cursor.is_null() {
                    self.listings.fetch_add(1, Ordering::AcqRel);
                }
                vec![Step::Say(result(self.page(cursor)))]
            }
            ("tools/call", _) => {
                let (name, arguments) =
                    (&message["params"]["name"], &message["params"]["arguments"]);
                self.note(&format!(
                    "is asked for {} {arguments} as {id}",
                    name.as_str().unwrap_or("?")
                ));
                let entry = self.entry(name);
                // Whoever does not know the session does not look at the call.
                if entry.is_none_or(|tool| tool.status != Some(SESSION_UNKNOWN)) {
                    let tool = name.as_str().unwrap_or_default().to_owned();
                    self.observed.add(Observation::McpCalled { tool });
                }
                match entry {
                    Some(tool) => self.call(tool, message, id),
                    None => vec![error(-32602, "there is no such tool")],
                }
            }
            (_, _) => vec![error(-32601, "there is no such method")],
        }
    }

    /// News as its program says them; not at all where nobody asked and that is needed.
    fn for_listeners(&self, news: Value) -> Option<Value> {
        match self.server.revision {
            Revision::Of2024 | Revision::Of2025 => Some(news),
            Revision::Of2026 => {
                let subscription = self.known().subscription.clone()?;
                Some(of_subscription(news, &subscription))
            }
        }
    }

    fn slowly(&self, answer: Value) -> Vec<Step> {
        self.note(&format!("is connected to, and speaks {}", self.server.revision.name()));
        let pause = self.server.starts.map(|time| Step::Wait(time.0));
        pause.into_iter().chain([Step::Say(answer)]).collect()
    }

    /// Whether a tool is there now.
    fn has(&self, tool: &McpTool) -> bool {
        let listing = self.listings.load(Ordering::Acquire);
        (!tool.later || self.has_changed.load(Ordering::Acquire))
            && tool.since.is_none_or(|since| since <= listing)
            && tool.until.is_none_or(|until| listing <= until)
    }

    fn tools(&self) -> Vec<&McpTool> {
        let mut there: Vec<&McpTool> = Vec::new();
        for tool in self.server.tool.iter().filter(|tool| self.has(tool)) {
            // Further entries of a name are further answers.
            if !there.iter().any(|known| known.name == tool.name) {
                there.push(tool);
            }
        }
        let twins = self.server.twins.iter();
        let twins = twins.filter_map(|name| there.iter().find(|tool| tool.name == *name).copied());
        let twins: Vec<_> = twins.collect();
        there.extend(twins);
        there
    }

    fn page(&self, cursor: &Value) -> Value {
        let all = self.tools();
        let from = cursor.as_str().and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
        let count = self.server.page.unwrap_or(all.len()).max(1);
        let shown = all.iter().skip(from).take(count).map(|tool| {
            let schema = tool.schema();
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
        let entries = self.server.tool.iter().zip(&self.uses);
        let (tool, used) = entries.filter(|(tool, _)| *name == *tool.name && self.has(tool)).find(
            |(tool, used)| match tool.times {
                Some(Times::Exactly(times)) => used.load(Ordering::Relaxed) < times,
                Some(Times::Always) | None => true,
            },
        )?;
        used.fetch_add(1, Ordering::Relaxed);
        Some(tool)
    }

    fn call(&self, tool: &McpTool, message: &Value, id: &Value) -> Vec<Step> {
        let mut steps = Vec::new();
        if let Some(McpAsks { method, params }) = &tool.asks {
            let id = format!("of {}", tool.name);
            let asked = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
            steps.push(Step::Say(asked));
        }
        let told = told(&tool.progress);
        let pieces = u32::try_from(told.len() + 1).unwrap_or(u32::MAX);
        let pause = match tool.takes {
            Some(McpTakes::Forever) => Step::WaitForEver,
            Some(McpTakes::Time(time)) => Step::Wait(time.0 / pieces),
            None => Step::Wait(Duration::ZERO),
        };
        let token = &message["params"]["_meta"]["progressToken"];
        for mut told in told {
            told["progressToken"] = token.clone();
            steps.push(pause.clone());
            steps.push(Step::Say(news("notifications/progress", &told)));
        }
        steps.push(pause);
        if let Some(status) = tool.status {
            steps.push(Step::Refuse(status));
            return steps;
        }
        let refusal = |code: i64, message: &str| {
            let error = json!({"code": code, "message": message});
            Step::Say(json!({"jsonrpc": "2.0", "id": id, "error": error}))
        };
        let answer = |id: &Value| match &tool.error {
            Some(McpError { code, message }) => refusal(*code, message),
            None => Step::Say(json!({"jsonrpc": "2.0", "id": id, "result": self.result(tool)})),
        };
        match tool.fault {
            None => steps.push(answer(id)),
            Some(McpFault::Dies) => steps.push(Step::Die(exit(tool))),
            Some(McpFault::Twice) => steps.extend([answer(id), answer(id)]),
            Some(McpFault::WrongId) => steps.extend([answer(&json!(999_999)), answer(id)]),
            Some(McpFault::Floods) => {
                let said = || news("notifications/message", &json!({"level": "info", "data": "x"}));
                steps.extend((0..FLOOD).map(|_| Step::Say(said())));
                steps.push(answer(id));
            }
            Some(McpFault::ChangesTools) => {
                self.has_changed.store(true, Ordering::Release);
                steps.push(Step::Tell(news("notifications/tools/list_changed", &json!({}))));
                steps.push(answer(id));
            }
            Some(McpFault::Refuses) => steps.push(refusal(-32602, "not like this")),
            Some(McpFault::Breaks) => steps.extend([Step::Break, answer(id)]),
        }
        steps
    }

    fn result(&self, tool: &McpTool) -> Value {
        let text = tool.returns.as_ref().map(|text| text.repeat(tool.repeat.unwrap_or(1)));
        let text = text.map(|text| json!({"type": "text", "text": text}));
        let content: Vec<Value> = text.into_iter().chain(tool.content.iter().cloned()).collect();
        let mut result = json!({"content": content, "isError": tool.fails});
        if let Some(structured) = tool.structured() {
            result["structuredContent"] = structured;
        }
        if self.server.revision == Revision::Of2026 {
            result["resultType"] = "complete".into();
        }
        result
    }
}

/// Something that is said without being asked for.
fn news(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

/// The same for those who asked for it under this id.
fn of_subscription(mut news: Value, id: &Value) -> Value {
    news["params"]["_meta"] = json!({SUBSCRIPTION: id});
    news
}

fn exit(tool: &McpTool) -> Exit {
    match (tool.exit, tool.signal) {
        (_, Some(signal)) => Exit::Signal(signal),
        (code, None) => Exit::Code(code.unwrap_or(DIED)),
    }
}

/// How far a call is, each time it is told.
fn told(progress: &McpProgress) -> Vec<Value> {
    match progress {
        McpProgress::Times(times) => {
            let told = |done: u64| json!({"progress": done, "total": times + 1, "message": format!("step {done}")});
            (1..=*times).map(told).collect()
        }
        McpProgress::Told(told) => {
            let one = |McpTold { progress, total, message }: &McpTold| {
                let mut told = json!({"progress": progress});
                if let Some(total) = total {
                    told["total"] = (*total).into();
                }
                if let Some(message) = message {
                    told["message"] = message.as_str().into();
                }
                told
            };
            told.iter().map(one).collect()
        }
    }
}
