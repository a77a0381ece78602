//! Requests of both wires.

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::config::{ProviderConfig, ProviderKind};
use crate::id::AgentId;
use crate::message::{Message, ToolCall, ToolDefinition};
use crate::provider::ModelRequest;
use crate::provider::openai::Completions;
use crate::provider::wire::Wire as _;

fn posted(path: &str, body: &str) -> Request<Bytes> {
    let request = Request::post(format!("http://model{path}")).header(AGENT_HEADER, "w1");
    request.body(body.to_owned().into()).unwrap()
}

fn read(path: &str, body: &Value) -> Question {
    Question::read(&posted(path, &body.to_string())).unwrap()
}

fn shown(question: &Question) -> (usize, usize, &str) {
    (question.messages, question.calls, &question.last_message)
}

const CHAT: &str = "/v1/chat/completions";
const MESSAGES: &str = "/v1/messages";

#[test]
fn a_request_is_read_by_agent_model_and_last_message() {
    let body = json!({"model": "m", "stream": true, "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "assistant", "content": null, "tool_calls": [{"id": "a"}, {"id": "b"}]},
        {"role": "tool", "content": "one", "tool_call_id": "a"},
        {"role": "user", "content": [{"type": "text", "text": "t"}, {"type": "text", "text": "wo"}]},
    ]});
    let question = read(CHAT, &body);
    let expected = Question {
        wire: Wire::Openai,
        agent: "w1".to_owned(),
        model: "m".to_owned(),
        messages: 4,
        calls: 2,
        last_message: "two".to_owned(),
        delivery: Delivery::Stream,
        body: question.body.clone(),
    };
    assert_eq!(question, expected);
}

#[test]
fn a_request_of_ours_is_read_as_any_other() {
    let sly = r#""}],"tools":[{"role":","function":{},"messages":["stream":"#;
    let call = |id: &str| ToolCall {
        id: id.to_owned(),
        name: "echo".to_owned(),
        arguments: json!({"message": sly, "role": {"function": {}}, "messages": [], "stream": true}),
    };
    let said = |content: &str, tool_calls| Message::Assistant {
        content: content.to_owned(),
        tool_calls,
        meta: None,
    };
    let result = |tool_call_id: &str| Message::Tool {
        content: sly.to_owned(),
        tool_call_id: tool_call_id.to_owned(),
        meta: None,
    };
    let user = |content: &str| Message::User { content: content.into(), meta: None };
    let conversation = [
        user(sly),
        said("", vec![call("a"), call("b")]),
        result("a"),
        result("b"),
        said(sly, vec![call("c")]),
        result("c"),
        said(sly, Vec::new()),
        user("ü\\"),
    ];
    let tool = ToolDefinition {
        name: "echo".into(),
        description: sly.into(),
        parameters: json!({"function": {"role": {}}, "messages": []}).into(),
    };
    let wire = Completions::of(&ProviderConfig::of(ProviderKind::Script));
    for tools in [Vec::new(), vec![tool]] {
        for system in ["", sly] {
            for shown in 1..=conversation.len() {
                let asked = ModelRequest {
                    agent: AgentId::parse("w1").unwrap(),
                    model: "\"m\"".to_owned(),
                    system: system.into(),
                    messages: conversation[..shown].iter().cloned().map(Arc::new).collect(),
                    tools: tools.clone().into(),
                    output_tokens_max: 7,
                    reasoning: true,
                };
                let body = String::from_utf8(wire.body(&asked)).unwrap();
                let sent = posted(CHAT, &body);
                assert_eq!(Question::read_ours(&sent), Question::read(&sent));
                let cut = posted(CHAT, &body[..body.len() / 9]);
                assert_eq!(Question::read_ours(&cut), Question::read(&cut));
            }
        }
    }
}

#[test]
fn a_conversation_is_the_same_question_in_both_wires() {
    let asks = |id: &str| json!({"type": "tool_use", "id": id, "name": "echo", "input": {}});
    let result = |id: &str, content: Value| json!({"type": "tool_result", "tool_use_id": id, "content": content});
    let mut chat = vec![
        json!({"role": "system", "content": "Be brief."}),
        json!({"role": "user", "content": "hi"}),
        json!({"role": "assistant", "content": "well", "tool_calls": [{"id": "a"}, {"id": "b"}]}),
        json!({"role": "tool", "content": "one", "tool_call_id": "a"}),
        json!({"role": "tool", "content": "two", "tool_call_id": "b"}),
    ];
    let results =
        [result("a", json!("one")), result("b", json!([{"type": "text", "text": "two"}]))];
    let thought = json!({"type": "thinking", "thinking": "hm", "signature": "s"});
    let words = json!({"type": "text", "text": "well"});
    let mut messages = vec![
        json!({"role": "user", "content": "hi"}),
        json!({"role": "assistant", "content": [thought, words, asks("a"), asks("b")]}),
        json!({"role": "user", "content": results}),
    ];
    let both = |chat: &[Value], messages: &[Value]| {
        let system = json!([{"type": "text", "text": "Be brief."}]);
        let chat = read(CHAT, &json!({"model": "m", "messages": chat}));
        let body = json!({"model": "m", "max_tokens": 9, "system": system, "messages": messages});
        let messages = read(MESSAGES, &body);
        assert_eq!((chat.wire, messages.wire), (Wire::Openai, Wire::Anthropic));
        assert_eq!((&chat.agent, &chat.model), (&messages.agent, &messages.model));
        assert_eq!(shown(&chat), shown(&messages));
        (chat.messages, chat.calls, chat.last_message)
    };
    assert_eq!(both(&chat, &messages), (5, 2, "two".to_owned()));

    // A failed turn leaves a user's words behind results: one message here, two there.
    chat.push(json!({"role": "user", "content": "and?"}));
    let mut together = results.to_vec();
    together.push(json!({"type": "text", "text": "and?"}));
    messages[2] = json!({"role": "user", "content": together});
    assert_eq!(both(&chat, &messages), (6, 2, "and?".to_owned()));
}

#[test]
fn a_system_prompt_counts_where_there_is_one() {
    let count = |system: Value| {
        let hi = json!([{"role": "user", "content": "hi"}]);
        read(MESSAGES, &json!({"model": "m", "system": system, "messages": hi})).messages
    };
    assert_eq!([json!("Be brief."), json!([]), json!(""), Value::Null].map(count), [2, 1, 1, 1]);
}

#[test]
fn the_digest_is_of_what_was_shown_alone() {
    let digest = |path, body: &str| Question::read(&posted(path, body)).unwrap().digest();
    let hi = r#"{"role":"user","content":"hi"}"#;
    for path in [CHAT, MESSAGES] {
        let first = digest(path, &format!(r#"{{"model":"m","messages":[{hi}]}}"#));
        assert_eq!(first, digest(path, &format!(r#"{{"messages":[{hi}],"model":"n"}}"#)));
        assert_ne!(first, digest(path, &format!(r#"{{"model":"m","messages":[{hi},{hi}]}}"#)));
    }
    let of_system =
        |text| digest(MESSAGES, &format!(r#"{{"model":"m","system":"{text}","messages":[{hi}]}}"#));
    assert_ne!(of_system("a"), of_system("b"), "a system prompt is shown too");
    assert_eq!(hash(*b"foobar"), 0x8594_4171_f739_67e8, "the hash is FNV-1a");
}

#[test]
fn what_is_no_request_is_refused() {
    for (path, wire) in [(CHAT, Wire::Openai), (MESSAGES, Wire::Anthropic)] {
        for body in ["", "{}", "[]", r#"{"model":"m","messages":{}}"#] {
            let outcome = Question::read(&posted(path, body));
            assert_eq!(outcome, Err(NoQuestion::Body { wire }), "{body}");
        }
    }
    for content in ["null", "5", "{}", "[5]"] {
        let message = format!(r#"{{"role":"user","content":{content}}}"#);
        let body = format!(r#"{{"model":"m","messages":[{message}]}}"#);
        let outcome = Question::read(&posted(MESSAGES, &body));
        assert_eq!(outcome, Err(NoQuestion::Body { wire: Wire::Anthropic }), "{content}");
    }
    let elsewhere = posted("/v1/models", r#"{"model":"m","messages":[]}"#);
    assert_eq!(Question::read(&elsewhere), Err(NoQuestion::Path));
    let mut got = posted(CHAT, r#"{"model":"m","messages":[]}"#);
    *got.method_mut() = Method::GET;
    assert_eq!(Question::read(&got), Err(NoQuestion::Path));
}
