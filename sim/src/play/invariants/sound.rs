//! What the database must keep whatever clients were told: it is whole, conversations are paired,
//! events are numbered once, and a request that ended has exactly one event that says so. Pure.

use std::collections::BTreeSet;

use nexus3::limits::REQUESTS_KEPT_MAX;
use nexus3::message::check_pairs;

use crate::play::kept::{Kept, KeptAgent, KeptEvent, KeptRequest};

/// Whether everything has had its time to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// The server has stopped, and its disk let it.
    Complete,
    /// Something may be left open.
    Unsure,
}

pub fn unsound(kept: &Kept, rest: Rest) -> Vec<String> {
    let mut found: Vec<String> =
        kept.damage.iter().map(|line| format!("the database is damaged: {line}")).collect();
    for agent in kept.agents.iter().filter(|agent| agent.exists()) {
        if let Err(broken) = check_pairs(agent.messages.iter()) {
            found.push(format!("{} in the database: {broken}", agent.id));
        }
        let requests: Vec<&KeptRequest> = kept.requests_of(agent).collect();
        for request in &requests {
            if rest == Rest::Complete && !request.has_ended() {
                found.push(format!("{} of {} was left {}", request.id, agent.id, request.status));
            }
        }
        // Beyond the bound an id may have been forgotten and used again.
        if requests.len() < REQUESTS_KEPT_MAX && !kept.forgotten.contains_key(&agent.id) {
            found.extend(requests.iter().filter_map(|request| misjudged(kept, agent, request)));
        }
    }
    found.extend(misnumbered(kept));
    found
}

/// How the events of a request that ended do not say so.
fn misjudged(kept: &Kept, agent: &KeptAgent, request: &KeptRequest) -> Option<String> {
    if !request.has_ended() {
        return None;
    }
    let ends: Vec<&KeptEvent> = events_of(kept, agent)
        .filter(|event| event.text("request_id") == request.id && ends_turn(event))
        .collect();
    let what = match ends.as_slice() {
        [end] if end.name == format!("turn_{}", request.status) => return None,
        [end] => format!("is {} and its last event {}", request.status, end.name),
        [] => format!("is {} and no event says so", request.status),
        ends => format!("has {} events that end it", ends.len()),
    };
    Some(format!("{} of {}: it {what}", request.id, agent.id))
}

/// The events of the agent that has the id now, not of one before it.
pub fn events_of<'a>(kept: &'a Kept, agent: &KeptAgent) -> impl Iterator<Item = &'a KeptEvent> {
    let id = agent.id.clone();
    let of_id = kept.events.iter().filter(move |event| event.agent == id);
    let created = of_id.clone().rposition_of("agent_created");
    // One that comes back from a session is not created again.
    let destroyed = of_id.clone().rposition_of("agent_destroyed");
    of_id.skip(created.max(destroyed))
}

trait LastPosition {
    /// How many events come before the last one of that name.
    fn rposition_of(self, name: &str) -> usize;
}

impl<'a, I: Iterator<Item = &'a KeptEvent>> LastPosition for I {
    fn rposition_of(self, name: &str) -> usize {
        let named = self.enumerate().filter(|(_, event)| event.name == name);
        named.last().map_or(0, |(position, _)| position)
    }
}

pub fn ends_turn(event: &KeptEvent) -> bool {
    let ends = ["turn_completed", "turn_cancelled", "turn_failed", "turn_interrupted"];
    ends.contains(&event.name.as_str())
}

fn misnumbered(kept: &Kept) -> Vec<String> {
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    for event in &kept.events {
        if !seen.insert(event.seq) {
            found.push(format!("two events have the number {}", event.seq));
        }
        if event.json.get("seq").and_then(serde_json::Value::as_u64) != Some(event.seq) {
            found.push(format!("event {} says that it has another number", event.seq));
        }
    }
    if let Some(last) = seen.last().filter(|last| **last > kept.last_seq) {
        found.push(format!("event {last} is beyond the last number {}", kept.last_seq));
    }
    found
}

#[cfg(test)]
#[path = "sound_tests.rs"]
mod tests;
