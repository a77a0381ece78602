//! The ceiling: what an agent may become, given who creates it.
//! It never looks at a call; and it never creates anything.

use super::{Level, Permissions, Preset, Reason, Refusal};
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

/// A child of `parent`; `depth` is the child's own, and an agent without a parent has 0.
/// Children are strictly below their parent, so a `yolo` one is refused here in any case.
pub fn child(parent: &Permissions, preset: &Preset, depth: u32) -> Result<(), Refusal> {
    let level = parent.level();
    if !parent.preset.may_create {
        return Err(Refusal {
            reason: Reason::Ceiling,
            message: format!("a {level} agent creates no agents"),
        });
    }
    if preset.level >= level {
        return Err(Refusal {
            reason: Reason::Ceiling,
            message: format!(
                "a {level} agent creates only agents below its level, and `{}` is {}",
                preset.name, preset.level
            ),
        });
    }
    if depth > DEPTH_MAX {
        return Err(Refusal {
            reason: Reason::Depth,
            message: format!("agents are nested at most {DEPTH_MAX} deep"),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::config::PermissionsConfig;
    use crate::policy::Presets;

    fn refused(reason: Reason, message: &str) -> Result<(), Refusal> {
        Err(Refusal { reason, message: message.to_owned() })
    }

    #[test]
    fn a_child_is_strictly_below_its_parent() {
        let presets = Presets::new(&PermissionsConfig::default()).unwrap();
        let names = ["yolo", "trusted", "sandboxed", "worker"];
        let mut table = Vec::new();
        for parent in names {
            let permissions = Permissions::new(Arc::clone(presets.get(parent).unwrap()), vec![]);
            let may = |name: &&str| child(&permissions, presets.get(name).unwrap(), 1).is_ok();
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
        let permissions = |preset| Permissions::new(Arc::clone(preset), vec![]);
        assert_eq!(
            child(&permissions(trusted), trusted, 1),
            refused(
                Reason::Ceiling,
                "a trusted agent creates only agents below its level, and `trusted` is trusted"
            )
        );
        assert_eq!(
            child(&permissions(worker), worker, 1),
            refused(Reason::Ceiling, "a sandboxed agent creates no agents")
        );
        assert_eq!(child(&permissions(yolo), worker, DEPTH_MAX), Ok(()));
        assert_eq!(
            child(&permissions(yolo), worker, DEPTH_MAX + 1),
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
