//! Request bodies, compared whole.

use std::sync::Arc;

use super::*;
use crate::id::AgentId;
use crate::message::{AssistantMeta, ToolMeta, UserMeta};

fn request(system: &str, messages: Vec<Message>, tools: Vec<ToolDefinition>) -> ModelRequest {
    ModelRequest {
        agent: AgentId::parse("main").unwrap(),
        model: "m-1".to_owned(),
        system: system.into(),
        messages: messages.into_iter().map(Arc::new).collect(),
        tools: tools.into(),
        output_tokens_max: 4096,
    }
}

fn body_value(request: &ModelRequest, length_field: LengthField) -> Value {
    serde_json::from_slice(&body(request, length_field)).unwrap()
}

fn user(content: &str) -> Message {
    Message::User { content: content.into(), meta: None }
}

fn call(name: &str, arguments: Value) -> ToolCall {
    ToolCall { id: "c1".to_owned(), name: name.to_owned(), arguments }
}

#[test]
fn a_conversation_with_tools_is_mapped_message_by_message() {
    let messages = vec![
        Message::User {
            content: "hi".into(),
            meta: Some(UserMeta { source: "rpc".to_owned(), source_agent_id: None }),
        },
        Message::Assistant {
            content: String::new(),
            tool_calls: vec![call("read_file", json!({"path": "a", "b": 1}))],
            meta: None,
        },
        Message::Tool {
            content: "text of a".to_owned(),
            tool_call_id: "c1".to_owned(),
            meta: Some(ToolMeta { error: false }),
        },
        Message::Assistant {
            content: "It says".to_owned(),
            tool_calls: Vec::new(),
            meta: Some(AssistantMeta { partial: "cancelled".to_owned() }),
        },
    ];
    let tool = ToolDefinition {
        name: "read_file",
        description: "Reads a file.",
        parameters: json!({"type": "object", "properties": {"path": {"type": "string"}}}),
    };
    assert_eq!(
        body_value(&request("Be brief.", messages, vec![tool]), LengthField::MaxTokens),
        json!({
            "model": "m-1",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "hi"},
                {"role": "assistant", "content": null, "tool_calls": [{
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "read_file", "arguments": "{\"path\":\"a\",\"b\":1}"},
                }]},
                {"role": "tool", "tool_call_id": "c1", "content": "text of a"},
                {"role": "assistant", "content": "It says"},
            ],
            "tools": [{"type": "function", "function": {
                "name": "read_file",
                "description": "Reads a file.",
                "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
            }}],
            "stream": true,
            "stream_options": {"include_usage": true},
            "max_tokens": 4096,
        })
    );
}

#[test]
fn an_empty_system_prompt_and_an_empty_tool_list_are_left_out() {
    assert_eq!(
        body_value(&request("", vec![user("hi")], Vec::new()), LengthField::MaxCompletionTokens),
        json!({
            "model": "m-1",
            "messages": [{"role": "user", "content": "hi"}],
            "stream": true,
            "stream_options": {"include_usage": true},
            "max_completion_tokens": 4096,
        })
    );
}

#[test]
fn a_call_that_no_server_would_take_back_is_mended() {
    let calls = vec![call("files.read me", json!("{\"path\": ")), call("", json!({}))];
    let message =
        Message::Assistant { content: "Let me see.".to_owned(), tool_calls: calls, meta: None };
    let sent = body_value(&request("", vec![message], Vec::new()), LengthField::MaxTokens);
    assert_eq!(
        sent["messages"],
        json!([{"role": "assistant", "content": "Let me see.", "tool_calls": [
            {"id": "c1", "type": "function", "function": {
                "name": "files_read_me",
                "arguments": "{\"invalid_arguments\":\"{\\\"path\\\": \"}",
            }},
            {"id": "c1", "type": "function", "function": {"name": "_", "arguments": "{}"}},
        ]}])
    );
}
