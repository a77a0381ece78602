//! Answers as chat completions: the records of a stream, and the body of an error. Pure.

use serde::Serialize;
use serde_json::{Value, json};

use super::{Chunk, Finish, Last, Records, Said};
use crate::provider::script::{Question, ScriptUsage};

pub(super) fn complaint(message: &str) -> String {
    json!({"error": {"message": message, "type": "script_error", "param": null, "code": null}})
        .to_string()
}

pub(super) fn records(question: &Question, said: &Said<'_>) -> Records {
    let writer =
        Writer { model: &question.model, id: format!("chatcmpl-{}", question.answer_id()) };
    let mut deltas: Vec<Delta<'_>> = said.chunks.iter().map(delta).collect();
    if let Some(first) = deltas.first_mut() {
        first.role = Some("assistant");
    }
    let chunks = deltas.into_iter().map(|delta| writer.chunk(delta, None)).collect();
    let closing = match &said.last {
        Last::Garbage => vec![record("{\"choices\": [")],
        Last::Complaint(message) => {
            let error = json!({"message": message, "type": "server_error", "code": null});
            vec![record(&json!({ "error": error }).to_string())]
        }
        Last::Nothing => Vec::new(),
        Last::Finish(why) => {
            let end = writer.chunk(Delta::default(), Some(finish(why)));
            let usage = said.usage.map(|usage| writer.usage(usage));
            std::iter::once(end).chain(usage).chain([record("[DONE]")]).collect()
        }
    };
    Records { opening: Vec::new(), chunks, closing }
}

/// The same as one document.
pub(super) fn document(question: &Question, said: &Said<'_>, why: &Finish<'_>) -> String {
    let mut message = json!({"role": "assistant", "content": null});
    let (mut thinks, mut says, mut calls) = (String::new(), None, Vec::new());
    for chunk in &said.chunks {
        match chunk {
            Chunk::Thinks(text) => thinks.push_str(text),
            Chunk::Says(text) => says.get_or_insert_with(String::new).push_str(text),
            Chunk::Asks(call) => {
                let function = json!({"name": call.name, "arguments": call.arguments});
                calls.push(json!({"id": call.id, "type": "function", "function": function}));
            }
        }
    }
    message["content"] = says.into();
    if !thinks.is_empty() {
        message["reasoning"] = thinks.into();
    }
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    let choice = json!({"index": 0, "message": message, "finish_reason": finish(why)});
    json!({
        "id": format!("chatcmpl-{}", question.answer_id()),
        "object": "chat.completion",
        "created": 0,
        "model": question.model,
        "choices": [choice],
        "usage": counted(said.usage.unwrap_or(ScriptUsage { input: 0, output: 0 })),
    })
    .to_string()
}

fn finish<'a>(why: &Finish<'a>) -> &'a str {
    match why {
        Finish::Said => "stop",
        Finish::Asked => "tool_calls",
        Finish::Named(name) => name,
    }
}

fn counted(usage: ScriptUsage) -> Value {
    json!({
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input.saturating_add(usage.output),
    })
}

/// What all records of an answer have in common.
struct Writer<'a> {
    model: &'a str,
    id: String,
}

/// One record as it is written. Types, not JSON values: a load writes hundreds of thousands.
#[derive(Serialize)]
struct WireChunk<'a> {
    id: &'a str,
    object: &'static str,
    created: u64,
    model: &'a str,
    choices: Vec<Choice<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Value>,
}

#[derive(Serialize)]
struct Choice<'a> {
    index: u64,
    delta: Delta<'a>,
    finish_reason: Option<&'a str>,
}

#[derive(Default, Serialize)]
struct Delta<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_calls: Option<[WireCall<'a>; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
}

#[derive(Serialize)]
struct WireCall<'a> {
    index: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    #[serde(rename = "type")]
    kind: &'static str,
    function: Value,
}

impl Writer<'_> {
    fn chunk(&self, delta: Delta<'_>, finish_reason: Option<&str>) -> String {
        self.record(vec![Choice { index: 0, delta, finish_reason }], None)
    }

    fn usage(&self, usage: ScriptUsage) -> String {
        self.record(Vec::new(), Some(counted(usage)))
    }

    fn record(&self, choices: Vec<Choice<'_>>, usage: Option<Value>) -> String {
        let chunk = WireChunk {
            id: &self.id,
            object: "chat.completion.chunk",
            // A script has no clock.
            created: 0,
            model: self.model,
            choices,
            usage,
        };
        record(
            &serde_json::to_string(&chunk)
                .expect("strings, numbers and JSON values always serialise"),
        )
    }
}

fn delta<'a>(chunk: &'a Chunk<'_>) -> Delta<'a> {
    match chunk {
        Chunk::Thinks(text) => Delta { reasoning: Some(text), ..Delta::default() },
        Chunk::Says(text) => Delta { content: Some(text), ..Delta::default() },
        Chunk::Asks(call) => {
            let call = WireCall {
                index: call.index,
                id: call.id.as_deref(),
                kind: "function",
                function: json!({"name": call.name, "arguments": call.arguments}),
            };
            Delta { tool_calls: Some([call]), ..Delta::default() }
        }
    }
}

fn record(data: &str) -> String {
    format!("data: {data}\n\n")
}
