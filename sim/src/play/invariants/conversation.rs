//! A model request read as a conversation, in the words of the server's own messages. Pure.
//! It reads what stands on the wire, so that what the server believes it sent is not trusted.

use nexus3::message::{Message, ToolCall};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct WireRequest {
    messages: Vec<WireMessage>,
}

#[derive(Deserialize)]
struct WireMessage {
    role: String,
    #[serde(default)]
    content: Value,
    #[serde(default)]
    tool_calls: Vec<WireCall>,
    #[serde(default)]
    tool_call_id: String,
}

#[derive(Deserialize)]
struct WireCall {
    id: String,
    function: WireFunction,
}

#[derive(Deserialize)]
struct WireFunction {
    name: String,
    arguments: Value,
}

/// The messages without the system prompt; `None` where the body is no chat completions request.
pub fn read(body: &[u8]) -> Option<Vec<Message>> {
    let request: WireRequest = serde_json::from_slice(body).ok()?;
    request.messages.into_iter().filter(|message| message.role != "system").map(message).collect()
}

fn message(wire: WireMessage) -> Option<Message> {
    let content = text(&wire.content);
    match wire.role.as_str() {
        "user" => Some(Message::User { content: content.into(), meta: None }),
        "assistant" => {
            let calls = wire.tool_calls.into_iter().map(|call| ToolCall {
                id: call.id,
                name: call.function.name,
                arguments: call.function.arguments,
            });
            Some(Message::Assistant { content, tool_calls: calls.collect(), meta: None })
        }
        "tool" => Some(Message::Tool { content, tool_call_id: wire.tool_call_id, meta: None }),
        _ => None,
    }
}

/// A content as one text; it may come in parts.
fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part.get("text")?.as_str()).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}
