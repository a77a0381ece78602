//! One chunk of a streamed chat completion, as the wire has it. Every field may be missing or null:
//! the servers differ in what they leave out.
//! Pure data: `answer` gives it its meaning.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};
use serde_json::Value;

#[derive(Debug, Deserialize)]
pub(super) struct Chunk {
    pub(super) choices: Option<Vec<Choice>>,
    pub(super) usage: Option<ChunkUsage>,
    pub(super) error: Option<Value>,
    pub(super) object: Option<Object>,
}

/// What a chunk calls itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Object {
    /// vLLM puts the fields of an error object right into the chunk.
    Error,
    Other,
}

impl<'de> Deserialize<'de> for Object {
    /// It stands in every chunk, and none of them needs a text of its own for it.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Name;
        impl Visitor<'_> for Name {
            type Value = Object;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<Object, E> {
                Ok(if name == "error" { Object::Error } else { Object::Other })
            }
        }
        deserializer.deserialize_str(Name)
    }
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
