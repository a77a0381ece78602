//! How a call was decided on, by the words of the contract. Data only.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Allow,
    Confirm,
    Deny,
}

/// The rules in the order in which they are asked; the last two allow.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// The tool is there, and enabled for the agent.
    Exists,
    /// The arguments fit.
    Schema,
    /// The agent's level allows it.
    Level,
    /// The other agent is one that it may turn to.
    Target,
    /// Every path lies where it may.
    Path,
    Limits,
    /// Somebody confirms it.
    Confirmation,
    /// Somebody allowed it for good.
    Allowance,
    Allowed,
}

/// What became of a call, which rule decided, and why in words for the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    pub verdict: Verdict,
    pub rule: Rule,
    pub reason: String,
}

impl Decision {
    pub fn deny(rule: Rule, reason: String) -> Self {
        Self { verdict: Verdict::Deny, rule, reason }
    }

    pub fn confirm(reason: String) -> Self {
        Self { verdict: Verdict::Confirm, rule: Rule::Confirmation, reason }
    }

    pub fn allow(rule: Rule, reason: String) -> Self {
        Self { verdict: Verdict::Allow, rule, reason }
    }
}
