//! What a conversation is made of, as it is kept, sent to models and shown to clients.
//! Pure: when a message may be appended is for `agent::turn` to say; what must be true of all of them
//! together is checked here.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use crate::id::AgentId;

/// One message. The system prompt is none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "role", rename_all = "lowercase")]
pub enum Message {
    User {
        content: Arc<str>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        meta: Option<UserMeta>,
    },
    Assistant {
        content: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ToolCall>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        meta: Option<AssistantMeta>,
    },
    Tool {
        content: String,
        tool_call_id: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        meta: Option<ToolMeta>,
    },
}

impl Message {
    pub fn content(&self) -> &str {
        match self {
            Self::User { content, .. } => content,
            Self::Assistant { content, .. } | Self::Tool { content, .. } => content,
        }
    }
}

/// Who sent a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UserMeta {
    pub source: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_agent_id: Option<AgentId>,
}

/// Why a text breaks off: it is what had arrived when its turn ended early.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AssistantMeta {
    pub partial: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolMeta {
    /// The call failed, was not run, or was cut off; `content` says which.
    pub error: bool,
}

/// A model's wish to run a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCall {
    pub id: String,
    pub name: String,
    /// The JSON object, or the raw text where it was none.
    pub arguments: Value,
}

/// A tool as a model sees it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ToolDefinition {
    pub name: Cow<'static, str>,
    pub description: Cow<'static, str>,
    pub parameters: Parameters,
}

/// A JSON schema of the arguments of a tool. It goes to a model with every request, so it is written
/// down once; cloning shares it.
#[derive(Clone, Debug)]
pub struct Parameters {
    schema: Arc<Value>,
    text: Arc<RawValue>,
}

impl Parameters {
    pub fn text(&self) -> &str {
        self.text.get()
    }
}

impl From<Value> for Parameters {
    fn from(schema: Value) -> Self {
        let text = to_raw_value(&schema).expect("a JSON value can be written as JSON");
        Self { schema: Arc::new(schema), text: text.into() }
    }
}

impl Deref for Parameters {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.schema
    }
}

impl Serialize for Parameters {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.text.serialize(serializer)
    }
}

impl PartialEq for Parameters {
    fn eq(&self, other: &Self) -> bool {
        self.schema == other.schema
    }
}

/// Tokens as the provider reported them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    pub input_tokens: u64,
    pub output_tokens: u64,
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, more: Self) {
        self.input_tokens = self.input_tokens.saturating_add(more.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(more.output_tokens);
    }
}

/// Checks that every tool call has exactly one result, directly after its message and in order,
/// that no result is without a call, and that no assistant message is empty.
pub fn check_pairs<'a>(messages: impl Iterator<Item = &'a Message>) -> Result<(), String> {
    let mut open: VecDeque<&ToolCall> = VecDeque::new();
    for (index, message) in messages.enumerate() {
        match message {
            Message::Tool { tool_call_id, .. } => match open.pop_front() {
                Some(call) if call.id == *tool_call_id => {}
                Some(call) => {
                    return Err(format!("message {index} answers {tool_call_id}, not {}", call.id));
                }
                None => return Err(format!("message {index} answers no call")),
            },
            Message::User { .. } | Message::Assistant { .. } if !open.is_empty() => {
                return Err(format!("message {index} comes before the result of {}", open[0].id));
            }
            Message::User { .. } => {}
            Message::Assistant { content, tool_calls, .. } => {
                if content.is_empty() && tool_calls.is_empty() {
                    return Err(format!("message {index} is empty"));
                }
                open.extend(tool_calls);
            }
        }
    }
    open.front().map_or(Ok(()), |call| Err(format!("{} has no result", call.id)))
}
