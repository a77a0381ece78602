//! The body of a chat completions request.
//! Pure. It uses only what OpenAI, OpenRouter, Ollama and vLLM all understand:
//!
//! - the system prompt is the first message, with the role `system`;
//! - `stream_options.include_usage` asks for the token counts, which come in the last chunk;
//! - an answer's length is bounded by `max_tokens`, except at OpenAI itself, whose newer models
//!   refuse that name and want `max_completion_tokens`, which Ollama would pass over in silence;
//! - `tools` is left out where there are none, since OpenAI refuses an empty list, and so is
//!   `tool_choice`, whose default is to let the model choose;
//! - no sampling parameters: several models refuse any but their own.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Value, json};

use crate::message::{Message, ToolCall, ToolDefinition};
use crate::provider::ModelRequest;

/// The longest name of a function that OpenAI takes back.
const NAME_CHARS_MAX: usize = 64;

/// What the bound of an answer's length is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LengthField {
    MaxTokens,
    MaxCompletionTokens,
}

/// Returns the request as JSON.
pub(super) fn body(request: &ModelRequest, length_field: LengthField) -> Vec<u8> {
    let system =
        (!request.system.is_empty()).then(|| WireMessage::System { content: &request.system });
    let messages = request.messages.iter().map(|message| wire_message(message));
    let length = Some(request.output_tokens_max);
    let (max_tokens, max_completion_tokens) = match length_field {
        LengthField::MaxTokens => (length, None),
        LengthField::MaxCompletionTokens => (None, length),
    };
    let body = WireRequest {
        model: &request.model,
        messages: system.into_iter().chain(messages).collect(),
        tools: request.tools.iter().map(wire_tool).collect(),
        stream: true,
        stream_options: StreamOptions { include_usage: true },
        max_tokens,
        max_completion_tokens,
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
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum WireMessage<'a> {
    System {
        content: &'a str,
    },
    User {
        content: &'a str,
    },
    Assistant {
        /// Null where the model only called tools: an empty text is refused by some.
        content: Option<&'a str>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<WireCall<'a>>,
    },
    Tool {
        tool_call_id: &'a str,
        content: &'a str,
    },
}

#[derive(Serialize)]
struct WireCall<'a> {
    id: &'a str,
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

fn wire_message(message: &Message) -> WireMessage<'_> {
    match message {
        Message::User { content, meta: _ } => WireMessage::User { content },
        Message::Assistant { content, tool_calls, meta: _ } => WireMessage::Assistant {
            content: (!content.is_empty() || tool_calls.is_empty()).then_some(content),
            tool_calls: tool_calls.iter().map(wire_call).collect(),
        },
        Message::Tool { content, tool_call_id, meta: _ } => {
            WireMessage::Tool { tool_call_id, content }
        }
    }
}

fn wire_call(call: &ToolCall) -> WireCall<'_> {
    // Ollama and vLLM parse the arguments of earlier calls and refuse the whole request where one is
    // no object, which would end the conversation: what a model got wrong is shown to it inside one.
    let arguments = match &call.arguments {
        object @ Value::Object(_) => object.to_string(),
        other => json!({ "invalid_arguments": other }).to_string(),
    };
    WireCall {
        id: &call.id,
        r#type: "function",
        function: WireFunction { name: wire_name(&call.name), arguments },
    }
}

/// A model may have called a tool by a name that no tool can have; sent back as it is, OpenAI would
/// refuse this request and all that follow.
fn wire_name(name: &str) -> Cow<'_, str> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !name.is_empty() && name.len() <= NAME_CHARS_MAX && name.chars().all(allowed) {
        return Cow::Borrowed(name);
    }
    let mended: String =
        name.chars().take(NAME_CHARS_MAX).map(|c| if allowed(c) { c } else { '_' }).collect();
    Cow::Owned(if mended.is_empty() { "_".to_owned() } else { mended })
}

fn wire_tool(tool: &ToolDefinition) -> WireTool<'_> {
    WireTool { r#type: "function", function: tool }
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
