//! `sleep`: waits, in virtual time where the server is simulated.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{Tool, ToolOutput, arguments, definition};
use crate::limits::SLEEP_TOOL_SECONDS_MAX;
use crate::message::ToolDefinition;
use crate::world::BoxFuture;

pub(super) struct Sleep;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// How long, at most 3600.
    seconds: f64,
}

impl Tool for Sleep {
    fn definition(&self) -> ToolDefinition {
        definition::<Arguments>("sleep", "Waits for some seconds.")
    }

    fn run(&self, given: &Value) -> BoxFuture<'static, ToolOutput> {
        let seconds =
            arguments::<Arguments>("sleep", given).and_then(|arguments| check(arguments.seconds));
        Box::pin(async move {
            let seconds = seconds?;
            tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
            Ok(format!("Slept {seconds} seconds."))
        })
    }
}

fn check(seconds: f64) -> Result<f64, String> {
    if (0.0..=SLEEP_TOOL_SECONDS_MAX).contains(&seconds) {
        Ok(seconds)
    } else {
        Err(format!("`seconds` must be from 0 to {SLEEP_TOOL_SECONDS_MAX}, not {seconds}."))
    }
}
