//! What one agent may do, all things considered: what it was given, less what its level forbids, less
//! what those above it may not do. A value; it never changes, another takes its place.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Allowances, Grant, Level, Roots, SendRule, WriteRule};

/// Closed to every agent below `yolo`: they show or change the machine and its programs.
const BLOCKED: [&str; 3] = ["/proc", "/sys", "/dev"];

/// All paths are absolute and without links.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rights {
    pub level: Level,
    /// Where relative paths begin.
    pub cwd: PathBuf,
    /// What it may use.
    pub roots: Roots,
    /// What some tools may use instead.
    pub tool_roots: BTreeMap<String, Roots>,
    /// What it may not use, wherever that lies.
    pub blocked: Vec<PathBuf>,
    /// Where it writes without asking anybody.
    pub writes: Roots,
    pub disabled_tools: BTreeSet<String>,
    /// Whether it may create children at all; `ceiling` says which.
    pub may_create: bool,
    pub send: SendRule,
    pub allowances: Allowances,
}

/// What a call wants with a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Read,
    Write,
}

/// What the path rule says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathRule {
    Free,
    /// Somebody allowed it for good.
    Allowance,
    /// Somebody has to confirm it.
    Confirm,
    Blocked,
    Outside,
    /// It may be read there, and nothing written.
    NotWritable,
}

impl Rights {
    /// What a grant comes to under `above`, the rights of its agent's parent. Nobody below `yolo` may
    /// use what is `closed`.
    pub(super) fn of(grant: &Grant, above: Option<&Self>, closed: &[PathBuf]) -> Self {
        let preset = &grant.preset;
        let level = above.map_or(preset.level, |above| preset.level.min(above.level.below()));
        let by_level = match level {
            Level::Yolo | Level::Trusted => Roots::anywhere(),
            Level::Sandboxed => Roots::below([grant.root.clone()]),
        };
        let under = |own: &Roots, tool: Option<&str>| {
            let met = by_level.meet(own);
            above.map_or(met.clone(), |above| met.meet(above.roots_of(tool.unwrap_or_default())))
        };
        let own_tools = preset.tool_roots.keys();
        let tools = own_tools.chain(above.iter().flat_map(|above| above.tool_roots.keys()));
        let of_tool = |tool: &String| {
            let own = preset.tool_roots.get(tool).unwrap_or(&preset.roots);
            (tool.clone(), under(own, Some(tool)))
        };
        let mut disabled_tools = grant.disabled_tools.clone();
        disabled_tools.extend(above.iter().flat_map(|above| &above.disabled_tools).cloned());
        Self {
            level,
            cwd: grant.cwd.clone(),
            roots: under(&preset.roots, None),
            tool_roots: tools.map(of_tool).collect(),
            blocked: blocked(level, grant, above, closed),
            writes: writes(level, grant, above),
            disabled_tools,
            may_create: preset.may_create && level > Level::Sandboxed,
            send: match (level, preset.send) {
                (Level::Sandboxed, SendRule::Anyone) => SendRule::ParentOnly,
                (_, send) => send,
            },
            allowances: match level {
                Level::Sandboxed => Allowances::default(),
                Level::Yolo | Level::Trusted => grant.allowances.clone(),
            },
        }
    }

    /// These as the ceiling of a child: what was allowed to one agent is allowed to no other.
    #[must_use]
    pub fn as_ceiling(&self) -> Self {
        Self { allowances: Allowances::default(), ..self.clone() }
    }

    /// What the path rule says to a path without links.
    pub fn path(&self, tool: &str, side: Side, resolved: &Path) -> PathRule {
        if self.is_blocked(resolved) {
            return PathRule::Blocked;
        }
        if !self.roots_of(tool).covers(resolved) {
            return PathRule::Outside;
        }
        match (side, self.level) {
            (Side::Read, _) => PathRule::Free,
            (Side::Write, _) if self.writes.covers(resolved) => PathRule::Free,
            (Side::Write, _) if self.allowances.cover_write(resolved) => PathRule::Allowance,
            (Side::Write, Level::Trusted) => PathRule::Confirm,
            (Side::Write, Level::Yolo | Level::Sandboxed) => PathRule::NotWritable,
        }
    }

    pub fn is_blocked(&self, resolved: &Path) -> bool {
        self.blocked.iter().any(|root| resolved.starts_with(root))
    }

    /// Whether something that is blocked lies in it: who moves the one moves the other.
    pub fn has_blocked_within(&self, resolved: &Path) -> bool {
        self.blocked.iter().any(|root| root.starts_with(resolved))
    }

    /// What a tool may use.
    pub fn roots_of(&self, tool: &str) -> &Roots {
        self.tool_roots.get(tool).unwrap_or(&self.roots)
    }

    /// Where it writes freely or with a confirmation. A person who gives an agent's child a path of these
    /// confirms that by doing so.
    pub fn writable(&self) -> &Roots {
        match self.level {
            Level::Yolo | Level::Trusted => &self.roots,
            Level::Sandboxed => &self.writes,
        }
    }

    /// Whether it may have to ask somebody before it writes.
    pub fn asks_to_write(&self) -> bool {
        match self.level {
            Level::Trusted => true,
            Level::Yolo | Level::Sandboxed => false,
        }
    }

    /// Whether there is anything it may write, be it with a confirmation.
    pub fn may_write(&self) -> bool {
        match self.level {
            Level::Yolo | Level::Trusted => true,
            Level::Sandboxed => !self.writes.is_nowhere(),
        }
    }

    /// Whether whoever has these instead of `before` may less: what it began with those is to end. Where
    /// it works is no matter: a program that was started keeps its place.
    pub fn take_from(&self, before: &Self) -> bool {
        let tools = self.tool_roots.keys().chain(before.tool_roots.keys()).map(String::as_str);
        let mut tools = tools.chain([""]);
        self.level < before.level
            || !tools.all(|tool| before.roots_of(tool).is_within(self.roots_of(tool)))
            || !self.blocked.iter().all(|path| before.is_blocked(path))
            || !self.disabled_tools.is_subset(&before.disabled_tools)
    }

    /// Whether `above` may all that these allow, if need be with a confirmation.
    pub fn is_within(&self, above: &Self) -> bool {
        let tools = self.tool_roots.keys().chain(above.tool_roots.keys());
        let within = |tool: &str| self.roots_of(tool).is_within(above.roots_of(tool));
        self.level < above.level
            && within("")
            && tools.map(String::as_str).all(within)
            && self.writes.is_within(above.writable())
            && above.blocked.iter().all(|path| self.is_blocked(path))
            && above.disabled_tools.is_subset(&self.disabled_tools)
    }
}

fn blocked(
    level: Level,
    grant: &Grant,
    above: Option<&Rights>,
    closed: &[PathBuf],
) -> Vec<PathBuf> {
    let system = BLOCKED.iter().map(PathBuf::from).chain(closed.iter().cloned());
    let system = system.filter(|_| level < Level::Yolo);
    let above = above.iter().flat_map(|above| above.blocked.iter().cloned());
    let all = grant.preset.blocked_paths.iter().cloned().chain(system).chain(above);
    Roots::below(all).paths().expect("these are listed").to_vec()
}

fn writes(level: Level, grant: &Grant, above: Option<&Rights>) -> Roots {
    let own = match (level, grant.preset.writes) {
        (Level::Yolo, _) => Roots::anywhere(),
        (Level::Trusted, _) => Roots::below([grant.cwd.clone()]),
        (Level::Sandboxed, WriteRule::ListedInCwd) => {
            Roots::below(grant.write_paths.clone()).meet(&Roots::below([grant.root.clone()]))
        }
        // The second is an agent that was given more than those above it may do by now.
        (Level::Sandboxed, WriteRule::Never | WriteRule::ByLevel) => Roots::nowhere(),
    };
    above.map_or(own.clone(), |above| own.meet(above.writable()))
}

#[cfg(test)]
#[path = "rights_tests.rs"]
mod tests;
