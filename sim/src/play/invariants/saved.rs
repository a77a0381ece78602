//! Of the invariant `durable`: a session that was saved has what its agent is made from, as it is on
//! record. Compared when its caller is told.

use serde_json::Value;

use super::promises::Promises;
use super::{Check, Invariant, Observation, Seen};
use crate::disk::{Disk, Item, View};
use crate::machine::HOME;
use crate::play::director::Made;
use crate::play::kept::KeptGrant;
use crate::play::observed::Answer;
use crate::scenario::Scenario;

/// Members of a session, and what they are called on record.
const MEMBERS: [(&str, &str); 6] = [
    ("permission_preset", "preset"),
    ("model", "model"),
    ("system_prompt", "system_prompt"),
    ("write_paths", "write_paths"),
    ("disabled_tools", "disabled_tools"),
    ("working_directory", "cwd"),
];
/// Calls that change what is on record, or what a name means.
const CHANGES: [&str; 10] = [
    "set_permissions",
    "set_cwd",
    "set_model",
    "set_system_prompt",
    "create_agent",
    "destroy_agent",
    "load_session",
    "clone_session",
    "rename_session",
    "delete_session",
];

#[derive(Debug)]
pub struct Saved {
    promises: Promises,
}

impl Saved {
    pub fn new(scenario: &Scenario) -> Self {
        Self { promises: Promises::of(scenario) }
    }
}

impl Check for Saved {
    fn invariant(&self) -> Invariant {
        Invariant::Durable
    }

    fn on(&mut self, observation: &Observation, seen: &Seen<'_>) -> Vec<String> {
        let Observation::Answered(Answer { method, result: Ok(result), .. }) = observation else {
            return Vec::new();
        };
        if method != "save_session" || self.promises != Promises::All || !is_alone(result, seen) {
            return Vec::new();
        }
        let text = |member: &str| result[member].as_str().unwrap_or_default();
        let (id, name) = (text("agent_id"), text("session_name"));
        // What is not there, or damaged, is told elsewhere.
        let file = session(seen.disk, name);
        let grants = KeptGrant::read(seen.disk).unwrap_or_default();
        let grant = grants.into_iter().find(|grant| grant.id == id);
        file.zip(grant).map_or_else(Vec::new, |(file, grant)| differ(name, &file, &grant.recipe))
    }
}

/// The session of this name as it lies there, whatever stands in it.
pub fn session(disk: &Disk, name: &str) -> Option<Value> {
    let path = format!("{HOME}/sessions/{name}.json");
    let item = disk.tree(View::Now).remove(path.as_ref() as &std::path::Path)?;
    let Item::File { content, .. } = item else { return None };
    serde_json::from_slice(&content).ok()
}

/// Whether nobody changed anything since the call was made that is answered with this.
fn is_alone(result: &Value, seen: &Seen<'_>) -> bool {
    let is_it = |made: &&Made| made.answer.as_ref().is_some_and(|it| it.as_ref() == Ok(result));
    let Some(saved) = seen.calls.iter().rfind(is_it) else { return false };
    let since = |made: &&Made| made.ended.is_none_or(|ended| ended >= saved.at);
    let mut others = seen.calls.iter().filter(since);
    !others.any(|made| CHANGES.contains(&made.call.method.as_str())) && seen.raw.is_empty()
}

fn differ(name: &str, file: &Value, recipe: &Value) -> Vec<String> {
    let differ = MEMBERS.iter().filter(|(saved, kept)| file[*saved] != recipe[*kept]);
    let told = |what: &str| format!("the session {name} has another {what} than its agent");
    let mut found: Vec<String> = differ.map(|(saved, _)| told(saved)).collect();
    // Where it is not said, it is the working directory.
    let root = |own: &Value, cwd: &Value| if own.is_null() { cwd.clone() } else { own.clone() };
    if root(&file["root_directory"], &file["working_directory"])
        != root(&recipe["root"], &recipe["cwd"])
    {
        found.push(told("root_directory"));
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_session_has_all_that_its_agent_is_made_from() {
        let recipe = json!({"preset": "sandboxed", "cwd": "/project/in", "root": "/project"});
        let file = |root: Value| {
            let cwd = "/project/in";
            json!({"permission_preset": "sandboxed", "working_directory": cwd, "root_directory": root})
        };
        assert_eq!(differ("s", &file(json!("/project")), &recipe), [""; 0]);
        let other = ["the session s has another root_directory than its agent"];
        assert_eq!(differ("s", &file(Value::Null), &recipe), other);
        let moved = json!({"preset": "sandboxed", "cwd": "/project"});
        let other = ["the session s has another working_directory than its agent"];
        assert_eq!(differ("s", &file(json!("/project")), &moved), other);
    }
}
