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
