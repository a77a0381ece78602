//! The invariant `ceiling`: no file is used, and no program started, that the agent which asked for it,
//! or any agent above it, may not use. Decided at the disk and where programs start, from the records of
//! the agents and the file of the scenario, by rules of its own: nothing of the server's policy is asked.
//!
//! Who asked is not told. It is a call that is on record as started, of those that some agent's model
//! asked for last, and one and the same for all that a job does.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use nexus3::world::Program;
use serde_json::Value;

use super::programs::{self, Standing};
use super::{Check, End, Invariant, Observation, Seen};
use crate::disk::{Disk, Item, OperationKind, View};
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
/// The tools that use files, and which of them only read.
const READING: [&str; 6] =
    ["read_file", "tail", "file_info", "list_directory", "glob", "search_text"];
const WRITING: [&str; 10] = [
    "write_file",
    "append_file",
    "edit_file",
    "edit_file_batch",
    "edit_lines",
    "regex_replace",
    "patch",
    "copy_file",
    "rename",
    "mkdir",
];
const PROGRAMS: [&str; 4] = ["exec", "run_python", "shell_UNSAFE", "git"];

#[derive(Debug)]
pub struct Ceiling {
    permissions: Value,
    /// What the records said, and before that: a call that began earlier may be seen later.
    grants: Vec<KeptGrant>,
    before: Vec<KeptGrant>,
    /// When they were read, by what was done to the disk until then.
    read_at: Option<u64>,
    /// The parents that are gone as they last were, by the numbers of their children.
    gone: BTreeMap<i64, KeptGrant>,
    /// The job that is being done, and who may have asked for it.
    job: Option<(u64, Vec<Suspect>)>,
}

/// A call that was on record as started.
#[derive(Clone, Debug, PartialEq)]
struct Suspect {
    grant: KeptGrant,
    tool: String,
    records: Records,
}

/// In which records it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Records {
    Now,
    Before,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
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
        Self {
            permissions,
            grants: Vec::new(),
            before: Vec::new(),
            read_at: None,
            gone: BTreeMap::new(),
            job: None,
        }
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
            self.remember_parents();
        }
    }

    /// Keeps what stood above those who have no parent any more.
    fn remember_parents(&mut self) {
        let is_there = |number: &i64| self.grants.iter().any(|grant| grant.number == *number);
        self.gone.retain(|child, _| is_there(child));
        for child in self.grants.iter().filter(|grant| grant.parent.is_none()) {
            let was = self.before.iter().find(|grant| grant.number == child.number);
            let parent = was.and_then(|was| {
                self.before.iter().find(|other| Some(&other.id) == was.parent.as_ref())
            });
            if let Some(parent) = parent {
                self.gone.insert(child.number, parent.clone());
            }
        }
    }

    fn of(&self, records: Records) -> &[KeptGrant] {
        match records {
            Records::Now => &self.grants,
            Records::Before => &self.before,
        }
    }

    /// All whose calls were on record as started.
    fn suspects(&self) -> Vec<Suspect> {
        let calls = |records: Records| {
            self.of(records).iter().flat_map(move |grant| {
                let suspect = move |tool: &String| Suspect {
                    grant: grant.clone(),
                    tool: tool.clone(),
                    records,
                };
                grant.calls.iter().map(suspect)
            })
        };
        calls(Records::Now).chain(calls(Records::Before)).collect()
    }

    /// Whether one of those who may have asked for it may. Without a job, and where nobody is at work,
    /// the server itself reads.
    fn is_open(&mut self, kind: OperationKind, path: &Path, what: Use, job: Option<u64>) -> bool {
        let mut suspects = match &self.job {
            Some((number, suspects)) if Some(*number) == job => suspects.clone(),
            Some(_) | None => self.suspects(),
        };
        if suspects.is_empty() && job.is_none() {
            return what == Use::Reads;
        }
        if kind == OperationKind::ReadLink && self.may_be_asked_about(path) {
            return true;
        }
        suspects.retain(|suspect| self.may(suspect, kind, path, what));
        let is_open = !suspects.is_empty();
        self.job = job.map(|job| (job, suspects));
        is_open
    }

    /// Whether any agent may read it: who asks what a call would be told has the links of its path
    /// followed.
    fn may_be_asked_about(&self, path: &Path) -> bool {
        let tools = || READING.iter().chain(&WRITING).chain(&PROGRAMS);
        self.grants.iter().any(|grant| {
            tools().any(|tool| self.has_all(&self.grants, grant, tool, path, Use::Reads))
        })
    }

    fn may(&self, suspect: &Suspect, kind: OperationKind, path: &Path, what: Use) -> bool {
        let Suspect { grant, tool, records } = suspect;
        let tool = tool.as_str();
        let uses = match what {
            Use::Reads => READING.contains(&tool) || WRITING.contains(&tool),
            Use::Writes => WRITING.contains(&tool),
        };
        // What lies beside something closed is listed to grant it to a program, which is told nothing.
        let is_grant = PROGRAMS.contains(&tool) && kind == OperationKind::List;
        let has = |what| self.has_all(self.of(*records), grant, tool, path, what);
        // What somebody confirmed may be written wherever it may be read.
        let confirmed = what == Use::Writes && grant.allowed.iter().any(|it| it.covers(path));
        is_grant || uses && (has(what) || confirmed && has(Use::Reads))
    }

    /// Whether an agent and all above it have it.
    fn has_all(
        &self,
        grants: &[KeptGrant],
        grant: &KeptGrant,
        tool: &str,
        path: &Path,
        what: Use,
    ) -> bool {
        let parent = self.above(grants, grant);
        let above = parent.map(|parent| self.rank(grants, parent));
        // What a parent would have to ask for, a person can have given to its child.
        parent.is_none_or(|parent| self.has_all(grants, parent, tool, path, Use::Reads))
            && self.has(&grant.recipe, above, (tool, path), what)
    }

    fn above<'a>(&'a self, grants: &'a [KeptGrant], grant: &KeptGrant) -> Option<&'a KeptGrant> {
        let parent = grants.iter().find(|other| Some(&other.id) == grant.parent.as_ref());
        parent.or_else(|| self.gone.get(&grant.number))
    }

    fn rank(&self, grants: &[KeptGrant], grant: &KeptGrant) -> Rank {
        let own = rank(&self.chain(text(&grant.recipe["preset"])).0);
        let parent = self.above(grants, grant);
        parent.map_or(own, |parent| own.min(below(self.rank(grants, parent))))
    }

    /// Whether an agent or one above it is held to some paths by its preset.
    fn is_narrow(&self, grants: &[KeptGrant], grant: &KeptGrant) -> bool {
        let (_, layers) = self.chain(text(&grant.recipe["preset"]));
        let lists = |layer: &&Value| {
            !layer["allowed_paths"].is_null()
                || !layer["blocked_paths"].is_null()
                || !layer["tools"].is_null()
        };
        layers.iter().any(lists)
            || self.above(grants, grant).is_some_and(|parent| self.is_narrow(grants, parent))
    }

    /// What an agent has by itself, below a parent of the rank `above`.
    fn has(
        &self,
        recipe: &Value,
        above: Option<Rank>,
        (tool, path): (&str, &Path),
        what: Use,
    ) -> bool {
        let (base, layers) = self.chain(text(&recipe["preset"]));
        let rank = above.map_or(rank(&base), |above| rank(&base).min(below(above)));
        let lies_in = |paths: &Value| list(paths).any(|root| path.starts_with(root));
        let closed = SYSTEM.iter().any(|root| path.starts_with(root))
            || lies_in(&self.permissions["blocked_paths"]);
        if rank < Rank::Yolo && closed || layers.iter().any(|it| lies_in(&it["blocked_paths"])) {
            return false;
        }
        let disabled = recipe["disabled_tools"].as_array().into_iter().flatten();
        if disabled.map(text).any(|disabled| disabled == tool) {
            return false;
        }
        let of_tool = |layer: &&&Value| !layer["tools"][tool]["allowed_paths"].is_null();
        let listed = if layers.iter().any(|layer| of_tool(&layer)) {
            let mut own = layers.iter().filter(of_tool);
            own.all(|layer| lies_in(&layer["tools"][tool]["allowed_paths"]))
        } else {
            let all = |layer: &&Value| {
                layer["allowed_paths"].is_null() || lies_in(&layer["allowed_paths"])
            };
            layers.iter().all(all)
        };
        if !listed {
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

    /// What is wrong with a program, unless one of those who may have asked for it may have it.
    fn wrong(&self, program: &Program) -> Vec<String> {
        let suspects = self.suspects().into_iter();
        let mut suspects = suspects.filter(|it| PROGRAMS.contains(&it.tool.as_str())).peekable();
        if suspects.peek().is_none() {
            return vec![format!("{} was started for nobody", program.program.display())];
        }
        let judged: Vec<_> = suspects
            .map(|Suspect { grant, tool, records }| {
                let grants = self.of(records);
                let has = |path: &Path, what| self.has_all(grants, &grant, &tool, path, what);
                let is_confirmed = grant.allowed.iter().any(|it| it.starts(program));
                programs::wrong(
                    program,
                    &Standing {
                        rank: self.rank(grants, &grant),
                        is_narrow: self.is_narrow(grants, &grant),
                        reads: &|path| has(path, Use::Reads),
                        writes: &|path| {
                            has(path, Use::Writes) || grant.allowed.iter().any(|it| it.grants(path))
                        },
                        is_confirmed,
                    },
                )
            })
            .collect();
        if judged.iter().any(Vec::is_empty) { Vec::new() } else { judged.concat() }
    }
}

/// Whether the server reads it for a prompt: one of the files, or what a link of that name leads to.
fn is_prompt(disk: &Disk, path: &Path) -> bool {
    let is_named = |path: &Path| PROMPTS.contains(&name(path).as_str());
    is_named(path)
        || disk.tree(View::Now).iter().any(|(link, item)| match item {
            Item::Link { target } => {
                let from = link.parent().unwrap_or(Path::new("/"));
                is_named(link) && reached(from, target) == path
            }
            Item::Dir { .. } | Item::File { .. } => false,
        })
}

fn is_project_config(path: &Path) -> bool {
    [".nexus3/config.json", ".nexus3/mcp.json"].iter().any(|name| path.ends_with(name))
}

impl Check for Ceiling {
    fn invariant(&self) -> Invariant {
        Invariant::Ceiling
    }

    fn on(&mut self, observation: &Observation, seen: &Seen<'_>) -> Vec<String> {
        let (kind, path, job) = match observation {
            Observation::Touched { kind, path, job } => (kind, path, job),
            Observation::Started(program) => {
                self.look(seen);
                return self.wrong(program);
            }
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
        // It makes the way to its own directory when it starts, and takes back what it cannot make
        // durable, which no job of a tool does.
        let is_made = *kind == OperationKind::MakeDir;
        let is_taken_back = *kind == OperationKind::RemoveDir && job.is_none();
        let is_way = (is_made || is_taken_back) && Path::new(HOME).starts_with(path);
        // And looks for the project's configuration, which no job of a tool does.
        let is_start = what == Use::Reads && job.is_none() && is_project_config(path);
        if is_way || is_start || path == Path::new(SCRIPT) {
            return Vec::new();
        }
        self.look(seen);
        let is_open = self.is_open(*kind, path, what, *job)
            || what == Use::Reads && is_prompt(seen.disk, path);
        if is_open { Vec::new() } else { vec![told(*kind, path)] }
    }

    fn at_end(&mut self, seen: &Seen<'_>, end: &End<'_>) -> Vec<String> {
        let agents = end.survey.map(|survey| survey.agents.as_slice()).unwrap_or_default();
        let mut found = Vec::new();
        self.look(seen);
        for child in agents {
            // What stood above one that has no parent any more is on record.
            let grant = self.grants.iter().find(|grant| grant.id == child.agent_id.as_str());
            let above = grant.and_then(|grant| grant.recipe["ceiling"]["level"].as_str());
            if above.is_some_and(|above| rank(child.permission_level.name()) > below(rank(above))) {
                found.push(format!("{}: it is not below its ceiling", child.agent_id));
            }
            let parent =
                agents.iter().find(|it| Some(&it.agent_id) == child.parent_agent_id.as_ref());
            if parent.is_some_and(|parent| parent.permission_level <= child.permission_level) {
                found.push(format!("{}: it is not below its parent", child.agent_id));
            }
        }
        found
    }
}

/// Where a link in a directory leads, as far as no other link is on the way.
fn reached(from: &Path, target: &Path) -> PathBuf {
    let mut reached = PathBuf::new();
    for step in from.join(target).components() {
        match step {
            Component::ParentDir => drop(reached.pop()),
            Component::CurDir => (),
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => reached.push(step),
        }
    }
    reached
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
#[path = "ceiling_tests.rs"]
mod tests;
