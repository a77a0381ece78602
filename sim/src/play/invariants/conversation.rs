//! A model request read as a conversation, in the words of the server's own messages. Pure.
//! It reads what stands on the wire, so that what the server believes it sent is not trusted. Both
//! wires are read by the same rules: what one of them lacks is never in its requests.

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
    content: Content,
    #[serde(default)]
    tool_calls: Vec<WireCall>,
    #[serde(default)]
    tool_call_id: String,
}

/// One text, or blocks.
#[derive(Default, Deserialize)]
#[serde(untagged)]
enum Content {
    #[default]
    Nothing,
    Text(String),
    Blocks(Vec<Block>),
}

/// The blocks that make a conversation; all others are passed over.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block {
    Text {
        text: String,
    },
    ToolUse {
        id: String,
        name: String,
        input: Value,
    },
    ToolResult {
        tool_use_id: String,
        #[serde(default)]
        content: Content,
    },
    #[serde(other)]
    Other,
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

/// The messages without the system prompt; `None` where the body is no request to a model.
pub fn read(body: &[u8]) -> Option<Vec<Message>> {
    let request: WireRequest = serde_json::from_slice(body).ok()?;
    let mut messages = Vec::new();
    for message in request.messages {
        match message.role.as_str() {
            "system" => {}
            "user" => messages.extend(of_user(message.content)),
            "assistant" => messages.push(of_model(message)),
            "tool" => messages.push(Message::Tool {
                content: message.content.text(),
                tool_call_id: message.tool_call_id,
                meta: None,
            }),
            _ => return None,
        }
    }
    Some(messages)
}

/// A user's words and the results of tools that follow each other are blocks of one message in the
/// Anthropic wire.
fn of_user(content: Content) -> Vec<Message> {
    let said = |text: String| Message::User { content: text.into(), meta: None };
    let blocks = match content {
        Content::Nothing => Vec::new(),
        Content::Text(text) => return vec![said(text)],
        Content::Blocks(blocks) => blocks,
    };
    let messages = blocks.into_iter().filter_map(|block| match block {
        Block::Text { text } => Some(said(text)),
        Block::ToolResult { tool_use_id, content } => {
            Some(Message::Tool { content: content.text(), tool_call_id: tool_use_id, meta: None })
        }
        Block::ToolUse { .. } | Block::Other => None,
    });
    messages.collect()
}

fn of_model(message: WireMessage) -> Message {
    let content = message.content.text();
    let calls = message.tool_calls.into_iter().map(|call| ToolCall {
        id: call.id,
        name: call.function.name,
        arguments: call.function.arguments,
    });
    let mut tool_calls: Vec<ToolCall> = calls.collect();
    if let Content::Blocks(blocks) = message.content {
        tool_calls.extend(blocks.into_iter().filter_map(|block| match block {
            Block::ToolUse { id, name, input } => Some(ToolCall { id, name, arguments: input }),
            Block::Text { .. } | Block::ToolResult { .. } | Block::Other => None,
        }));
    }
    Message::Assistant { content, tool_calls, meta: None }
}

impl Content {
    fn text(&self) -> String {
        match self {
            Self::Nothing => String::new(),
            Self::Text(text) => text.clone(),
            Self::Blocks(blocks) => {
                let texts = blocks.iter().map(|block| match block {
                    Block::Text { text } => text.as_str(),
                    Block::ToolUse { .. } | Block::ToolResult { .. } | Block::Other => "",
                });
                texts.collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_conversation_is_the_same_in_both_wires() {
        let call = |id: &str| json!({"id": id, "type": "function", "function": {"name": "echo", "arguments": {}}});
        let chat = json!({"messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "well", "tool_calls": [call("a"), call("b")]},
            {"role": "tool", "content": "one", "tool_call_id": "a"},
            {"role": "tool", "content": "two", "tool_call_id": "b"},
            {"role": "user", "content": "and?"},
        ]});
        let asks = |id: &str| json!({"type": "tool_use", "id": id, "name": "echo", "input": {}});
        let result = |id: &str, content: Value| json!({"type": "tool_result", "tool_use_id": id, "content": content});
        let messages = json!({"system": "Be brief.", "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "text", "text": "well"}, asks("a"), asks("b"),
            ]},
            {"role": "user", "content": [
                result("a", json!("one")), result("b", json!([{"type": "text", "text": "two"}])),
                {"type": "text", "text": "and?"},
            ]},
        ]});
        let read = |body: &Value| read(body.to_string().as_bytes()).unwrap();
        assert_eq!(read(&chat), read(&messages));
        assert_eq!(read(&chat).len(), 5);
    }
}
