//! `sleep`: waits, in virtual time where the server is simulated.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::schema::{definition, typed};
use super::workplace::Workplace;
use super::{Tool, ToolOutput};
use crate::limits::SLEEP_TOOL_SECONDS_MAX;
use crate::message::ToolDefinition;
use crate::policy::Permit;
use crate::world::BoxFuture;

pub(super) struct Sleep;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// How long.
    #[schemars(range(min = 0, max = SLEEP_TOOL_SECONDS_MAX))]
    seconds: f64,
}

impl Tool for Sleep {
    fn definition(&self) -> ToolDefinition {
        definition::<Arguments>("sleep", "Waits for some seconds.")
    }

    fn run(
        &self,
        arguments: Value,
        _: &Arc<Workplace>,
        _: Permit,
    ) -> BoxFuture<'static, ToolOutput> {
        let seconds = typed::<Arguments>("sleep", arguments).map(|arguments| arguments.seconds);
        Box::pin(async move {
            let seconds = seconds?;
            tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
            Ok(format!("Slept {seconds} seconds."))
        })
    }
}
