//! Request bodies, compared whole.

use std::sync::Arc;

use super::*;
use crate::id::AgentId;
use crate::message::{ToolCall, ToolMeta};

fn request(system: &str, messages: Vec<Message>, tools: Vec<ToolDefinition>) -> ModelRequest {
    ModelRequest {
        agent: AgentId::parse("main").unwrap(),
        model: "claude-1".to_owned(),
        system: system.into(),
        messages: messages.into_iter().map(Arc::new).collect(),
        tools: tools.into(),
        output_tokens_max: 4096,
        reasoning: false,
    }
}

fn sent(request: &ModelRequest, marks: Marks) -> Value {
    serde_json::from_slice(&body(request, marks)).unwrap()
}

fn messages(messages: Vec<Message>) -> Value {
    sent(&request("", messages, Vec::new()), Marks::None)["messages"].take()
}

fn user(content: &str) -> Message {
    Message::User { content: content.into(), meta: None }
}

fn assistant(content: &str, calls: &[(&str, Value)]) -> Message {
    let call = |(id, arguments): &(&str, Value)| ToolCall {
        id: (*id).to_owned(),
        name: "read".to_owned(),
        arguments: arguments.clone(),
    };
    let tool_calls = calls.iter().map(call).collect();
    Message::Assistant { content: content.to_owned(), tool_calls, meta: None }
}

fn result(id: &str, content: &str, error: bool) -> Message {
    Message::Tool {
        content: content.to_owned(),
        tool_call_id: id.to_owned(),
        meta: error.then_some(ToolMeta { error }),
    }
}

fn tool() -> ToolDefinition {
    ToolDefinition {
        name: "read".into(),
        description: "Reads a file.".into(),
        parameters: json!({"type": "object"}).into(),
    }
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

#[test]
fn a_conversation_with_tools_is_mapped_in_turns() {
    let conversation = vec![
        user("hi"),
        assistant("Let me see.", &[("a", json!({"path": "x"})), ("b", json!("{oops"))]),
        result("a", "text of x", false),
        result("b", "no object", true),
        user("and?"),
        assistant("Done.", &[]),
        user("thanks"),
    ];
    assert_eq!(
        sent(&request("Be brief.", conversation, vec![tool()]), Marks::None),
        json!({
            "model": "claude-1",
            "max_tokens": 4096,
            "system": [text("Be brief.")],
            "messages": [
                {"role": "user", "content": [text("hi")]},
                {"role": "assistant", "content": [
                    text("Let me see."),
                    {"type": "tool_use", "id": "a", "name": "read", "input": {"path": "x"}},
                    {"type": "tool_use", "id": "b", "name": "read",
                     "input": {"invalid_arguments": "{oops"}},
                ]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "a", "content": "text of x"},
                    {"type": "tool_result", "tool_use_id": "b", "content": "no object",
                     "is_error": true},
                    text("and?"),
                ]},
                {"role": "assistant", "content": [text("Done.")]},
                {"role": "user", "content": [text("thanks")]},
            ],
            "tools": [{"name": "read", "description": "Reads a file.",
                       "input_schema": {"type": "object"}}],
            "stream": true,
        })
    );
}

#[test]
fn ids_of_other_providers_are_plain_and_stand_there_once() {
    let conversation = vec![
        user("hi"),
        assistant("", &[("call_1", json!({})), ("functions.x:0", json!({}))]),
        result("call_1", "1", false),
        result("functions.x:0", "2", false),
        assistant("", &[("call_1", json!({})), ("call_1_2", json!({}))]),
        result("call_1", "3", false),
        result("call_1_2", "4", false),
    ];
    let sent = messages(conversation);
    let ids = |message: usize, key: &str| -> Vec<Value> {
        let blocks = sent[message]["content"].as_array().unwrap().iter();
        blocks.map(|block| block[key].clone()).collect()
    };
    assert_eq!(ids(1, "id"), ["call_1", "functions_x_0"]);
    assert_eq!(ids(2, "tool_use_id"), ["call_1", "functions_x_0"]);
    assert_eq!(ids(3, "id"), ["call_1_2", "call_1_2_2"]);
    assert_eq!(ids(4, "tool_use_id"), ids(3, "id"));
}

#[test]
fn blank_texts_and_missing_beginnings_are_filled() {
    let conversation = vec![assistant("So?", &[]), user(" "), assistant("\n", &[]), user("hi")];
    assert_eq!(
        messages(conversation),
        json!([
            {"role": "user", "content": [text(LEFT_OUT)]},
            {"role": "assistant", "content": [text("So?")]},
            {"role": "user", "content": [text(BLANK), text("hi")]},
        ])
    );
}

#[test]
fn what_stays_the_same_is_marked_for_the_cache() {
    let mark = json!({"type": "ephemeral"});
    let whole = sent(&request("Be brief.", vec![user("a"), user("b")], vec![tool()]), Marks::Set);
    assert_eq!(whole["system"][0]["cache_control"], mark);
    assert_eq!(whole["tools"][0]["cache_control"], Value::Null);
    assert_eq!(whole["messages"][0]["content"][0]["cache_control"], Value::Null);
    assert_eq!(whole["messages"][0]["content"][1]["cache_control"], mark);
    let bare = sent(&request("", vec![user("a")], vec![tool()]), Marks::Set);
    assert_eq!((&bare["system"], &bare["tools"][0]["cache_control"]), (&Value::Null, &mark));
}

#[test]
fn a_model_is_asked_to_think_as_its_kind_wants_it() {
    let mut thinker = request("", vec![user("hi")], Vec::new());
    let thinking = |request: &ModelRequest| sent(request, Marks::None)["thinking"].take();
    assert_eq!(thinking(&thinker), Value::Null);
    thinker.reasoning = true;
    assert_eq!(thinking(&thinker), json!({"type": "adaptive"}));
    thinker.model = "claude-sonnet-4-5".to_owned();
    assert_eq!(thinking(&thinker), json!({"type": "enabled", "budget_tokens": 2048}));
    thinker.output_tokens_max = 2000;
    assert_eq!(thinking(&thinker), json!({"type": "enabled", "budget_tokens": 1024}));
    thinker.output_tokens_max = 1024;
    assert_eq!(thinking(&thinker), Value::Null, "nothing would be left to answer");
    thinker.output_tokens_max = 4096;
    thinker.messages.push(Arc::new(assistant("", &[("a", json!({}))])));
    thinker.messages.push(Arc::new(result("a", "x", false)));
    assert_eq!(thinking(&thinker), Value::Null, "its thoughts of this turn are not kept");
    thinker.messages.push(Arc::new(user("go on")));
    assert_eq!(thinking(&thinker), Value::Null, "nor those of a turn that was cut there");
    thinker.messages.push(Arc::new(assistant("Done.", &[])));
    thinker.messages.push(Arc::new(user("and now?")));
    assert_ne!(thinking(&thinker), Value::Null);
}
