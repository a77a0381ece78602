//! The invariant `once`: no effect twice, and none without a durable record before it. A model is not
//! asked again for a turn of an earlier server, a tool call is started once and ended once, and an MCP
//! server is not asked for a tool more often than a call of it is on record.

use std::collections::{BTreeMap, BTreeSet};

use memchr::memmem;
use nexus3::agent::SUMMARY_TASK;
use nexus3::limits::MESSAGES_LOADED_MAX;
use nexus3::message::Message;

use super::sound::{ends_turn, events_of};
use super::{Check, End, Invariant, Observation, Seen, conversation};
use crate::play::kept::{Kept, KeptAgent, KeptRequest};
use crate::play::made::maybe_ended;

#[derive(Debug, Default)]
pub struct Once {
    /// The last turn for which each agent asked a model, with the start of the server that asked.
    asked: BTreeMap<String, Asked>,
    /// The tools of MCP servers, by their names there.
    outside: BTreeMap<String, Outside>,
}

/// How often a tool of an MCP server was asked for, and how many calls were on record then.
#[derive(Clone, Copy, Debug, Default)]
struct Outside {
    asked: usize,
    on_record: usize,
}

#[derive(Clone, Copy, Debug)]
struct Asked {
    server_start: u64,
    /// How many messages of users the conversation had. A turn begins with one, which is durable
    /// before anybody is asked: so it is the number of the turn, whatever happens.
    turn: usize,
    /// The last turn of all servers before this one.
    turn_before: usize,
}

impl Check for Once {
    fn invariant(&self) -> Invariant {
        Invariant::Once
    }

    fn on(&mut self, observation: &Observation, seen: &Seen<'_>) -> Vec<String> {
        if let Observation::McpCalled { tool } = observation {
            // A database that cannot be read says nothing about calls.
            let Some(Ok(kept)) = Kept::read(seen.disk) else { return Vec::new() };
            return self.outside.entry(tool.clone()).or_default().called(tool, &kept);
        }
        // As it leaves: one that was under way when its server died may arrive at any time.
        let Observation::AskBegan(request) = observation else {
            return Vec::new();
        };
        // A summary is no turn, and asking for it again changes nothing.
        if memmem::find(&request.body, SUMMARY_TASK.as_bytes()).is_some() {
            return Vec::new();
        }
        let agent = &request.agent;
        let messages = conversation::read(&request.body).unwrap_or_default();
        // Another agent may have the id by now, and of a long conversation only the end is shown.
        if may_be_another(agent, seen) || messages.len() >= MESSAGES_LOADED_MAX {
            self.asked.remove(agent);
            return Vec::new();
        }
        let turn = messages.iter().filter(|message| matches!(message, Message::User { .. }));
        let (mut turn, server_start) = (turn.count(), request.server_start);
        let turn_before = match self.asked.get(agent) {
            Some(asked) if asked.server_start == server_start => asked.turn_before,
            Some(asked) => asked.turn,
            None => 0,
        };
        if turn <= turn_before {
            // Perhaps not all messages were shown: then the database knows which turn it is.
            turn = turn.max(turn_on_record(agent, seen).unwrap_or_default());
        }
        let same_start = |asked: &&Asked| asked.server_start == server_start;
        let earlier = self.asked.get(agent).filter(same_start).map_or(0, |asked| asked.turn);
        let asked = Asked { server_start, turn: turn.max(earlier), turn_before };
        self.asked.insert(agent.clone(), asked);
        if turn > turn_before {
            return Vec::new();
        }
        vec![format!("{agent}: a model was asked for turn {turn} again after a restart")]
    }

    fn at_end(&mut self, seen: &Seen<'_>, _: &End<'_>) -> Vec<String> {
        // That it cannot be read is told by `durable`.
        let Some(Ok(kept)) = Kept::read(seen.disk) else {
            return Vec::new();
        };
        let agents = kept.agents.iter().filter(|agent| agent.exists());
        let mut found: Vec<String> = agents.flat_map(|agent| misplaced(&kept, agent)).collect();
        for call in &kept.tool_calls {
            let mut requests = kept.requests.iter();
            let request = requests.find(|it| it.agent == call.agent && it.id == call.request);
            if request.is_none_or(KeptRequest::has_ended) {
                let (tool, request) = (&call.tool_id, &call.request);
                found.push(format!("{tool} of {request}: it is open and its turn is over"));
            }
        }
        found
    }
}

impl Outside {
    /// Servers have other names in a configuration than they have for themselves, so tools are compared by
    /// theirs.
    fn called(&mut self, tool: &str, kept: &Kept) -> Vec<String> {
        if !kept.forgotten.is_empty() {
            return Vec::new();
        }
        let suffix = format!("__{tool}");
        let started = kept
            .events
            .iter()
            .filter(|event| event.name == "tool_started" && event.text("name").ends_with(&suffix));
        let on_record = started.count();
        if on_record < self.on_record {
            // It is another database.
            self.asked = 0;
        }
        self.asked += 1;
        self.on_record = on_record;
        if self.asked <= on_record {
            return Vec::new();
        }
        let asked = self.asked;
        vec![format!("{tool}: it was asked for {asked} times, and {on_record} calls are on record")]
    }
}

/// How many messages of users are kept.
fn turn_on_record(agent: &str, seen: &Seen<'_>) -> Option<usize> {
    let kept = Kept::read(seen.disk)?.ok()?;
    let mut agents = kept.agents.iter().filter(|kept| kept.exists());
    let messages = &agents.find(|kept| kept.id == *agent)?.messages;
    Some(messages.iter().filter(|message| matches!(message, Message::User { .. })).count())
}

/// Whether the id may have belonged to another agent before. The ids of temporary ones are given
/// again after every start.
fn may_be_another(agent: &str, seen: &Seen<'_>) -> bool {
    let is_ended = seen.calls.iter().any(|made| maybe_ended(&made.call) == Some(agent));
    let is_raw = seen.raw.iter().any(|bytes| bytes.contains("destroy_agent"));
    agent.starts_with('.') || is_raw || seen.destroyed.contains(agent) || is_ended
}

/// Events of tools that are not in their place: a call is started while its turn runs and it is not
/// started already, and ends once after that.
fn misplaced(kept: &Kept, agent: &KeptAgent) -> Vec<String> {
    if kept.forgotten.contains_key(&agent.id) {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut running: BTreeSet<String> = BTreeSet::new();
    let mut open: BTreeSet<(String, String)> = BTreeSet::new();
    for event in events_of(kept, agent) {
        let request = event.text("request_id").to_owned();
        let call = (request.clone(), event.text("tool_id").to_owned());
        let told = |what: &str| format!("{} of {request} of {}: {what}", call.1, agent.id);
        match event.name.as_str() {
            "turn_started" => drop(running.insert(request)),
            "tool_started" if !running.contains(&request) => {
                found.push(told("it started while its turn did not run"));
            }
            "tool_started" if !open.insert(call.clone()) => found.push(told("it started twice")),
            "tool_completed" if !open.remove(&call) => {
                found.push(told("it ended and had not started"));
            }
            _ if ends_turn(event) => {
                running.remove(&request);
                open.retain(|(of, _)| *of != request);
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
#[path = "once_tests.rs"]
mod tests;
