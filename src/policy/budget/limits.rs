//! Limits as somebody asks for them: the type is the wire's, and reading it is what checks them.

use std::time::Duration;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::de::{Deserializer, Error};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::Instant;

use super::Bounds;
use crate::limits::{LIMIT_AMOUNT_MAX, LIMIT_SECONDS_MAX};

/// What an agent and all below it may use together. A child's come out of what its parent has left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "an object with max_agents, max_turns, max_tokens or deadline_s"
)]
pub struct Limits {
    /// Agents that are there at the same time; the agent itself counts.
    #[serde(default, deserialize_with = "amount", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = LIMIT_AMOUNT_MAX))]
    pub max_agents: Option<u64>,
    #[serde(default, deserialize_with = "amount", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = LIMIT_AMOUNT_MAX))]
    pub max_turns: Option<u64>,
    /// Input and output, as the provider reports them, else as they are counted.
    #[serde(default, deserialize_with = "amount", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = LIMIT_AMOUNT_MAX))]
    pub max_tokens: Option<u64>,
    /// Seconds from the agent's creation on, restarts of the server included.
    #[serde(default, deserialize_with = "seconds", skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = LIMIT_SECONDS_MAX), extend("exclusiveMinimum" = 0))]
    pub deadline_s: Option<f64>,
}

impl Limits {
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// As they are kept, for an agent that is made now.
    pub(super) fn bounds(&self, now: Timestamp) -> Bounds {
        let deadline = self.lasts().and_then(|lasts| now.checked_add(lasts).ok());
        let Self { max_agents, max_turns, max_tokens, deadline_s: _ } = *self;
        Bounds { max_agents, max_turns, max_tokens, deadline }
    }

    pub(super) fn ends(&self, instant: Instant) -> Option<Instant> {
        self.lasts().map(|lasts| instant + lasts)
    }

    fn lasts(&self) -> Option<Duration> {
        self.deadline_s.map(Duration::from_secs_f64)
    }
}

fn amount<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let given = Option::<Value>::deserialize(deserializer)?;
    let Some(given) = given else { return Ok(None) };
    let amount = given.as_u64().filter(|amount| (1..=LIMIT_AMOUNT_MAX).contains(amount));
    let problem =
        || D::Error::custom(format!("it must be a whole number from 1 to {LIMIT_AMOUNT_MAX}"));
    amount.ok_or_else(problem).map(Some)
}

fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    let given = Option::<Value>::deserialize(deserializer)?;
    let Some(given) = given else { return Ok(None) };
    let seconds = given.as_f64().filter(|seconds| *seconds > 0.0 && *seconds <= LIMIT_SECONDS_MAX);
    let problem =
        || D::Error::custom(format!("it must be seconds from above 0 to {LIMIT_SECONDS_MAX}"));
    seconds.ok_or_else(problem).map(Some)
}
