//! Of the invariant `ceiling`: what a sandboxed agent cannot leave stays where it was, wherever it goes.
//! Seen by the records of agents, between two answers to clients.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Check, Invariant, Observation, Seen};
use crate::play::director::Made;
use crate::play::kept::KeptGrant;
use crate::scenario::Scenario;

/// Calls that may give an agent its root or take it away, and those that must not.
const LOOKS: [&str; 5] =
    ["create_agent", "load_session", "set_permissions", "set_cwd", "get_permissions"];

#[derive(Debug)]
pub struct Roots {
    /// Of the scenario's configuration.
    permissions: Value,
    /// What the agents cannot leave that were sandboxed when they were last looked at, by number.
    roots: BTreeMap<i64, String>,
}

impl Roots {
    pub fn new(scenario: &Scenario) -> Self {
        let permissions = scenario.config_json("")["permissions"].take();
        Self { permissions, roots: BTreeMap::new() }
    }

    fn moved(&mut self, grants: &[KeptGrant]) -> Vec<String> {
        let sandboxed = grants.iter().filter(|grant| self.is_sandboxed(&grant.recipe["preset"]));
        let now: BTreeMap<i64, String> =
            sandboxed.map(|grant| (grant.number, root(&grant.recipe))).collect();
        let moved = grants.iter().filter_map(|grant| {
            let (before, now) = (self.roots.get(&grant.number)?, now.get(&grant.number)?);
            let told = || format!("{} could not leave {before}, and now {now}", grant.id);
            (before != now).then(told)
        });
        let moved = moved.collect();
        self.roots = now;
        moved
    }

    /// Whether a preset is one that no ceiling has to make sandboxed.
    fn is_sandboxed(&self, preset: &Value) -> bool {
        let mut base = preset.as_str().unwrap_or_default();
        while let Some(layer) = self.permissions["presets"].get(base) {
            base = layer["extends"].as_str().unwrap_or_default();
        }
        base == "sandboxed" || base == "worker"
    }
}

/// Where it is not on record, it is the working directory.
fn root(recipe: &Value) -> String {
    let root = recipe["root"].as_str().or_else(|| recipe["cwd"].as_str());
    root.unwrap_or_default().to_owned()
}

impl Check for Roots {
    fn invariant(&self) -> Invariant {
        Invariant::Ceiling
    }

    fn on(&mut self, observation: &Observation, seen: &Seen<'_>) -> Vec<String> {
        let Observation::Answered(answer) = observation else { return Vec::new() };
        if !LOOKS.contains(&answer.method.as_str()) {
            return Vec::new();
        }
        // Somebody may have been something else in between.
        let is_unsure =
            |made: &Made| made.call.method == "set_permissions" && made.answer.is_none();
        if answer.method == "set_permissions" || seen.calls.iter().any(is_unsure) {
            self.roots.clear();
        }
        let grants = KeptGrant::read(seen.disk).unwrap_or_default();
        self.moved(&grants)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_root_of_a_sandboxed_agent_stays() {
        let presets = json!({"shut": {"extends": "worker"}, "free": {"extends": "trusted"}});
        let permissions = json!({"presets": presets});
        let grant = |preset: &str, cwd: &str, root: Option<&str>| {
            let recipe = json!({"preset": preset, "cwd": cwd, "root": root});
            [KeptGrant { number: 1, id: "box".to_owned(), recipe, ..KeptGrant::default() }]
        };
        let run = |preset: &str, root| {
            let permissions = permissions.clone();
            let mut roots = Roots { permissions, roots: BTreeMap::new() };
            assert_eq!(roots.moved(&grant(preset, "/project", None)), [""; 0]);
            roots.moved(&grant(preset, "/project/in", root))
        };
        let moved = ["box could not leave /project, and now /project/in"];
        assert_eq!(run("sandboxed", Some("/project")), [""; 0]);
        assert_eq!(run("sandboxed", None), moved);
        assert_eq!(run("shut", Some("/project/in")), moved);
        assert_eq!(run("free", None), [""; 0]);
    }
}
