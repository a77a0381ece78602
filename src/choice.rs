//! The answers to a confirmation, by the words of the contract. Data only: which of them fit a call and
//! what they allow is for `policy`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a confirmation was decided, by the words of the contract.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// This call and no other.
    AllowOnce,
    /// This call, and every later change of what it changes.
    AllowFile,
    /// This call, and every later change in the directories of what it changes.
    AllowDir,
    /// This call, and the same program in the same directory.
    AllowExecCwd,
    /// This call, and every later one of the same tool of an MCP server.
    AllowTool,
    /// This call, and every later one of any tool of the same MCP server.
    AllowServer,
    Deny,
    /// Nobody answered in time. Never offered.
    TimeoutDeny,
}

impl Choice {
    pub const ALL: [Self; 8] = [
        Self::AllowOnce,
        Self::AllowFile,
        Self::AllowDir,
        Self::AllowExecCwd,
        Self::AllowTool,
        Self::AllowServer,
        Self::Deny,
        Self::TimeoutDeny,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::AllowOnce => "allow_once",
            Self::AllowFile => "allow_file",
            Self::AllowDir => "allow_dir",
            Self::AllowExecCwd => "allow_exec_cwd",
            Self::AllowTool => "allow_tool",
            Self::AllowServer => "allow_server",
            Self::Deny => "deny",
            Self::TimeoutDeny => "timeout_deny",
        }
    }

    /// Whether the call may run.
    pub fn allows(self) -> bool {
        match self {
            Self::AllowOnce
            | Self::AllowFile
            | Self::AllowDir
            | Self::AllowExecCwd
            | Self::AllowTool
            | Self::AllowServer => true,
            Self::Deny | Self::TimeoutDeny => false,
        }
    }
}

/// A word that is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the answers there are: {}", Choice::ALL.map(Choice::name).join(", "))]
pub struct ChoiceError;

impl std::str::FromStr for Choice {
    type Err = ChoiceError;

    fn from_str(text: &str) -> Result<Self, ChoiceError> {
        Self::ALL.into_iter().find(|choice| choice.name() == text).ok_or(ChoiceError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_named_as_it_is_written() {
        for choice in Choice::ALL {
            assert_eq!(serde_json::to_value(choice).unwrap(), choice.name());
            assert_eq!(choice.name().parse(), Ok(choice));
        }
    }
}
