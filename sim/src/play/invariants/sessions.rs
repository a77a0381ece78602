//! What was saved and loaded, as far as clients were told: a session that was saved has a file that can be
//! read, and an agent that was loaded is there. Part of `durable`. Pure.

use std::collections::BTreeSet;
use std::path::Path;

use nexus3::session::SessionFile;
use serde_json::Value;

use super::told::{Told, result};
use crate::disk::{Disk, Item, View};
use crate::machine::HOME;
use crate::play::director::Made;
use crate::play::kept::Kept;

/// Calls that take away what was saved or loaded, or give it another name.
const TAKE_AWAY: [&str; 3] = ["destroy_agent", "rename_session", "delete_session"];

/// Agents whose conversation began in a session and not with their creation.
#[derive(Debug, Default)]
pub struct FromSessions<'k> {
    /// Those of which that is true now.
    pub now: BTreeSet<&'k str>,
    /// And of some agent that had the id before.
    pub ever: BTreeSet<&'k str>,
}

pub fn made_from_sessions(kept: &Kept) -> FromSessions<'_> {
    let mut alive: BTreeSet<&str> = BTreeSet::new();
    let FromSessions { now: mut made, mut ever } = FromSessions::default();
    for event in &kept.events {
        let agent = event.agent.as_str();
        match event.name.as_str() {
            "agent_created" => {
                alive.insert(agent);
                made.remove(agent);
            }
            "agent_restored" if alive.insert(agent) => {
                made.insert(agent);
                ever.insert(agent);
            }
            "agent_destroyed" => {
                alive.remove(agent);
                made.remove(agent);
            }
            _ => {}
        }
    }
    FromSessions { now: made, ever }
}

/// What was told to be saved or loaded and is not there.
pub fn lost(kept: &Kept, told: &Told<'_>, disk: &Disk) -> Vec<String> {
    let mut found = Vec::new();
    for made in told.calls {
        let Some(result) = result(made) else { continue };
        let text = |member: &str| result.get(member).and_then(Value::as_str).unwrap_or_default();
        match made.call.method.as_str() {
            "save_session" if !is_taken_away(told, made, text("session_name")) => {
                let name = text("session_name");
                if let Err(problem) = saved(disk, name) {
                    found.push(format!("the session {name} was saved and {problem}"));
                }
            }
            "load_session" if !is_taken_away(told, made, text("agent_id")) => {
                let id = text("agent_id");
                // Temporary agents go with their server.
                let is_left_behind = id.starts_with('.') && made.server_start != told.server_start;
                if !is_left_behind && kept.agent(id).is_none() {
                    found.push(format!("{id}: it was loaded and is not there"));
                }
            }
            _ => {}
        }
    }
    found
}

/// Whether somebody asked later for something that may have taken it away.
fn is_taken_away(told: &Told<'_>, since: &Made, name: &str) -> bool {
    let mut later = told.calls.iter().filter(|made| made.ended.is_none_or(|end| end > since.at));
    later.any(|made| {
        let params = made.call.params.as_ref();
        let names_it = params.is_some_and(|params| params.values().any(|value| value == name));
        let destroyed = result(made).and_then(|result| result.get("destroyed")?.as_array());
        TAKE_AWAY.contains(&made.call.method.as_str())
            && (names_it || destroyed.is_some_and(|ids| ids.iter().any(|id| id == name)))
    })
}

fn saved(disk: &Disk, name: &str) -> Result<(), String> {
    let path = Path::new(HOME).join("sessions").join(format!("{name}.json"));
    match disk.tree(View::Now).get(&path) {
        Some(Item::File { content, mode: 0o600 }) => {
            SessionFile::parse(content).map(drop).map_err(|error| format!("is damaged: {error}"))
        }
        Some(Item::File { mode, .. }) => Err(format!("has the mode {mode:o}")),
        Some(Item::Dir { .. } | Item::Link { .. }) => Err("is no file".to_owned()),
        None => Err("has no file".to_owned()),
    }
}
