//! The invariant `ceiling`: no file is used that the agents at work, or any agent above them, may not
//! use. Decided at the disk, from the records of the agents and the file of the scenario, by rules of its
//! own: nothing of the server's policy is asked.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Check, End, Invariant, Observation, Seen};
use crate::disk::OperationKind;
use crate::machine::HOME;
use crate::play::kept::KeptGrant;
use crate::play::server::SCRIPT;
use crate::scenario::Scenario;

/// What the server reads in working directories for itself.
const PROMPTS: [&str; 3] = ["NEXUS.md", "AGENTS.md", "CLAUDE.md"];
const SYSTEM: [&str; 4] = ["/proc", "/sys", "/dev", HOME];
/// The methods that change what an agent may do.
const CHANGES: [&str; 2] = ["set_permissions", "set_cwd"];
/// How tools call what is not yet in its place.
const TEMP: &str = ".nexus3-";

#[derive(Debug)]
pub struct Ceiling {
    permissions: Value,
    /// What the records said, and before that: a call that began earlier may be seen later.
    grants: Vec<KeptGrant>,
    before: Vec<KeptGrant>,
    /// When they were read, by what was done to the disk until then.
    read_at: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Sandboxed,
    Trusted,
    Yolo,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Reads,
    Writes,
}

impl Ceiling {
    pub fn new(scenario: &Scenario) -> Self {
        let permissions = scenario.config_json("")["permissions"].take();
        Self { permissions, grants: Vec::new(), before: Vec::new(), read_at: None }
    }

    fn look(&mut self, seen: &Seen<'_>) {
        let now = seen.disk.operations();
        if self.read_at == Some(now) {
            return;
        }
        self.read_at = Some(now);
        let grants = KeptGrant::read(seen.disk).unwrap_or_default();
        if grants != self.grants {
            self.before = std::mem::replace(&mut self.grants, grants);
        }
    }

    /// Whether one of those who may have done it may. Where nobody is at work, what is read is read by
    /// the server: a prompt, which a link may lead to.
    fn is_open(&self, path: &Path, what: Use) -> bool {
        let mut all = self.grants.iter().chain(&self.before);
        if what == Use::Reads && !all.any(|grant| grant.calls) {
            return true;
        }
        [&self.grants, &self.before].into_iter().any(|grants| {
            let at_work = grants.iter().any(|grant| grant.calls);
            let mut suspects = grants.iter().filter(|grant| grant.calls || !at_work);
            suspects.any(|grant| self.may(grants, grant, path, what))
        })
    }

    fn may(&self, grants: &[KeptGrant], grant: &KeptGrant, path: &Path, what: Use) -> bool {
        let parent = grants.iter().find(|other| Some(&other.id) == grant.parent.as_ref());
        let above = parent.map(|parent| self.rank(grants, parent));
        // What a parent would have to ask for, a person can have given to its child.
        parent.is_none_or(|parent| self.may(grants, parent, path, Use::Reads))
            && self.has(&grant.recipe, above, path, what)
    }

    fn rank(&self, grants: &[KeptGrant], grant: &KeptGrant) -> Rank {
        let parent = grants.iter().find(|other| Some(&other.id) == grant.parent.as_ref());
        let own = rank(&self.chain(text(&grant.recipe["preset"])).0);
        parent.map_or(own, |parent| own.min(below(self.rank(grants, parent))))
    }

    /// What an agent has by itself, below a parent of the rank `above`.
    fn has(&self, recipe: &Value, above: Option<Rank>, path: &Path, what: Use) -> bool {
        let (base, layers) = self.chain(text(&recipe["preset"]));
        let rank = above.map_or(rank(&base), |above| rank(&base).min(below(above)));
        let lies_in = |paths: &Value| list(paths).any(|root| path.starts_with(root));
        let closed = SYSTEM.iter().any(|root| path.starts_with(root))
            || lies_in(&self.permissions["blocked_paths"]);
        if rank < Rank::Yolo && closed || layers.iter().any(|it| lies_in(&it["blocked_paths"])) {
            return false;
        }
        let by_tool = |layer: &&Value| {
            let tools = layer["tools"].as_object().into_iter().flatten();
            tools.map(|(_, tool)| &tool["allowed_paths"]).any(lies_in)
        };
        let listed =
            |layer: &&Value| layer["allowed_paths"].is_null() || lies_in(&layer["allowed_paths"]);
        if !layers.iter().all(listed) && !layers.iter().any(by_tool) {
            return false;
        }
        let cwd = text(&recipe["cwd"]);
        let root = recipe["root"].as_str().unwrap_or(cwd);
        match (rank, what) {
            (Rank::Yolo, _) | (Rank::Trusted, Use::Reads) => true,
            (Rank::Trusted, Use::Writes) => path.starts_with(cwd),
            (Rank::Sandboxed, Use::Reads) => path.starts_with(root),
            (Rank::Sandboxed, Use::Writes) => {
                let beside = name(path).starts_with(TEMP).then(|| path.parent()).flatten();
                let is_listed = |listed: &PathBuf| {
                    path.starts_with(listed) || beside.is_some() && listed.parent() == beside
                };
                let mut listed = list(&recipe["write_paths"]);
                base == "sandboxed" && path.starts_with(root) && listed.any(|it| is_listed(&it))
            }
        }
    }

    /// The built-in preset that one comes from, and what the file puts on top.
    fn chain(&self, preset: &str) -> (String, Vec<&Value>) {
        let (mut name, mut layers) = (preset.to_owned(), Vec::new());
        while let Some(layer) = self.permissions["presets"].get(&name) {
            layers.push(layer);
            text(&layer["extends"]).clone_into(&mut name);
        }
        (name, layers)
    }
}

impl Check for Ceiling {
    fn invariant(&self) -> Invariant {
        Invariant::Ceiling
    }

    fn on(&mut self, observation: &Observation, seen: &Seen<'_>) -> Vec<String> {
        let (kind, path) = match observation {
            Observation::Touched { kind, path } => (kind, path),
            Observation::Answered(answer) if CHANGES.contains(&answer.method.as_str()) => {
                // What was told holds: nobody uses what it had before.
                self.look(seen);
                self.before.clone_from(&self.grants);
                return Vec::new();
            }
            _ => return Vec::new(),
        };
        let what = match kind {
            // To look where a path leads, and to hold a directory, is no use of it.
            OperationKind::OpenDir | OperationKind::Stat | OperationKind::SyncDir => {
                return Vec::new();
            }
            kind if kind.changes() => Use::Writes,
            _ => Use::Reads,
        };
        if path.starts_with(HOME) {
            // The server writes its token under another name and renames it.
            let reads = matches!(kind, OperationKind::Open | OperationKind::Read);
            return if reads { vec![told(*kind, path)] } else { Vec::new() };
        }
        // It makes the way to its own directory when it starts.
        let is_way = *kind == OperationKind::MakeDir && Path::new(HOME).starts_with(path);
        if is_way || PROMPTS.contains(&name(path).as_str()) || path == Path::new(SCRIPT) {
            return Vec::new();
        }
        self.look(seen);
        if self.is_open(path, what) { Vec::new() } else { vec![told(*kind, path)] }
    }

    fn at_end(&mut self, _: &Seen<'_>, end: &End<'_>) -> Vec<String> {
        let agents = end.survey.map(|survey| survey.agents.as_slice()).unwrap_or_default();
        let mut found = Vec::new();
        for child in agents {
            let parent =
                agents.iter().find(|it| Some(&it.agent_id) == child.parent_agent_id.as_ref());
            if parent.is_some_and(|parent| parent.permission_level <= child.permission_level) {
                found.push(format!("{}: it is not below its parent", child.agent_id));
            }
        }
        found
    }
}

fn told(kind: OperationKind, path: &Path) -> String {
    format!("{} {}: no agent at work may", kind.name(), path.display())
}

fn rank(base: &str) -> Rank {
    match base {
        "yolo" => Rank::Yolo,
        "trusted" => Rank::Trusted,
        _ => Rank::Sandboxed,
    }
}

fn below(above: Rank) -> Rank {
    match above {
        Rank::Yolo => Rank::Trusted,
        Rank::Trusted | Rank::Sandboxed => Rank::Sandboxed,
    }
}

fn list(paths: &Value) -> impl Iterator<Item = PathBuf> {
    paths.as_array().into_iter().flatten().map(|path| PathBuf::from(text(path)))
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn grant(id: &str, parent: Option<&str>, recipe: Value) -> KeptGrant {
        KeptGrant { id: id.to_owned(), parent: parent.map(str::to_owned), recipe, calls: true }
    }

    fn check(permissions: Value, grants: Vec<KeptGrant>) -> Ceiling {
        Ceiling { permissions, grants, before: Vec::new(), read_at: None }
    }

    #[test]
    fn what_a_preset_forbids_is_found_wherever_it_is_used() {
        let uses = |preset: &str, path: &str| {
            let recipe = json!({"preset": preset, "cwd": "/p/in", "write_paths": ["/p/in/out"]});
            let check = check(json!({"blocked_paths": ["/b"]}), vec![grant("a", None, recipe)]);
            [Use::Reads, Use::Writes].map(|what| check.is_open(Path::new(path), what))
        };
        assert_eq!(uses("yolo", "/proc/1"), [true, true]);
        assert_eq!(uses("trusted", "/proc/1"), [false, false]);
        assert_eq!(uses("trusted", "/b/x"), [false, false]);
        assert_eq!(uses("trusted", "/etc/x"), [true, false]);
        assert_eq!(uses("trusted", "/p/in/x"), [true, true]);
        assert_eq!(uses("sandboxed", "/p/x"), [false, false]);
        assert_eq!(uses("sandboxed", "/p/in/x"), [true, false]);
        assert_eq!(uses("sandboxed", "/p/in/out/x"), [true, true]);
        assert_eq!(uses("sandboxed", "/p/in/.nexus3-00"), [true, true], "beside what it writes");
        assert_eq!(uses("worker", "/p/in/out/x"), [true, false]);
    }

    #[test]
    fn a_child_is_held_by_what_its_parent_may() {
        let presets = json!({"presets": {"narrow": {"extends": "yolo", "allowed_paths": ["/p"]}}});
        let boss = grant("boss", None, json!({"preset": "narrow", "cwd": "/p"}));
        let child = grant("child", Some("boss"), json!({"preset": "yolo", "cwd": "/p/in"}));
        let check = check(presets, vec![KeptGrant { calls: false, ..boss }, child]);
        let uses =
            |path| [Use::Reads, Use::Writes].map(|what| check.is_open(Path::new(path), what));
        assert_eq!(uses("/etc/x"), [false, false], "its parent may not");
        assert_eq!(uses("/p/x"), [true, false], "it is trusted at most, and works elsewhere");
        assert_eq!(uses("/p/in/x"), [true, true]);
    }
}
