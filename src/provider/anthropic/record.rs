//! One record of a streamed message, as the wire has it. Every field may be missing or null: other
//! servers speak this wire too.
//! Pure data: `answer` gives it its meaning.

use serde::Deserialize;
use serde_json::Value;

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Event {
    MessageStart {
        message: Option<Message>,
    },
    ContentBlockStart {
        index: u64,
        content_block: Block,
    },
    ContentBlockDelta {
        index: u64,
        delta: Delta,
    },
    ContentBlockStop {
        index: u64,
    },
    MessageDelta {
        delta: Option<MessageDelta>,
        usage: Option<Usage>,
    },
    MessageStop,
    Error,
    /// `ping`, and what a later version adds.
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize)]
pub(super) struct Message {
    pub(super) usage: Option<Usage>,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Block {
    Text {
        text: Option<String>,
    },
    Thinking {
        thinking: Option<String>,
    },
    ToolUse {
        id: Option<String>,
        name: Option<String>,
        /// Empty as a rule: the arguments follow in deltas.
        input: Option<Value>,
    },
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Delta {
    #[serde(rename = "text_delta")]
    Text { text: String },
    #[serde(rename = "thinking_delta")]
    Thinking { thinking: String },
    #[serde(rename = "input_json_delta")]
    Input { partial_json: String },
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize)]
pub(super) struct MessageDelta {
    pub(super) stop_reason: Option<String>,
}

/// Token counts. Those of the input are told once and split by what was found in the cache.
#[derive(Debug, Deserialize)]
pub(super) struct Usage {
    #[serde(rename = "input_tokens")]
    pub(super) input: Option<u64>,
    #[serde(rename = "cache_creation_input_tokens")]
    pub(super) input_cached: Option<u64>,
    #[serde(rename = "cache_read_input_tokens")]
    pub(super) input_from_cache: Option<u64>,
    #[serde(rename = "output_tokens")]
    pub(super) output: Option<u64>,
}
