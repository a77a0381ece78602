//! The numbers of JSON-RPC errors, and the error object that carries one.
//! Which error has which number is said where errors are told: `rpc::code` for calls, and
//! `agent::outcome` for turns, whose errors are kept and streamed too.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    Parse,
    InvalidRequest,
    MethodNotFound,
    InvalidParams,
    Internal,
    /// Something outside failed: a provider, a deadline, the disk.
    Outside,
    Overloaded,
    Conflict,
    Forbidden,
}

impl Code {
    pub fn number(self) -> i64 {
        match self {
            Self::Parse => -32700,
            Self::InvalidRequest => -32600,
            Self::MethodNotFound => -32601,
            Self::InvalidParams => -32602,
            Self::Internal => -32603,
            Self::Outside => -32000,
            Self::Overloaded => -32001,
            Self::Conflict => -32002,
            Self::Forbidden => -32003,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorObject {
    pub code: i64,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl ErrorObject {
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code: code.number(), message: message.into(), data: None }
    }

    #[must_use]
    pub fn with(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }
}
