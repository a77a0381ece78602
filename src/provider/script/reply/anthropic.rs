//! Answers as messages: the records of a stream, and the body of an error. Pure.
//!
//! Here an answer has blocks: all that is thought is one, all that is said is one, and each tool call
//! is one. The record that opens a block is written with its first chunk and the one that ends it with
//! its last, so that a chunk is one write as in the other wire.

use http::StatusCode;
use serde_json::{Value, json};

use super::{Chunk, Finish, Last, Records, Said};
use crate::provider::script::{Question, ScriptUsage};

pub(super) fn complaint(status: StatusCode, message: &str) -> String {
    error(kind(status), message).to_string()
}

pub(super) fn records(question: &Question, said: &Said<'_>) -> Records {
    // This wire always counts.
    let usage = said.usage.unwrap_or(ScriptUsage { input: 0, output: 0 });
    let message = json!({
        "id": format!("msg_{}", question.answer_id()),
        "type": "message",
        "role": "assistant",
        "model": question.model,
        "content": [],
        "stop_reason": null,
        "stop_sequence": null,
        "usage": {"input_tokens": usage.input, "output_tokens": 0},
    });
    let start = record(&json!({"type": "message_start", "message": message}));
    Records {
        opening: vec![start, record(&json!({"type": "ping"}))],
        chunks: chunks(&said.chunks),
        closing: closing(&said.last, usage),
    }
}

/// The same as one document.
pub(super) fn document(question: &Question, said: &Said<'_>, why: &Finish<'_>) -> String {
    let usage = said.usage.unwrap_or(ScriptUsage { input: 0, output: 0 });
    let blocks = said.chunks.chunk_by(Chunk::shares_block);
    let content: Vec<Value> = blocks.map(whole_block).collect();
    json!({
        "id": format!("msg_{}", question.answer_id()),
        "type": "message",
        "role": "assistant",
        "model": question.model,
        "content": content,
        "stop_reason": stop_reason(why),
        "stop_sequence": null,
        "usage": {"input_tokens": usage.input, "output_tokens": usage.output},
    })
    .to_string()
}

/// The block that chunks are pieces of.
fn whole_block(chunks: &[Chunk<'_>]) -> Value {
    let mut block = chunks[0].block();
    for chunk in chunks {
        match chunk {
            Chunk::Thinks(text) => {
                let thinking = block["thinking"].as_str().unwrap_or_default();
                block["thinking"] = format!("{thinking}{text}").into();
                block["signature"] = SIGNATURE.into();
            }
            Chunk::Says(text) => {
                let said = block["text"].as_str().unwrap_or_default();
                block["text"] = format!("{said}{text}").into();
            }
            // This wire has no place for arguments that are no JSON.
            Chunk::Asks(call) => {
                block["input"] = serde_json::from_str(&call.arguments).unwrap_or(json!({}));
            }
        }
    }
    block
}

fn chunks(chunks: &[Chunk<'_>]) -> Vec<String> {
    let blocks = chunks.chunk_by(Chunk::shares_block);
    let written = blocks.enumerate().flat_map(|(index, block)| {
        block.iter().enumerate().map(move |(place, chunk)| {
            let mut text = String::new();
            if place == 0 {
                text += &of_block("start", index, "content_block", &chunk.block());
            }
            text += &of_block("delta", index, "delta", &chunk.delta());
            if place + 1 == block.len() {
                if let Chunk::Thinks(_) = chunk {
                    let signature = json!({"type": "signature_delta", "signature": SIGNATURE});
                    text += &of_block("delta", index, "delta", &signature);
                }
                text += &record(&json!({"type": "content_block_stop", "index": index}));
            }
            text
        })
    });
    written.collect()
}

/// By what a model knows its own thoughts again.
const SIGNATURE: &str = "c2NyaXB0ZWQ=";

impl Chunk<'_> {
    fn shares_block(&self, next: &Self) -> bool {
        match (self, next) {
            (Self::Thinks(_), Self::Thinks(_)) | (Self::Says(_), Self::Says(_)) => true,
            (Self::Thinks(_) | Self::Says(_) | Self::Asks(_), _) => false,
        }
    }

    /// The block that it opens, still empty.
    fn block(&self) -> Value {
        match self {
            Self::Thinks(_) => json!({"type": "thinking", "thinking": "", "signature": ""}),
            Self::Says(_) => json!({"type": "text", "text": ""}),
            Self::Asks(call) => {
                let mut block = json!({"type": "tool_use", "name": call.name, "input": {}});
                if let Some(id) = &call.id {
                    block["id"] = json!(id);
                }
                block
            }
        }
    }

    fn delta(&self) -> Value {
        match self {
            Self::Thinks(text) => json!({"type": "thinking_delta", "thinking": text}),
            Self::Says(text) => json!({"type": "text_delta", "text": text}),
            Self::Asks(call) => {
                json!({"type": "input_json_delta", "partial_json": call.arguments})
            }
        }
    }
}

fn closing(last: &Last<'_>, usage: ScriptUsage) -> Vec<String> {
    match last {
        Last::Garbage => vec!["event: content_block_delta\ndata: {\"type\": \n\n".to_owned()],
        // The provider's own trouble, as in the other wire: a scenario means the same in both.
        Last::Complaint(message) => vec![record(&error("api_error", message))],
        Last::Nothing => Vec::new(),
        Last::Finish(why) => {
            let delta = json!({"stop_reason": stop_reason(why), "stop_sequence": null});
            // The count is of the whole answer.
            let usage = json!({"output_tokens": usage.output});
            let end = json!({"type": "message_delta", "delta": delta, "usage": usage});
            vec![record(&end), record(&json!({"type": "message_stop"}))]
        }
    }
}

fn stop_reason<'a>(why: &Finish<'a>) -> &'a str {
    match why {
        Finish::Said | Finish::Named("stop") => "end_turn",
        Finish::Asked | Finish::Named("tool_calls") => "tool_use",
        Finish::Named("length") => "max_tokens",
        Finish::Named("content_filter") => "refusal",
        Finish::Named(name) => name,
    }
}

fn error(kind: &str, message: &str) -> Value {
    json!({"type": "error", "error": {"type": kind, "message": message}})
}

/// What this wire calls the error that comes with a status.
fn kind(status: StatusCode) -> &'static str {
    match status.as_u16() {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        504 => "timeout_error",
        400..500 => "invalid_request_error",
        _ => "api_error",
    }
}

fn of_block(what: &str, index: usize, key: &str, value: &Value) -> String {
    record(&json!({"type": format!("content_block_{what}"), "index": index, key: value}))
}

/// A record is called what its data say.
fn record(data: &Value) -> String {
    let event = data["type"].as_str().unwrap_or_default();
    format!("event: {event}\ndata: {data}\n\n")
}
