//! What lists show of an agent that seldom changes, written out once instead of for every list.

use std::path::PathBuf;
use std::sync::Arc;

use super::Facts;
use crate::event::iso;
use crate::policy::Permissions;

#[derive(Debug, PartialEq, Eq)]
pub struct Shown {
    /// ISO 8601, UTC.
    pub created_at: Arc<str>,
    pub preset: Arc<str>,
    pub cwd: Arc<str>,
    /// Where it may write; `None` where that follows from its level.
    pub write_paths: Option<Arc<[String]>>,
}

impl Shown {
    pub fn of(facts: &Facts, permissions: &Permissions) -> Self {
        let path = |path: &PathBuf| path.display().to_string();
        let grant = permissions.grant();
        Self {
            created_at: iso(facts.created_at),
            preset: grant.preset.name.as_str().into(),
            cwd: path(&grant.cwd).into(),
            write_paths: permissions.listed_writes().map(|paths| paths.iter().map(path).collect()),
        }
    }
}
