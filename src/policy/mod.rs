//! Who may do what: presets, the ceiling over children, the rules about paths and targets.
//! Pure: it never looks at a file. Links are resolved, and the rules enforced, where the seams are
//! used.

mod permissions; // one agent's
mod rights; // what they come to
pub mod ceiling; // what an agent may become
pub mod budget; // what agents may use together
mod preset;
mod allowances; // what somebody allowed for good
mod confirmation; // what somebody is asked, and what the answers mean
mod decision; // about one call
mod leave; // what a tool says to one
pub mod programs; // which may be started
mod roots; // places on a disk
mod rules; // about write paths and targets
mod view; // for those who ask

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use allowances::Allowances;
pub use confirmation::{Permit, Subject, exec_name};
pub use decision::{Decision, Rule, Verdict};
pub use leave::Leave;
pub use permissions::{Change, Grant, Permissions};
pub use preset::{Preset, Presets, SendRule, WriteRule};
pub use rights::{PathRule, Rights, Side};
pub use roots::Roots;
pub use rules::{may_send, normal, write_paths};
pub use view::PolicyView;

use crate::config::LineageError;

/// How far an agent is trusted; a later level may all that an earlier one may.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Sandboxed,
    Trusted,
    Yolo,
}

impl Level {
    pub fn name(self) -> &'static str {
        match self {
            Self::Sandboxed => "sandboxed",
            Self::Trusted => "trusted",
            Self::Yolo => "yolo",
        }
    }

    /// The highest level of a child; of a sandboxed agent there is none.
    #[must_use]
    pub fn below(self) -> Self {
        match self {
            Self::Yolo => Self::Trusted,
            Self::Trusted | Self::Sandboxed => Self::Sandboxed,
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why something is not permitted, by the words of the contract.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    Ceiling,
    Depth,
    Owner,
    Policy,
    Limit,
    WouldDeadlock,
    Yolo,
}

impl Reason {
    pub fn name(self) -> &'static str {
        match self {
            Self::Ceiling => "ceiling",
            Self::Depth => "depth",
            Self::Owner => "owner",
            Self::Policy => "policy",
            Self::Limit => "limit",
            Self::WouldDeadlock => "would_deadlock",
            Self::Yolo => "yolo",
        }
    }
}

/// A well-formed request that is not permitted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    pub reason: Reason,
    pub message: String,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    #[error("there is no preset `{name}`; there are {}", known.join(", "))]
    UnknownPreset { name: String, known: Vec<String> },
    /// A preset of the configuration does not lead to a built-in one.
    #[error("the preset `{name}` cannot be built")]
    Preset {
        name: String,
        #[source]
        source: LineageError,
    },
    #[error("the preset `{preset}` gives the tool `{tool}` a timeout that is no time")]
    Timeout { preset: String, tool: String },
    #[error(
        "the preset `{preset}` names the tool `{tool}`, which this version does not have; it has {known}"
    )]
    UnknownTool { preset: String, tool: String, known: String },
    /// The parameters make no sense together, whoever asks.
    #[error("`allowed_write_paths` is for sandboxed agents; `{preset}` is {level}")]
    WritePathsNeedless { preset: String, level: Level },
    #[error(transparent)]
    Refused {
        #[from]
        refusal: Refusal,
    },
}
