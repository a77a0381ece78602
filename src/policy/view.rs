//! Permissions as others are told of them. Data only: nothing is decided by what stands here.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Level, Permissions, Roots};

/// Where an agent may do what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyView {
    pub cwd: String,
    /// What it may use; null is everything that is not blocked.
    pub allowed_paths: Option<Vec<String>>,
    pub blocked_paths: Vec<String>,
    /// Where it may write; null where that follows from its level.
    pub write_paths: Option<Vec<String>>,
    /// Whether it cannot leave its directory.
    pub frozen: bool,
}

impl PolicyView {
    pub fn of(permissions: &Permissions) -> Self {
        let rights = permissions.rights();
        Self {
            cwd: rights.cwd.display().to_string(),
            allowed_paths: listed(&rights.roots),
            blocked_paths: rights.blocked.iter().map(shown).collect(),
            write_paths: permissions.listed_writes().map(|paths| paths.iter().map(shown).collect()),
            frozen: rights.level == Level::Sandboxed,
        }
    }
}

fn listed(roots: &Roots) -> Option<Vec<String>> {
    roots.paths().map(|paths| paths.iter().map(shown).collect())
}

fn shown(path: impl AsRef<Path>) -> String {
    path.as_ref().display().to_string()
}
