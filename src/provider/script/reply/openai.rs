//! Answers as chat completions: the records of a stream, and the body of an error. Pure.

use serde_json::{Value, json};

use super::{Chunk, Finish, Last, Records, Said};
use crate::json::Object;
use crate::provider::script::{Question, ScriptUsage};

pub(super) fn complaint(message: &str) -> String {
    json!({"error": {"message": message, "type": "script_error", "param": null, "code": null}})
        .to_string()
}

pub(super) fn records(question: &Question, said: &Said<'_>) -> Records {
    let writer =
        Writer { model: &question.model, id: format!("chatcmpl-{}", question.answer_id()) };
    let roles = std::iter::once(Some("assistant")).chain(std::iter::repeat(None));
    let chunks = said.chunks.iter().zip(roles);
    let chunks = chunks.map(|(chunk, role)| writer.chunk(Some(chunk), role, None)).collect();
    let closing = match &said.last {
        Last::Garbage => vec![record("{\"choices\": [")],
        Last::Complaint(message) => {
            let error = json!({"message": message, "type": "server_error", "code": null});
            vec![record(&json!({ "error": error }).to_string())]
        }
        Last::Nothing => Vec::new(),
        Last::Finish(why) => {
            let end = writer.chunk(None, None, Some(finish(why)));
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

/// What all records of an answer have in common. They are written member by member: a load writes
/// hundreds of thousands.
struct Writer<'a> {
    model: &'a str,
    id: String,
}

const RECORD_OPENS: &[u8] = b"data: ";
const RECORD_ENDS: &[u8] = b"\n\n";
const RECORD_BYTES_USUAL: usize = 256;

impl Writer<'_> {
    /// What the model says or asks for at once, or nothing; `role` stands in the first one.
    fn chunk(
        &self,
        said: Option<&Chunk<'_>>,
        role: Option<&str>,
        finish_reason: Option<&str>,
    ) -> String {
        self.record(|record| {
            record.list("choices", |choices| {
                choices.object(|choice| {
                    choice.value("index", &0);
                    choice.object("delta", |delta| {
                        if let Some(said) = said {
                            put(delta, said);
                        }
                        if let Some(role) = role {
                            delta.text("role", role);
                        }
                    });
                    choice.value("finish_reason", &finish_reason);
                });
            });
        })
    }

    fn usage(&self, usage: ScriptUsage) -> String {
        self.record(|record| {
            record.list("choices", |_| {});
            record.value("usage", &counted(usage));
        })
    }

    fn record(&self, rest: impl FnOnce(&mut Object<'_>)) -> String {
        let mut text = Vec::with_capacity(RECORD_BYTES_USUAL);
        text.extend_from_slice(RECORD_OPENS);
        Object::append(&mut text, |record| {
            record.text("id", &self.id);
            record.word("object", "chat.completion.chunk");
            // A script has no clock.
            record.value("created", &0);
            record.text("model", self.model);
            rest(record);
        });
        text.extend_from_slice(RECORD_ENDS);
        String::from_utf8(text).expect("JSON is text")
    }
}

fn put(delta: &mut Object<'_>, said: &Chunk<'_>) {
    match said {
        Chunk::Thinks(text) => delta.text("reasoning", text),
        Chunk::Says(text) => delta.text("content", text),
        Chunk::Asks(asked) => delta.list("tool_calls", |calls| {
            calls.object(|call| {
                call.value("index", &asked.index);
                if let Some(id) = &asked.id {
                    call.text("id", id);
                }
                call.word("type", "function");
                call.object("function", |function| {
                    function.text("name", asked.name);
                    function.text("arguments", &asked.arguments);
                });
            });
        }),
    }
}

fn record(data: &str) -> String {
    format!("data: {data}\n\n")
}
