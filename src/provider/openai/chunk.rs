//! One chunk of a streamed chat completion, as the wire has it. Every field may be missing or null:
//! the servers differ in what they leave out.
//! Pure data: `answer` gives it its meaning.

use serde::Deserialize;
use serde_json::Value;

#[derive(Debug, Deserialize)]
pub(super) struct Chunk {
    pub(super) choices: Option<Vec<Choice>>,
    pub(super) usage: Option<ChunkUsage>,
    pub(super) error: Option<Value>,
    /// `error` where vLLM puts the fields of an error object right into the chunk.
    pub(super) object: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Choice {
    pub(super) delta: Option<Delta>,
    pub(super) finish_reason: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Delta {
    pub(super) content: Option<String>,
    /// OpenAI's way to say no; it is all there is to read in such an answer.
    pub(super) refusal: Option<String>,
    /// OpenRouter, Ollama, newer vLLM.
    pub(super) reasoning: Option<String>,
    /// Older vLLM and several others.
    pub(super) reasoning_content: Option<String>,
    pub(super) tool_calls: Option<Vec<CallDelta>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct CallDelta {
    pub(super) index: Option<u64>,
    pub(super) id: Option<String>,
    pub(super) function: Option<FunctionDelta>,
}

#[derive(Debug, Deserialize)]
pub(super) struct FunctionDelta {
    pub(super) name: Option<String>,
    /// JSON text; some servers send the object itself.
    pub(super) arguments: Option<Value>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ChunkUsage {
    pub(super) prompt_tokens: Option<u64>,
    pub(super) completion_tokens: Option<u64>,
}

/// What a provider says is wrong, in a chunk or as the body of an error status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ErrorObject {
    pub(super) message: Option<String>,
    pub(super) kind: Option<String>,
    /// The HTTP status it would have had.
    pub(super) status: Option<u16>,
}

impl ErrorObject {
    /// Reads `{"error": {"message", "type", "code"}}`, `{"error": "text"}`, and the same fields
    /// without the wrapping.
    pub(super) fn of(value: &Value) -> Self {
        let object = value.get("error").filter(|error| !error.is_null());
        let object = object.unwrap_or(value);
        let text = |key: &str| object.get(key)?.as_str().map(str::to_owned);
        Self {
            message: object
                .as_str()
                .map(str::to_owned)
                .or_else(|| text("message"))
                .or_else(|| text("detail")),
            kind: text("type"),
            status: object.get("code").and_then(status_code),
        }
    }
}

fn status_code(code: &Value) -> Option<u16> {
    let number = match code {
        Value::Number(number) => number.as_u64()?.try_into().ok()?,
        Value::String(text) => text.parse().ok()?,
        _ => return None,
    };
    (400..600).contains(&number).then_some(number)
}
