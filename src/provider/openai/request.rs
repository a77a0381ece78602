//! The body of a chat completions request.
//! Pure. It uses only what OpenAI, OpenRouter, Ollama and vLLM all understand:
//!
//! - the system prompt is the first message, with the role `system`;
//! - `stream_options.include_usage` asks for the token counts, which come in the last chunk;
//! - an answer's length is bounded by `max_tokens`, except at OpenAI itself, whose newer models
//!   refuse that name and want `max_completion_tokens`, which Ollama would pass over in silence;
//! - `tools` is left out where there are none, since OpenAI refuses an empty list, and so is
//!   `tool_choice`, whose default is to let the model choose;
//! - a model is asked to think by `reasoning_effort`, except at OpenRouter, which has `reasoning` for
//!   all the models behind it;
//! - the part that stays the same is marked only for OpenRouter's models of Anthropic: the others
//!   find it by themselves;
//! - no sampling parameters: several models refuse any but their own.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Value, json};

use crate::message::{Message, ToolCall, ToolDefinition};
use crate::provider::ModelRequest;
use crate::provider::names::{self, Ids};

/// How hard a model thinks that is asked to.
const EFFORT: &str = "medium";
/// How OpenRouter names the models that want marks.
const MARKED_MODELS: &str = "anthropic/";

/// What servers of this wire call differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dialect {
    pub(super) length: LengthField,
    pub(super) thinking: ThinkingField,
    pub(super) marks: Marks,
}

/// What the bound of an answer's length is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LengthField {
    MaxTokens,
    MaxCompletionTokens,
    /// `max_tokens`, which models that think refuse.
    ByModel,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ThinkingField {
    ReasoningEffort,
    Reasoning,
}

/// Whether the part of a request that stays the same is marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marks {
    Never,
    WhereWanted,
}

/// Returns the request as JSON.
pub(super) fn body(request: &ModelRequest, dialect: Dialect) -> Vec<u8> {
    let system = (!request.system.is_empty())
        .then(|| WireMessage::System { content: Content::Text(&request.system) });
    let mut ids = Ids::default();
    let messages = request.messages.iter().map(|message| wire_message(message, &mut ids));
    let mut messages: Vec<_> = system.into_iter().chain(messages).collect();
    if dialect.marks == Marks::WhereWanted && request.model.starts_with(MARKED_MODELS) {
        mark(&mut messages);
    }
    let length = Some(request.output_tokens_max);
    let (max_tokens, max_completion_tokens) = match (dialect.length, request.reasoning) {
        (LengthField::MaxTokens, _) | (LengthField::ByModel, false) => (length, None),
        (LengthField::MaxCompletionTokens, _) | (LengthField::ByModel, true) => (None, length),
    };
    let (reasoning_effort, reasoning) = match (request.reasoning, dialect.thinking) {
        (false, _) => (None, None),
        (true, ThinkingField::ReasoningEffort) => (Some(EFFORT), None),
        (true, ThinkingField::Reasoning) => (None, Some(json!({ "enabled": true }))),
    };
    let body = WireRequest {
        model: &request.model,
        messages,
        tools: request.tools.iter().map(wire_tool).collect(),
        stream: true,
        stream_options: StreamOptions { include_usage: true },
        max_tokens,
        max_completion_tokens,
        reasoning_effort,
        reasoning,
    };
    serde_json::to_vec(&body).expect("strings, numbers and JSON values always serialise")
}

#[derive(Serialize)]
struct WireRequest<'a> {
    model: &'a str,
    messages: Vec<WireMessage<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<WireTool<'a>>,
    stream: bool,
    stream_options: StreamOptions,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Value>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum WireMessage<'a> {
    System {
        content: Content<'a>,
    },
    User {
        content: Content<'a>,
    },
    Assistant {
        /// Null where the model only called tools: an empty text is refused by some.
        content: Option<&'a str>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<WireCall<'a>>,
    },
    Tool {
        tool_call_id: String,
        content: &'a str,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(&'a str),
    /// In parts, of which one can carry a mark.
    Parts([Value; 1]),
}

impl Content<'_> {
    fn mark(&mut self) {
        if let Self::Text(text) = self {
            let mark = json!({ "type": "ephemeral" });
            *self = Self::Parts([json!({"type": "text", "text": text, "cache_control": mark})]);
        }
    }
}

/// Marks the system prompt and the newest message of the user: what comes before stays the same.
fn mark(messages: &mut [WireMessage<'_>]) {
    if let Some(WireMessage::System { content }) = messages.first_mut() {
        content.mark();
    }
    let newest = messages.iter_mut().rev().find_map(|message| match message {
        WireMessage::User { content } => Some(content),
        WireMessage::System { .. } | WireMessage::Assistant { .. } | WireMessage::Tool { .. } => {
            None
        }
    });
    if let Some(content) = newest {
        content.mark();
    }
}

#[derive(Serialize)]
struct WireCall<'a> {
    id: String,
    r#type: &'static str,
    function: WireFunction<'a>,
}

#[derive(Serialize)]
struct WireFunction<'a> {
    name: Cow<'a, str>,
    arguments: String,
}

#[derive(Serialize)]
struct WireTool<'a> {
    r#type: &'static str,
    function: &'a ToolDefinition,
}

fn wire_message<'a>(message: &'a Message, ids: &mut Ids) -> WireMessage<'a> {
    match message {
        Message::User { content, meta: _ } => WireMessage::User { content: Content::Text(content) },
        Message::Assistant { content, tool_calls, meta: _ } => {
            ids.begin();
            WireMessage::Assistant {
                content: (!content.is_empty() || tool_calls.is_empty()).then_some(content),
                tool_calls: tool_calls.iter().map(|call| wire_call(call, ids)).collect(),
            }
        }
        Message::Tool { content, tool_call_id, meta: _ } => {
            WireMessage::Tool { tool_call_id: ids.of_result(tool_call_id), content }
        }
    }
}

fn wire_call<'a>(call: &'a ToolCall, ids: &mut Ids) -> WireCall<'a> {
    let arguments = names::object(&call.arguments).to_string();
    WireCall {
        id: ids.of_call(&call.id),
        r#type: "function",
        function: WireFunction { name: names::plain(&call.name), arguments },
    }
}

fn wire_tool(tool: &ToolDefinition) -> WireTool<'_> {
    WireTool { r#type: "function", function: tool }
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
