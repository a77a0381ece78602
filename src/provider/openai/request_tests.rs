//! Request bodies, compared whole.

use std::sync::Arc;

use serde_json::{Value, json};

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
        reasoning: false,
    }
}

const PLAIN: Dialect = Dialect {
    length: LengthField::MaxTokens,
    thinking: ThinkingField::ReasoningEffort,
    marks: Marks::Never,
};

fn body_value(request: &ModelRequest, length: LengthField) -> Value {
    spoken(request, Dialect { length, ..PLAIN })
}

fn spoken(request: &ModelRequest, dialect: Dialect) -> Value {
    serde_json::from_slice(&body(request, dialect)).unwrap()
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
        name: "read_file".into(),
        description: "Reads a file.".into(),
        parameters: json!({"type": "object", "properties": {"path": {"type": "string"}}}).into(),
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
            {"id": "c1_2", "type": "function", "function": {"name": "_", "arguments": "{}"}},
        ]}])
    );
}

#[test]
fn a_model_is_asked_to_think_in_the_words_of_its_server() {
    let thinker = ModelRequest { reasoning: true, ..request("", vec![user("hi")], Vec::new()) };
    let plain = spoken(&thinker, PLAIN);
    assert_eq!((&plain["reasoning_effort"], &plain["reasoning"]), (&json!("medium"), &Value::Null));
    let router = spoken(&thinker, Dialect { thinking: ThinkingField::Reasoning, ..PLAIN });
    assert_eq!(router["reasoning"], json!({"enabled": true}));
    let by_model = Dialect { length: LengthField::ByModel, ..PLAIN };
    assert_eq!(spoken(&thinker, by_model)["max_completion_tokens"], 4096);
    let brief = ModelRequest { reasoning: false, ..thinker };
    assert_eq!(spoken(&brief, by_model)["max_tokens"], 4096);
}

#[test]
fn what_stays_the_same_is_marked_for_the_models_that_want_it() {
    let mut asked = request("Be brief.", vec![user("one"), user("two")], Vec::new());
    let marking = Dialect { marks: Marks::WhereWanted, ..PLAIN };
    assert_eq!(spoken(&asked, marking), spoken(&asked, PLAIN), "not every model wants marks");
    asked.model = "anthropic/claude".to_owned();
    let part = |text: &str| json!([{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]);
    assert_eq!(
        spoken(&asked, marking)["messages"],
        json!([
            {"role": "system", "content": part("Be brief.")},
            {"role": "user", "content": "one"},
            {"role": "user", "content": part("two")},
        ])
    );
}

#[test]
fn a_conversation_is_written_the_same_however_often_and_however_long() {
    let calling = Message::Assistant {
        content: "Let me see.".to_owned(),
        tool_calls: vec![call("echo", json!({}))],
        meta: None,
    };
    let result =
        Message::Tool { content: "x".to_owned(), tool_call_id: "c1".to_owned(), meta: None };
    let said = |text: &str| Message::Assistant {
        content: text.to_owned(),
        tool_calls: Vec::new(),
        meta: None,
    };
    let turn = |number: usize| {
        let question = user(&format!("question \"{number}\""));
        match number % 40 {
            20 => vec![question, calling.clone(), result.clone(), said("done")],
            _ => vec![question, said(&format!("answer {number}"))],
        }
    };
    let all: Vec<Message> = (0..100).flat_map(turn).collect();
    let mut asked = request("Be brief.", Vec::new(), Vec::new());
    asked.model = "anthropic/claude".to_owned();
    let marking = Dialect { marks: Marks::WhereWanted, ..PLAIN };
    for message in &all {
        asked.messages.push(Arc::new(message.clone()));
        // The second time what is written already is taken.
        let sent = [spoken(&asked, PLAIN), spoken(&asked, PLAIN)];
        assert_eq!(sent[0], sent[1]);
        let texts = |sent: &Value| -> Vec<Value> {
            let text = |message: &Value| match &message["content"] {
                Value::Array(parts) => parts[0]["text"].clone(),
                text => text.clone(),
            };
            sent["messages"].as_array().unwrap()[1..].iter().map(text).collect()
        };
        let expected: Vec<Value> = asked.messages.iter().map(|m| m.content().into()).collect();
        assert_eq!(texts(&sent[0]), expected);
        assert_eq!(texts(&spoken(&asked, marking)), expected);
    }
    let sent = spoken(&asked, PLAIN);
    let messages = sent["messages"].as_array().unwrap();
    let ids = messages.iter().filter_map(|message| message["tool_calls"][0]["id"].as_str());
    assert_eq!(ids.collect::<Vec<_>>(), ["c1", "c1_2"]);
    let results = messages.iter().filter_map(|message| message["tool_call_id"].as_str());
    assert_eq!(results.collect::<Vec<_>>(), ["c1", "c1_2"]);
    assert!(messages.len() > 200);
}
