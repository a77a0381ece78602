//! Rules about one path or one target. Paths are compared by their components only: links are
//! resolved by whoever opens them, from a handle of the root, before these rules are asked again.

use std::path::{Component, Path, PathBuf};

use super::{PolicyError, Preset, Reason, Refusal, SendRule, WriteRule};
use crate::id::AgentId;

/// The `allowed_write_paths` of a new agent as absolute paths below `cwd`, which is absolute.
/// Purely lexical: a link inside `cwd` that leads out is met by the enforcement at the seams.
pub fn write_paths(
    preset: &Preset,
    cwd: &Path,
    paths: &[PathBuf],
) -> Result<Vec<PathBuf>, PolicyError> {
    match preset.writes {
        WriteRule::ByLevel => {
            return Err(PolicyError::WritePathsNeedless {
                preset: preset.name.clone(),
                level: preset.level,
            });
        }
        WriteRule::Never => {
            let message = format!("`{}` agents never write", preset.name);
            return Err(policy(message).into());
        }
        WriteRule::ListedInCwd => (),
    }
    let root = normal(cwd, Path::new(""));
    let inside = |path: &PathBuf| {
        let resolved = normal(cwd, path);
        // The message names the path as it was given: a model learns no other path of the host.
        let message = || format!("{} lies outside the working directory", path.display());
        let inside = resolved.starts_with(&root);
        inside.then_some(resolved).ok_or_else(|| policy(message()))
    };
    Ok(paths.iter().map(inside).collect::<Result<_, _>>()?)
}

/// Whether `from`, whose parent is `parent`, may send to `to`.
pub fn may_send(
    rule: SendRule,
    from: &AgentId,
    to: &AgentId,
    parent: Option<&AgentId>,
) -> Result<(), Refusal> {
    match rule {
        SendRule::Anyone if from == to => Err(policy("an agent cannot send to itself".to_owned())),
        SendRule::Anyone => Ok(()),
        SendRule::ParentOnly if parent == Some(to) => Ok(()),
        SendRule::ParentOnly => Err(policy(format!(
            "a sandboxed agent sends only to its parent, and `{to}` is not the parent of `{from}`"
        ))),
        SendRule::Nobody => Err(policy(format!("`{from}` is a worker and sends to nobody"))),
    }
}

/// The path without `.` and `..`, relative to `base` unless it is absolute. Lexical: after a link,
/// `..` means something else to the machine, so only resolved paths are safe to open.
pub fn normal(base: &Path, path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in base.join(path).components() {
        match component {
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => {
                normal.push(component);
            }
            Component::CurDir => (),
            // At the root there is nothing above: `pop` leaves it.
            Component::ParentDir => drop(normal.pop()),
        }
    }
    normal
}

fn policy(message: String) -> Refusal {
    Refusal { reason: Reason::Policy, message }
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
