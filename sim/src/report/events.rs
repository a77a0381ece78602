//! What agents did, as their events tell it: turns, tool calls and confirmations from their beginning to
//! their end. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use nexus3::event::{Batch, Ended, Event, What};
use serde_json::Value;

use super::item::{Item, Kind, micros};
use super::lanes::{Lanes, mcp_server};

/// An event, when it happened, and who was told when.
#[derive(Debug)]
pub struct Happened<'a> {
    pub at: Duration,
    pub event: &'a Event,
    pub seen: Vec<(&'a str, Duration)>,
}

/// What goes on, by what ends it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Open {
    Queued,
    Turn,
    Tool(String),
    Confirmation(String),
}

/// Whose it is: an agent and its request.
type Whose = (String, String);

/// Follows the events of all agents.
#[derive(Debug)]
pub struct Agents<'a> {
    lanes: &'a Lanes,
    pub items: Vec<Item>,
    open: BTreeMap<(Whose, Open), usize>,
}

impl<'a> Agents<'a> {
    pub fn new(lanes: &'a Lanes) -> Self {
        Self { lanes, items: Vec::new(), open: BTreeMap::new() }
    }

    pub fn on(&mut self, happened: &Happened<'_>) {
        match &happened.event.what {
            What::AgentCreated { parent_agent_id } => {
                let mut item = self.item(happened, Kind::Agent, "created");
                let parent = parent_agent_id.as_ref();
                item.from = parent.and_then(|parent| self.lanes.agent(parent.as_str()));
                self.point(item, happened);
            }
            What::AgentUpdated { changed, .. } => {
                let fields: Vec<&str> = changed.keys().map(String::as_str).collect();
                let title = format!("new {}", fields.join(", "));
                self.point(self.item(happened, Kind::Agent, &title), happened);
            }
            What::AgentDestroyed { .. } | What::AgentRestored { .. } => {
                let title = happened.event.what.name().trim_start_matches("agent_");
                self.point(self.item(happened, Kind::Agent, title), happened);
            }
            What::ProviderRetry { .. } | What::Compacted { .. } => self.asking(happened),
            What::TurnQueued { .. }
            | What::TurnStarted { .. }
            | What::TurnCompleted { .. }
            | What::TurnCancelled(_)
            | What::TurnFailed(_)
            | What::TurnInterrupted(_) => self.turn(happened),
            What::ToolStarted { .. } | What::ToolCompleted { .. } => self.tool(happened),
            What::ConfirmationRequested { .. } | What::ConfirmationResolved { .. } => {
                self.confirmation(happened);
            }
            What::BatchStarted(batch) | What::BatchCompleted(batch) => {
                self.point(self.batch(happened, batch), happened);
            }
            What::BatchHalted(batch) => {
                let item = self.batch(happened, batch);
                self.point(Item { bad: true, ..item }, happened);
            }
            What::ContentChunk { text, .. } | What::TurnSnapshot { text, .. } => {
                self.point(self.item(happened, Kind::Live, text), happened);
            }
            What::ThinkingStarted {}
            | What::ThinkingEnded { .. }
            | What::ToolDetected { .. }
            | What::ToolProgress { .. }
            | What::StreamGap { .. }
            | What::ServerStopping {} => {
                let title = happened.event.what.name();
                self.point(self.item(happened, Kind::Live, title), happened);
            }
        }
    }

    fn asking(&mut self, happened: &Happened<'_>) {
        let (title, reason, bad) = match &happened.event.what {
            What::ProviderRetry { attempt, after_ms, reason } => {
                let title = format!("attempt {attempt} failed, again after {after_ms} ms");
                (title, reason.as_str(), true)
            }
            What::Compacted { tokens_before, tokens_after } => {
                (format!("{tokens_before} tokens became {tokens_after}"), "", false)
            }
            _ => return,
        };
        let mut item = self.item(happened, Kind::Model, &title);
        item.bad = bad;
        item.add("reason", reason);
        self.point(item, happened);
    }

    fn turn(&mut self, happened: &Happened<'_>) {
        match &happened.event.what {
            What::TurnQueued { position } => {
                let title = format!("queued behind {position}");
                let item = self.item(happened, Kind::Turn, &title);
                self.begin(Open::Queued, item, happened);
            }
            What::TurnStarted { content, source, source_agent_id } => {
                let mut item = self.item(happened, Kind::Turn, content);
                let source_agent = source_agent_id.as_ref();
                item.from = source_agent.and_then(|agent| self.lanes.agent(agent.as_str()));
                item.add("from", source);
                item.add("asked", content);
                self.dequeue(item, happened);
            }
            What::TurnCompleted { content, finish_reason, usage, .. } => {
                let usage = format!("{} in, {} out", usage.input_tokens, usage.output_tokens);
                let told = [("answer", &**content), ("finish", finish_reason), ("tokens", &usage)];
                self.end_turn(happened, &told);
            }
            What::TurnCancelled(ended) | What::TurnFailed(ended) | What::TurnInterrupted(ended) => {
                let Ended { reason, partial, error } = ended;
                let error = error.as_ref().map(|error| format!("{} {}", error.code, error.message));
                let error = error.unwrap_or_default();
                let name = happened.event.what.name();
                let told = [
                    ("ended by", name),
                    ("reason", reason),
                    ("error", &error),
                    ("so far", partial.as_str()),
                ];
                if let Some(index) = self.end_turn(happened, &told) {
                    self.items[index].bad = true;
                }
            }
            _ => {}
        }
    }

    fn tool(&mut self, happened: &Happened<'_>) {
        match &happened.event.what {
            What::ToolStarted { tool_id, name, params } => {
                let mut item = self.item(happened, Kind::Tool, &titled(name, params));
                item.to = self.lanes.tool(name);
                item.add("params", params);
                self.begin(Open::Tool(tool_id.clone()), item, happened);
            }
            What::ToolCompleted { tool_id, name, params, success, error, output } => {
                let open = Open::Tool(tool_id.clone());
                if !self.open.contains_key(&(whose(happened), open.clone())) {
                    // One that was refused never began.
                    let mut item = self.item(happened, Kind::Tool, &titled(name, params));
                    item.add("params", params);
                    self.begin(open.clone(), item, happened);
                }
                let told = [("output", output.as_str()), ("error", error.as_deref().unwrap_or(""))];
                if let Some(index) = self.end(&open, happened, &told) {
                    self.items[index].bad = !success;
                }
            }
            _ => {}
        }
    }

    fn confirmation(&mut self, happened: &Happened<'_>) {
        match &happened.event.what {
            What::ConfirmationRequested { confirm_id, tool, target, cwd, options, .. } => {
                let title = format!("{}?", called(&tool.name));
                let mut item = self.item(happened, Kind::Confirmation, &title);
                item.add("target", target.as_deref().unwrap_or_default());
                item.add("cwd", cwd.as_deref().unwrap_or_default());
                item.add("params", &format!("{:#}", tool.params));
                let options: Vec<&str> = options.iter().map(|option| option.name()).collect();
                item.add("options", &options.join(", "));
                self.begin(Open::Confirmation(confirm_id.to_string()), item, happened);
            }
            What::ConfirmationResolved { confirm_id, decision, reason, resolved_by, .. } => {
                let told = [
                    ("decision", decision.name()),
                    ("decided by", resolved_by),
                    ("reason", reason.as_deref().unwrap_or_default()),
                ];
                let open = Open::Confirmation(confirm_id.to_string());
                if let Some(index) = self.end(&open, happened, &told) {
                    let item = &mut self.items[index];
                    item.title = format!("{} {}", item.title, decision.name());
                    item.by = self.lanes.client(resolved_by);
                    item.bad = !decision.name().starts_with("allow");
                }
            }
            _ => {}
        }
    }

    fn batch(&self, happened: &Happened<'_>, batch: &Batch) -> Item {
        let mut item = self.item(happened, Kind::Batch, happened.event.what.name());
        let tools: Vec<&str> = batch.tools.iter().map(|tool| tool.name.as_str()).collect();
        item.add("tools", &tools.join(", "));
        item
    }

    fn item(&self, happened: &Happened<'_>, kind: Kind, title: &str) -> Item {
        let agent = happened.event.agent_id.as_ref();
        let lane = agent.and_then(|agent| self.lanes.agent(agent.as_str()));
        Item::new(micros(happened.at), lane.unwrap_or(self.lanes.server()), kind, title)
    }

    fn point(&mut self, mut item: Item, happened: &Happened<'_>) {
        describe(&mut item, happened);
        self.items.push(item);
    }

    fn begin(&mut self, open: Open, mut item: Item, happened: &Happened<'_>) {
        item.open = true;
        self.open.insert((whose(happened), open), self.items.len());
        self.point(item, happened);
    }

    /// Ends what goes on and adds what its end tells.
    fn end(
        &mut self,
        open: &Open,
        happened: &Happened<'_>,
        told: &[(&'static str, &str)],
    ) -> Option<usize> {
        let index = self.open.remove(&(whose(happened), open.clone()))?;
        let item = &mut self.items[index];
        item.ended(micros(happened.at));
        for (name, text) in told {
            item.add(name, text);
        }
        describe(item, happened);
        Some(index)
    }

    /// Begins a turn, which ends its wait. One that begins at once takes the place of a wait that was
    /// none.
    fn dequeue(&mut self, mut turn: Item, happened: &Happened<'_>) {
        match self.open.remove(&(whose(happened), Open::Queued)) {
            Some(index) if self.items[index].at == turn.at => {
                turn.open = true;
                turn.more.append(&mut self.items[index].more);
                describe(&mut turn, happened);
                self.items[index] = turn;
                self.open.insert((whose(happened), Open::Turn), index);
            }
            Some(index) => {
                self.items[index].ended(turn.at);
                self.begin(Open::Turn, turn, happened);
            }
            None => self.begin(Open::Turn, turn, happened),
        }
    }

    /// Ends a turn, with what it leaves behind.
    fn end_turn(
        &mut self,
        happened: &Happened<'_>,
        told: &[(&'static str, &str)],
    ) -> Option<usize> {
        let whose = whose(happened);
        let ended = self.end(&Open::Turn, happened, told);
        let ended = ended.or_else(|| self.end(&Open::Queued, happened, told));
        let left: Vec<(Whose, Open)> =
            self.open.keys().filter(|(of, _)| *of == whose).cloned().collect();
        for (_, open) in left {
            if let Some(index) = self.end(&open, happened, &[("left by", "the end of its turn")]) {
                self.items[index].bad = true;
            }
        }
        ended
    }
}

/// A tool with what it works on, where that is known.
fn titled(name: &str, params: &str) -> String {
    let params: Value = serde_json::from_str(params).unwrap_or_default();
    let on = ["agent_id", "path", "pattern", "command", "program", "source"];
    let on = on.iter().find_map(|member| params.get(member)?.as_str()).unwrap_or_default();
    format!("{} {on}", called(name))
}

/// A tool as people call it.
pub fn called(name: &str) -> String {
    match mcp_server(name) {
        Some((server, tool)) => format!("{server}: {tool}"),
        None => name.trim_start_matches("nexus_").to_owned(),
    }
}

fn whose(happened: &Happened<'_>) -> Whose {
    let Event { agent_id, request_id, .. } = happened.event;
    let agent = agent_id.as_ref().map(ToString::to_string).unwrap_or_default();
    (agent, request_id.as_ref().map(ToString::to_string).unwrap_or_default())
}

/// Adds which event it was, and who was told.
fn describe(item: &mut Item, happened: &Happened<'_>) {
    let Event { seq, request_id, what, .. } = happened.event;
    if let Some(request) = request_id
        && !item.more.iter().any(|(name, _)| *name == "request")
    {
        item.add("request", request.as_str());
    }
    let seq = seq.map(|seq| format!(" #{seq}")).unwrap_or_default();
    let seen = happened.seen.iter().map(|(who, at)| format!("{who} {:.3} s", at.as_secs_f64()));
    let seen: Vec<String> = seen.collect();
    let seen = if seen.is_empty() { String::new() } else { format!(", told {}", seen.join(", ")) };
    item.add("event", &format!("{}{seq}{seen}", what.name()));
}
