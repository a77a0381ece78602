//! `echo`: gives a message back. For trying out that tool calls work.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::schema::{definition, typed};
use super::workplace::Workplace;
use super::{Tool, ToolOutput};
use crate::message::ToolDefinition;
use crate::policy::Permit;
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

    fn run(
        &self,
        arguments: Value,
        _: &Arc<Workplace>,
        _: Permit,
    ) -> BoxFuture<'static, ToolOutput> {
        let output = typed::<Arguments>("echo", arguments).map(|arguments| arguments.message);
        Box::pin(async move { output })
    }
}
