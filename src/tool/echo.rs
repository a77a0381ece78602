//! `echo`: gives a message back. For trying out that tool calls work.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{Tool, ToolOutput, arguments, definition};
use crate::message::ToolDefinition;
use crate::world::BoxFuture;

pub(super) struct Echo;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The text to give back.
    message: String,
}

impl Tool for Echo {
    fn definition(&self) -> ToolDefinition {
        definition::<Arguments>("echo", "Gives the message back unchanged.")
    }

    fn run(&self, given: &Value) -> BoxFuture<'static, ToolOutput> {
        let output = arguments::<Arguments>("echo", given).map(|arguments| arguments.message);
        Box::pin(async move { output })
    }
}
