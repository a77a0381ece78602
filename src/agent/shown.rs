//! What lists show of an agent that never changes, written out once instead of for every list.

use std::path::PathBuf;
use std::sync::Arc;

use super::Facts;
use crate::event::iso;
use crate::policy::WriteRule;

#[derive(Debug)]
pub struct Shown {
    /// ISO 8601, UTC.
    pub created_at: Arc<str>,
    pub preset: Arc<str>,
    pub cwd: Arc<str>,
    /// Where it may write; `None` where that follows from its level.
    pub write_paths: Option<Arc<[String]>>,
}

impl Shown {
    pub fn of(facts: &Facts) -> Self {
        let path = |path: &PathBuf| path.display().to_string();
        let permissions = &facts.permissions;
        Self {
            created_at: iso(facts.created_at),
            preset: permissions.preset.name.as_str().into(),
            cwd: path(&facts.cwd).into(),
            write_paths: match permissions.preset.writes {
                WriteRule::ByLevel => None,
                WriteRule::ListedInCwd | WriteRule::Never => {
                    Some(permissions.write_paths.iter().map(path).collect())
                }
            },
        }
    }
}
