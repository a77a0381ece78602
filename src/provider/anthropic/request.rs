//! The body of a messages request.
//! Pure. What the wire wants besides the mapping:
//!
//! - the first message is the user's, and the two roles take turns: neighbours of one role are
//!   joined, and results of tools are the user's;
//! - no text is empty or blank;
//! - every id of a call is plain and stands in the whole conversation once, also where another
//!   provider gave them;
//! - a bound of the answer's length;
//! - models of today are asked to think as they see fit, older ones with a bound, which they want to
//!   find their own thoughts in the conversation again: those think at the begin of a turn only.

use std::borrow::Cow;

use serde_json::{Value, json};

use crate::json::{List, Object};
use crate::message::{Message, ToolDefinition};
use crate::messages::Messages;
use crate::provider::ModelRequest;
use crate::provider::body;
use crate::provider::names::{self, Ids};

/// The least that an older model may be given to think.
const THOUGHT_TOKENS_MIN: u64 = 1024;
/// Models that think only within a bound, by a part of their ids.
const BOUNDED_THINKERS: [&str; 7] =
    ["claude-3", "opus-4-0", "sonnet-4-0", "opus-4-1", "-4-5", "opus-4-2025", "sonnet-4-2025"];
/// Stands for messages that are no longer shown.
const LEFT_OUT: &str = "(Earlier messages are left out.)";
const BLANK: &str = "(blank)";

/// Whether the part of a request that stays the same is marked for the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marks {
    None,
    Set,
}

/// Returns the request as JSON.
pub(super) fn body(request: &ModelRequest, marks: Marks) -> Vec<u8> {
    let mut messages = conversation(&request.messages);
    let mut system: Vec<Block<'_>> =
        if is_blank(&request.system) { Vec::new() } else { vec![Block::text(&request.system)] };
    let mut tools: Vec<WireTool<'_>> =
        request.tools.iter().map(|tool| WireTool { tool, mark: Mark::Without }).collect();
    if marks == Marks::Set {
        // Tools come first, then the system prompt: the mark on the latter covers both.
        match (system.last_mut(), tools.last_mut()) {
            (Some(system), _) => system.mark = Mark::With,
            (None, Some(tool)) => tool.mark = Mark::With,
            (None, None) => {}
        }
        if let Some(newest) = messages.last_mut().and_then(|message| message.content.last_mut()) {
            newest.mark = Mark::With;
        }
    }
    Object::build(body::room(request), |body| {
        body.text("model", &request.model);
        body.value("max_tokens", &request.output_tokens_max);
        if !system.is_empty() {
            body.list("system", |list| put_blocks(list, &system));
        }
        body.list("messages", |list| {
            for message in &messages {
                list.object(|wire| {
                    wire.text("role", message.role.word());
                    wire.list("content", |list| put_blocks(list, &message.content));
                });
            }
        });
        if !tools.is_empty() {
            body.list("tools", |list| {
                for tool in &tools {
                    list.object(|wire| put_tool(wire, tool));
                }
            });
        }
        if let Some(thinking) = thinking(request) {
            body.value("thinking", &thinking);
        }
        body.value("stream", &true);
    })
}

struct WireMessage<'a> {
    role: Role,
    content: Vec<Block<'a>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    User,
    Assistant,
}

impl Role {
    fn word(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

struct Block<'a> {
    what: What<'a>,
    mark: Mark,
}

enum What<'a> {
    Text { text: &'a str },
    ToolUse { id: String, name: Cow<'a, str>, input: Cow<'a, Value> },
    ToolResult { tool_use_id: String, content: &'a str, is_error: bool },
}

/// Whether something is the end of a part that stays the same.
#[derive(Clone, Copy)]
enum Mark {
    Without,
    With,
}

struct WireTool<'a> {
    tool: &'a ToolDefinition,
    mark: Mark,
}

impl<'a> Block<'a> {
    fn new(what: What<'a>) -> Self {
        Self { what, mark: Mark::Without }
    }

    fn text(text: &'a str) -> Self {
        Self::new(What::Text { text })
    }
}

fn put_blocks(list: &mut List<'_>, blocks: &[Block<'_>]) {
    for block in blocks {
        list.object(|wire| put_block(wire, block));
    }
}

fn put_block(wire: &mut Object<'_>, block: &Block<'_>) {
    match &block.what {
        What::Text { text } => {
            wire.word("type", "text");
            wire.text("text", text);
        }
        What::ToolUse { id, name, input } => {
            wire.word("type", "tool_use");
            wire.text("id", id);
            wire.text("name", name);
            wire.value("input", input);
        }
        What::ToolResult { tool_use_id, content, is_error } => {
            wire.word("type", "tool_result");
            wire.text("tool_use_id", tool_use_id);
            wire.text("content", content);
            if *is_error {
                wire.value("is_error", &true);
            }
        }
    }
    put_mark(wire, block.mark);
}

fn put_tool(wire: &mut Object<'_>, WireTool { tool, mark }: &WireTool<'_>) {
    wire.text("name", &tool.name);
    wire.text("description", &tool.description);
    wire.value("input_schema", &tool.parameters);
    put_mark(wire, *mark);
}

fn put_mark(wire: &mut Object<'_>, mark: Mark) {
    match mark {
        Mark::Without => {}
        Mark::With => wire.object("cache_control", |control| control.word("type", "ephemeral")),
    }
}

fn conversation(messages: &Messages) -> Vec<WireMessage<'_>> {
    let mut ids = Ids::default();
    let mut joined = Joined { messages: Vec::new() };
    if !matches!(messages.iter().next(), Some(Message::User { .. }) | None) {
        joined.push(Role::User, Block::text(LEFT_OUT));
    }
    for message in messages.iter() {
        match message {
            Message::User { content, meta: _ } => {
                let text = if is_blank(content) { BLANK } else { content };
                joined.push(Role::User, Block::text(text));
            }
            Message::Assistant { content, tool_calls, meta: _ } => {
                if !is_blank(content) {
                    joined.push(Role::Assistant, Block::text(content));
                }
                ids.begin();
                for call in tool_calls {
                    let id = ids.of_call(&call.id);
                    let (name, input) = (names::plain(&call.name), names::object(&call.arguments));
                    joined.push(Role::Assistant, Block::new(What::ToolUse { id, name, input }));
                }
            }
            Message::Tool { content, tool_call_id, meta } => {
                let is_error = meta.as_ref().is_some_and(|meta| meta.error);
                let tool_use_id = ids.of_result(tool_call_id);
                let result = What::ToolResult { tool_use_id, content, is_error };
                joined.push(Role::User, Block::new(result));
            }
        }
    }
    joined.messages
}

/// Messages whose roles take turns.
struct Joined<'a> {
    messages: Vec<WireMessage<'a>>,
}

impl<'a> Joined<'a> {
    fn push(&mut self, role: Role, block: Block<'a>) {
        match self.messages.last_mut() {
            Some(last) if last.role == role => last.content.push(block),
            Some(_) | None => self.messages.push(WireMessage { role, content: vec![block] }),
        }
    }
}

fn thinking(request: &ModelRequest) -> Option<Value> {
    if !request.reasoning {
        return None;
    }
    if !BOUNDED_THINKERS.iter().any(|part| request.model.contains(part)) {
        return Some(json!({ "type": "adaptive" }));
    }
    let before = request.messages.iter().rfind(|m| !matches!(m, Message::User { .. }));
    // Results of tools, also of a turn that ended right after them, belong to thoughts not kept.
    let begins = !matches!(before, Some(Message::Tool { .. }));
    let budget = (request.output_tokens_max / 2).max(THOUGHT_TOKENS_MIN);
    (begins && budget < request.output_tokens_max)
        .then(|| json!({ "type": "enabled", "budget_tokens": budget }))
}

fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
