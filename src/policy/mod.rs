//! Who may do what: presets, the ceiling over children, the rules about paths and targets.
//! Pure: it never looks at a file. Links are resolved, and the rules enforced, where the seams are
//! used.

pub mod ceiling;
mod leave;
mod preset;
mod rules;

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use leave::Leave;
pub use preset::{Preset, Presets, SendRule, WriteRule};
pub use rules::{blocked, may_send, normal, write_paths};

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
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What one agent may do now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Permissions {
    pub preset: Arc<Preset>,
    /// Those of the preset, and what was disabled since.
    pub disabled_tools: BTreeSet<String>,
    /// Where a sandboxed agent may write; empty is nowhere.
    pub write_paths: Vec<PathBuf>,
}

impl Permissions {
    pub fn new(preset: Arc<Preset>, write_paths: Vec<PathBuf>) -> Self {
        Self { disabled_tools: preset.disabled_tools.clone(), preset, write_paths }
    }

    /// Those of a child: what its parent lacks, it lacks too. Whether it may exist is for `ceiling`.
    pub fn under(parent: &Self, preset: Arc<Preset>, write_paths: Vec<PathBuf>) -> Self {
        let mut permissions = Self::new(preset, write_paths);
        let lacking = parent.disabled_tools.iter().cloned();
        permissions.disabled_tools.extend(lacking);
        permissions
    }

    pub fn level(&self) -> Level {
        self.preset.level
    }

    /// Below which paths an agent that works in `cwd` may write without asking anybody.
    pub fn write_roots(&self, cwd: &Path) -> Vec<PathBuf> {
        match self.preset.writes {
            WriteRule::ByLevel => vec![cwd.to_owned()],
            WriteRule::ListedInCwd | WriteRule::Never => self.write_paths.clone(),
        }
    }

    /// Whether there is anything it may write.
    pub fn may_write(&self) -> bool {
        match self.preset.writes {
            WriteRule::ByLevel => true,
            WriteRule::ListedInCwd | WriteRule::Never => !self.write_paths.is_empty(),
        }
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
