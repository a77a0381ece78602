//! What a run came to, in numbers that runs with other seeds can be compared by. Pure: it reads what
//! the database has kept, and leaves out all that differs from run to run without a meaning.

use std::collections::BTreeMap;

use nexus3::message::Message;
use serde_json::Value;

use super::checker::Survey;
use super::kept::Kept;
use crate::digest::Digest;

/// How a run came to rest.
pub struct Rest {
    pub survey: Option<Survey>,
    pub left_behind: Option<Vec<String>>,
    pub problems: Vec<String>,
}

/// How often each kind of durable event is on record.
pub fn events(kept: &Kept) -> BTreeMap<String, u64> {
    let mut events = BTreeMap::new();
    for event in &kept.events {
        *events.entry(event.name.clone()).or_default() += 1;
    }
    events
}

/// The durable events in their order, each with its agent.
pub fn journal(kept: &Kept) -> Vec<String> {
    kept.events.iter().map(|event| format!("{} of {}", event.name, event.agent)).collect()
}

/// The durable events in their order, as clients get them.
pub fn told(kept: &Kept) -> Vec<Value> {
    kept.events.iter().map(|event| event.json.clone()).collect()
}

/// What was said, by agent.
pub fn conversations(kept: &Kept) -> BTreeMap<String, Vec<Message>> {
    let agents = kept.agents.iter().filter(|agent| agent.exists());
    agents.map(|agent| (agent.id.clone(), agent.messages.clone())).collect()
}

/// A number for the agents, their conversations and how their requests ended. Ids that a server draws,
/// and the order in which agents and requests came, are no part of it.
pub fn state(kept: &Kept) -> u64 {
    let mut agents: Vec<String> = kept.agents.iter().map(|agent| described(kept, agent)).collect();
    agents.sort_unstable();
    let mut digest = Digest::default();
    for agent in agents {
        digest.add(agent.as_bytes());
    }
    digest.number()
}

fn described(kept: &Kept, agent: &super::kept::KeptAgent) -> String {
    let said = agent.messages.iter().map(|message| {
        let message = serde_json::to_value(message).unwrap_or_default();
        format!("{}: {}", message["role"], message["content"])
    });
    let of_agent = kept.requests.iter().filter(|request| request.agent == agent.number);
    let mut requests: Vec<String> =
        of_agent.map(|request| format!("{} {}", request.content, request.status)).collect();
    requests.sort_unstable();
    let said: Vec<String> = said.collect();
    format!("{} {}\n{}\n{}", agent.id, agent.status, said.join("\n"), requests.join("\n"))
}
