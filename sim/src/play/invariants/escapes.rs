//! Of the invariant `ceiling`: a session of a child comes back below its parent or not at all, unless
//! somebody says what it is to be instead. Seen by the files of agents that are gone, and by the records
//! of those that were made from them.

use std::collections::BTreeMap;

use serde_json::Value;

use super::promises::Promises;
use super::saved::session;
use super::{Check, Invariant, Observation, Seen};
use crate::disk::View;
use crate::machine::HOME;
use crate::play::director::Made;
use crate::play::kept::KeptGrant;
use crate::play::observed::Answer;
use crate::scenario::Scenario;

/// Calls after which files are what they stay until the next of them.
const WRITES: [&str; 5] =
    ["save_session", "clone_session", "rename_session", "delete_session", "destroy_agent"];

#[derive(Debug)]
pub struct Escapes {
    promises: Promises,
    /// The parents in session files, by the names of the sessions.
    parents: BTreeMap<String, String>,
}

impl Escapes {
    pub fn new(scenario: &Scenario) -> Self {
        Self { promises: Promises::of(scenario), parents: BTreeMap::new() }
    }

    fn look(&mut self, seen: &Seen<'_>) {
        let tree = seen.disk.tree(View::Now);
        let names = tree.keys().filter_map(|path| {
            let name = path.strip_prefix(HOME).ok()?.strip_prefix("sessions").ok()?.to_str()?;
            name.strip_suffix(".json")
        });
        let parents = names.filter_map(|name| {
            let session = session(seen.disk, name)?;
            // The children of temporary agents are left by a restart, and nobody says so.
            let parent = session["parent_agent_id"].as_str().filter(|id| !id.starts_with('.'))?;
            Some((name.to_owned(), parent.to_owned()))
        });
        self.parents = parents.collect();
    }

    fn escaped(&self, id: &str, name: &str, grants: &[KeptGrant]) -> Option<String> {
        let parent = self.parents.get(name)?;
        let grant = grants.iter().find(|grant| grant.id == id)?;
        grant.parent.is_none().then(|| {
            format!("{id} is below nobody, and the session {name} is that of a child of {parent}")
        })
    }
}

impl Check for Escapes {
    fn invariant(&self) -> Invariant {
        Invariant::Ceiling
    }

    fn on(&mut self, observation: &Observation, seen: &Seen<'_>) -> Vec<String> {
        let Observation::Answered(Answer { method, result: Ok(result), .. }) = observation else {
            return Vec::new();
        };
        if WRITES.contains(&method.as_str()) {
            self.look(seen);
        }
        if method != "load_session" || self.promises != Promises::All || leaves_children(seen) {
            return Vec::new();
        }
        let id = result["agent_id"].as_str().unwrap_or_default();
        let Some(name) = loaded_as_it_is(id, seen) else { return Vec::new() };
        let grants = KeptGrant::read(seen.disk).unwrap_or_default();
        self.escaped(id, name, &grants).into_iter().collect()
    }
}

/// Whether somebody may have made a child one that has no parent.
fn leaves_children(seen: &Seen<'_>) -> bool {
    let keeps = |made: &Made| {
        let params = made.call.params.as_ref();
        params.and_then(|params| params.get("cascade")) == Some(&Value::Bool(false))
    };
    let leaves = |made: &Made| made.call.method == "delete_session" || keeps(made);
    seen.calls.iter().any(leaves) || !seen.raw.is_empty()
}

/// The session that an agent was made from, where that is known and nobody gave it another preset.
fn loaded_as_it_is<'s>(id: &str, seen: &'s Seen<'_>) -> Option<&'s str> {
    let param = |made: &'s Made, name: &str| made.call.params.as_ref()?.get(name)?.as_str();
    let loads = seen.calls.iter().filter(|made| made.call.method == "load_session");
    let of_id = loads.filter(|made| {
        let called = param(made, "agent_id").or_else(|| param(made, "session_name"));
        called == Some(id)
    });
    let mut of_id = of_id.filter(|made| !matches!(made.answer, Some(Err(_))));
    let only = of_id.next_back()?;
    let is_other = param(only, "preset").is_some();
    if is_other || of_id.any(|made| made.ended.is_none_or(|ended| ended > only.at)) {
        return None;
    }
    param(only, "session_name")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::seen_tests::{Run, made};
    use super::*;
    use crate::disk::Item;

    #[test]
    fn a_child_comes_back_below_its_parent() {
        let run = Run::default();
        let content = json!({"parent_agent_id": "boss"}).to_string().into_bytes();
        let path = format!("{HOME}/sessions/child.json");
        run.disk.put(path.as_ref(), Item::File { content, mode: 0o600 }).unwrap();
        let mut escapes = Escapes { promises: Promises::All, parents: BTreeMap::new() };
        escapes.look(&run.seen());
        let grant = |parent: Option<&str>| {
            let (id, parent) = ("child".to_owned(), parent.map(str::to_owned));
            [KeptGrant { id, parent, ..KeptGrant::default() }]
        };
        assert_eq!(escapes.escaped("child", "child", &grant(Some("boss"))), None);
        let told =
            "child is below nobody, and the session child is that of a child of boss".to_owned();
        assert_eq!(escapes.escaped("child", "child", &grant(None)), Some(told));
    }

    #[test]
    fn whoever_gives_another_preset_makes_another_agent() {
        let load = |params: Value| {
            let answer = Some(Ok(json!({"agent_id": "child"})));
            Run { calls: vec![made("load_session", None, &params, 1, answer)], ..Run::default() }
        };
        let as_it_is = load(json!({"session_name": "saved", "agent_id": "child"}));
        assert_eq!(loaded_as_it_is("child", &as_it_is.seen()), Some("saved"));
        let other = load(json!({"session_name": "child", "preset": "sandboxed"}));
        assert_eq!(loaded_as_it_is("child", &other.seen()), None);
    }
}
