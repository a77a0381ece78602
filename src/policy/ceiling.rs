//! The ceiling: what an agent may become, given who creates it.
//! It never looks at a call; and it never creates anything.

use std::path::{Path, PathBuf};

use super::{Level, Preset, Reason, Refusal, Rights, Roots};
use crate::limits::DEPTH_MAX;

/// Whether agents without any restriction may be made over RPC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Yolo {
    Allowed,
    Refused,
}

/// An agent that no agent creates.
pub fn root(preset: &Preset, yolo: Yolo) -> Result<(), Refusal> {
    match (preset.level, yolo) {
        (Level::Yolo, Yolo::Refused) => Err(Refusal {
            reason: Reason::Yolo,
            message: "`yolo` agents are refused over RPC unless the server runs with --allow-yolo"
                .to_owned(),
        }),
        (Level::Yolo, Yolo::Allowed) | (Level::Trusted | Level::Sandboxed, _) => Ok(()),
    }
}

/// A child of an agent with the rights `above`; `depth` is the child's own, and an agent without a
/// parent has 0. Children are strictly below their parent, so a `yolo` one is refused here in any case.
pub fn child(above: &Rights, preset: &Preset, depth: u32) -> Result<(), Refusal> {
    level(above, preset)?;
    depth_is_allowed(depth)
}

/// A child that comes back. What its parent lacks by now it lacks too, instead of being refused.
pub fn again(above: &Rights, depth: u32) -> Result<(), Refusal> {
    has_children(above)?;
    depth_is_allowed(depth)
}

/// Whether a child of an agent with the rights `above` may have this preset.
pub fn level(above: &Rights, preset: &Preset) -> Result<(), Refusal> {
    has_children(above)?;
    let level = above.level;
    if preset.level >= level {
        return Err(refusal(format!(
            "a {level} agent creates only agents below its level, and `{}` is {}",
            preset.name, preset.level
        )));
    }
    Ok(())
}

/// Whether a child may work in a directory, which it was given in these words. No other path of the
/// host is told.
pub fn cwd(above: &Rights, cwd: &Path, given: Option<&str>) -> Result<(), Refusal> {
    let given = given.unwrap_or("the working directory");
    if above.is_blocked(cwd) {
        return Err(refusal(format!("{given} is closed to agents of this server")));
    }
    if !above.roots.covers(cwd) {
        return Err(refusal(format!("{given} lies outside of what the agent's parent may use")));
    }
    Ok(())
}

/// Whether a child may be given these paths to write, of `most`.
pub fn writes(above: &Rights, most: &Roots, given: &[PathBuf]) -> Result<(), Refusal> {
    if given.iter().all(|path| !above.is_blocked(path) && most.covers(path)) {
        return Ok(());
    }
    let message = "`allowed_write_paths` go beyond where the agent's parent may write";
    Err(refusal(message.to_owned()))
}

fn has_children(above: &Rights) -> Result<(), Refusal> {
    if above.may_create {
        return Ok(());
    }
    Err(refusal(format!("a {} agent creates no agents", above.level)))
}

fn depth_is_allowed(depth: u32) -> Result<(), Refusal> {
    if depth <= DEPTH_MAX {
        return Ok(());
    }
    let message = format!("agents are nested at most {DEPTH_MAX} deep");
    Err(Refusal { reason: Reason::Depth, message })
}

fn refusal(message: String) -> Refusal {
    Refusal { reason: Reason::Ceiling, message }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::config::PermissionsConfig;
    use crate::policy::{Grant, Permissions, Presets};

    fn refused(reason: Reason, message: &str) -> Result<(), Refusal> {
        Err(Refusal { reason, message: message.to_owned() })
    }

    fn rights(preset: &Arc<Preset>) -> Arc<Rights> {
        let grant = Grant::new(Arc::clone(preset), "/project".into(), vec![]);
        Arc::clone(Permissions::new(grant, None, &[]).rights())
    }

    #[test]
    fn a_child_is_strictly_below_its_parent() {
        let presets = Presets::new(&PermissionsConfig::default()).unwrap();
        let names = ["yolo", "trusted", "sandboxed", "worker"];
        let mut table = Vec::new();
        for parent in names {
            let above = rights(presets.get(parent).unwrap());
            let may = |name: &&str| child(&above, presets.get(name).unwrap(), 1).is_ok();
            table.push((parent, names.into_iter().filter(may).collect::<Vec<_>>()));
        }
        assert_eq!(
            table,
            [
                ("yolo", vec!["trusted", "sandboxed", "worker"]),
                ("trusted", vec!["sandboxed", "worker"]),
                ("sandboxed", vec![]),
                ("worker", vec![]),
            ]
        );
    }

    #[test]
    fn a_refusal_says_which_rule_it_met() {
        let presets = Presets::new(&PermissionsConfig::default()).unwrap();
        let [yolo, trusted, worker] =
            ["yolo", "trusted", "worker"].map(|name| presets.get(name).unwrap());
        assert_eq!(
            child(&rights(trusted), trusted, 1),
            refused(
                Reason::Ceiling,
                "a trusted agent creates only agents below its level, and `trusted` is trusted"
            )
        );
        assert_eq!(
            child(&rights(worker), worker, 1),
            refused(Reason::Ceiling, "a sandboxed agent creates no agents")
        );
        assert_eq!(child(&rights(yolo), worker, DEPTH_MAX), Ok(()));
        assert_eq!(
            child(&rights(yolo), worker, DEPTH_MAX + 1),
            refused(Reason::Depth, "agents are nested at most 5 deep")
        );
        assert_eq!(root(yolo, Yolo::Allowed), Ok(()));
        assert_eq!(root(trusted, Yolo::Refused), Ok(()));
        assert_eq!(
            root(yolo, Yolo::Refused),
            refused(
                Reason::Yolo,
                "`yolo` agents are refused over RPC unless the server runs with --allow-yolo"
            )
        );
    }
}
