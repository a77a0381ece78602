//! The built-in model: its whole answers.

use serde_json::json;

use std::sync::Arc;

use super::*;
use crate::id::AgentId;
use crate::message::{ToolCall, ToolDefinition, ToolMeta};

fn request(messages: Vec<Message>) -> ModelRequest {
    let tool = |name: &'static str| ToolDefinition {
        name: name.into(),
        description: "".into(),
        parameters: json!({}).into(),
    };
    ModelRequest {
        agent: AgentId::parse("main").unwrap(),
        model: "demo".to_owned(),
        system: "Be brief.".into(),
        messages: messages.into_iter().map(Arc::new).collect(),
        tools: Arc::new([tool("sleep"), tool("echo")]),
        output_tokens_max: 10,
        reasoning: false,
    }
}

fn user(content: &str) -> Message {
    Message::User { content: content.into(), meta: None }
}

fn call_message(id: &str, name: &str) -> Message {
    Message::Assistant {
        content: String::new(),
        tool_calls: vec![ToolCall {
            id: id.to_owned(),
            name: name.to_owned(),
            arguments: json!({}),
        }],
        meta: None,
    }
}

fn result(id: &str, content: &str, error: bool) -> Message {
    Message::Tool {
        content: content.to_owned(),
        tool_call_id: id.to_owned(),
        meta: Some(ToolMeta { error }),
    }
}

/// The text of an answer that has only text.
fn text(request: &ModelRequest) -> String {
    let mut events = answer(request);
    assert_eq!(events.pop(), Some(ModelEvent::Finished(FinishReason::Stop)));
    assert!(matches!(events.pop(), Some(ModelEvent::Usage(_))));
    let texts = events.into_iter().map(|event| match event {
        ModelEvent::Text(text) => text,
        other => panic!("only text was expected: {other:?}"),
    });
    texts.collect()
}

#[test]
fn a_message_is_repeated_in_several_chunks_with_words_as_usage() {
    let chunk = |text: &str| ModelEvent::Text(text.to_owned());
    assert_eq!(
        answer(&request(vec![user("hello there")])),
        [
            chunk("I am the demo "),
            chunk("model built into NEXUS3: "),
            chunk("no network, no key, "),
            chunk("no understanding. You said: "),
            chunk("\"hello there\" Ask me "),
            chunk("to `call TOOL {json}` "),
            chunk("and I will call "),
            chunk("that tool."),
            ModelEvent::Usage(Usage { input_tokens: 4, output_tokens: 30 }),
            ModelEvent::Finished(FinishReason::Stop),
        ]
    );
}

#[test]
fn a_call_is_made_with_its_arguments_and_an_id_of_its_own() {
    let called = |id: &str, name: &str, arguments: &str, input_tokens, output_tokens| {
        vec![
            ModelEvent::ToolCallStarted { index: 0, id: id.to_owned(), name: name.to_owned() },
            ModelEvent::ToolCallDelta { index: 0, arguments: arguments.to_owned() },
            ModelEvent::Usage(Usage { input_tokens, output_tokens }),
            ModelEvent::Finished(FinishReason::ToolCalls),
        ]
    };
    assert_eq!(
        answer(&request(vec![user(" call sleep {\"seconds\": 1}\n")])),
        called("call_1", "sleep", "{\"seconds\": 1}", 6, 3)
    );
    let later = vec![
        user("call echo"),
        call_message("call_1", "echo"),
        result("call_1", "ok", false),
        user("call echo"),
    ];
    assert_eq!(answer(&request(later)), called("call_2", "echo", "{}", 7, 2));
}

#[test]
fn a_call_that_cannot_be_made_is_explained() {
    assert_eq!(
        text(&request(vec![user("call missing {}")])),
        "There is no tool `missing`. There are: sleep, echo."
    );
    assert_eq!(
        text(&request(vec![user("call echo [1]")])),
        "The arguments of `echo` must be one JSON object, as in `call echo {}`."
    );
    let toolless = ModelRequest { tools: Arc::new([]), ..request(vec![user("call echo")]) };
    assert_eq!(text(&toolless), "There is no tool `echo`: this agent has no tools.");
}

#[test]
fn results_are_reported_by_the_names_of_their_tools() {
    let conversation = vec![
        user("call echo"),
        call_message("call_1", "echo"),
        result("call_1", "first", false),
        call_message("call_2", "sleep"),
        result("call_2", "too long", true),
    ];
    assert_eq!(text(&request(conversation)), "The tool `sleep` failed: \"too long\"");
}

#[test]
fn a_long_message_is_shortened() {
    let long = "é".repeat(QUOTE_CHARS_MAX + 1);
    let shown = "é".repeat(QUOTE_CHARS_MAX);
    assert_eq!(
        text(&request(vec![user(&long)])),
        format!(
            "I am the demo model built into NEXUS3: no network, no key, no understanding. \
             You said: \"{shown}…\" Ask me to `call TOOL {{json}}` and I will call that tool."
        )
    );
}
