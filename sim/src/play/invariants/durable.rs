//! The invariant `durable`: nothing acknowledged is lost by a crash, and nothing unacknowledged is
//! claimed. What clients were told is held against the database that the server has left.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use nexus3::limits::REQUESTS_KEPT_MAX;
use nexus3::message::Message;

use super::among::{Among, HostClock};
use super::promises::{Promises, changes};
use super::sessions;
use super::sound::{self, Rest};
use super::told::{Fate, Heard, How, Told};
use super::{Check, End, Invariant, Seen};
use crate::machine::HOME;
use crate::play::kept::{Kept, KeptAgent, KeptRequest};
use crate::scenario::{Fault, FaultKind, Scenario};

#[derive(Debug)]
pub struct Durable {
    promises: Promises,
    disk: DiskFaults,
    sessions: Sessions,
    clock: HostClock,
    /// Requests that an earlier server has ended.
    earlier: BTreeSet<String>,
}

/// Whose words stand in session files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sessions {
    OurOwn,
    /// The scenario writes some itself.
    Foreign,
}

/// Whether the disk may have refused to take the last of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DiskFaults {
    No,
    Some,
}

impl Durable {
    pub fn new(scenario: &Scenario) -> Self {
        let of_disk = |fault: &Fault| match fault.kind {
            FaultKind::DiskFull
            | FaultKind::IoError
            | FaultKind::ReadOnly
            | FaultKind::FsyncError
            | FaultKind::FsyncLies
            | FaultKind::TornWrite
            | FaultKind::Files(_) => true,
            FaultKind::Crash
            | FaultKind::PowerLoss
            | FaultKind::Partition
            | FaultKind::Hold
            | FaultKind::Delay { .. }
            | FaultKind::ClockJump { .. } => false,
        };
        let disk =
            if scenario.faults.iter().any(of_disk) { DiskFaults::Some } else { DiskFaults::No };
        let has_earlier = !scenario.agents.is_empty();
        let sessions = if has_earlier || changes(scenario, &Path::new(HOME).join("sessions")) {
            Sessions::Foreign
        } else {
            Sessions::OurOwn
        };
        let requests = scenario.agents.iter().flat_map(|agent| &agent.requests);
        Self {
            promises: Promises::of(scenario),
            disk,
            sessions,
            clock: HostClock::of(scenario),
            earlier: requests.map(|request| request.id.clone()).collect(),
        }
    }
}

impl Check for Durable {
    fn invariant(&self) -> Invariant {
        Invariant::Durable
    }

    fn at_end(&mut self, seen: &Seen<'_>, end: &End<'_>) -> Vec<String> {
        let kept = match Kept::read(seen.disk) {
            None => Kept::default(),
            Some(Ok(kept)) => kept,
            Some(Err(problem)) => return vec![format!("the database cannot be read: {problem}")],
        };
        let among = Among::of(&kept);
        let calls = [seen.calls, among.calls(self.clock).as_slice()].concat();
        let raw = [seen.raw, among.unknown().as_slice()].concat();
        let told = Told { calls: &calls, raw: &raw, server_start: seen.server_start };
        let rest = match (&end.left_behind, self.disk) {
            (Some(_), DiskFaults::No) => Rest::Complete,
            (Some(_), DiskFaults::Some) | (None, _) => Rest::Unsure,
        };
        // Of what an earlier server ended there are no events.
        let mut found = sound::unsound(&kept.without_requests(&self.earlier), rest);
        match self.sessions {
            Sessions::OurOwn => found.extend(claimed(&kept, &told)),
            Sessions::Foreign => {}
        }
        match self.promises {
            Promises::All => {
                found.extend(lost(&kept, &told));
                found.extend(sessions::lost(&kept, &told, seen.disk));
            }
            Promises::NotTheLast | Promises::NotWhatWasChanged => {}
        }
        found
    }
}

/// What is kept and nobody asked for.
fn claimed(kept: &Kept, told: &Told<'_>) -> Vec<String> {
    let mut found = Vec::new();
    let asked_for = told.asked_for();
    let from_sessions = sessions::made_from_sessions(kept).ever;
    for agent in &kept.agents {
        // What it said and was asked before is not known.
        if from_sessions.contains(agent.id.as_str()) {
            continue;
        }
        let formerly: BTreeSet<&str> = kept.former_ids(&agent.id).collect();
        let ids = || std::iter::once(agent.id.as_str()).chain(formerly.iter().copied());
        if !ids().any(|id| asked_for.contains(id)) && !told.may_have_unknown_agents() {
            found.push(format!("{}: nobody asked for this agent", agent.id));
        }
        let sends: Vec<_> = ids().flat_map(|id| told.sends(id)).collect();
        if told.raw_says("send") || told.raw_says("initial_message") {
            continue;
        }
        for request in kept.requests_of(agent) {
            let is_it = |(id, content): &(Option<&str>, &str)| {
                id.is_none_or(|id| id == request.id) && *content == request.content
            };
            if !sends.iter().any(is_it) {
                found.push(format!("{} of {}: nobody sent it", request.id, agent.id));
            }
        }
        if agent.exists() {
            found.extend(repeated(agent, &sends));
        }
    }
    found
}

/// Messages of users that are there more often than they were sent.
fn repeated(agent: &KeptAgent, sends: &[(Option<&str>, &str)]) -> Vec<String> {
    let mut sent: BTreeMap<&str, (BTreeSet<&str>, usize)> = BTreeMap::new();
    for (id, content) in sends {
        let (ids, without_id) = sent.entry(content).or_default();
        match id {
            Some(id) => drop(ids.insert(id)),
            None => *without_id += 1,
        }
    }
    let mut there: BTreeMap<&str, usize> = BTreeMap::new();
    for (content, _) in turns(&agent.messages) {
        *there.entry(content).or_default() += 1;
    }
    let times = |content: &str| sent.get(content).map_or(0, |(ids, without)| ids.len() + without);
    let too_often = there.into_iter().filter(|(content, count)| *count > times(content));
    too_often
        .map(|(content, count)| {
            format!("{}: {content:?} is there {count} times, sent {}", agent.id, times(content))
        })
        .collect()
}

/// What was told and is not there.
fn lost(kept: &Kept, told: &Told<'_>) -> Vec<String> {
    let mut found = Vec::new();
    let nobodys = told.ids_given().into_iter().filter(|id| kept.agent(id).is_none());
    found.extend(nobodys.map(|id| format!("{id}: an agent got this id, and nobody has it")));
    let from_sessions = sessions::made_from_sessions(kept).now;
    for id in told.asked_for().into_iter().filter(|id| !from_sessions.contains(id)) {
        match (told.fate(id), kept.agent_once_called(id)) {
            // It may have been deleted, or have got another id and ended under that.
            (Fate::Exists { .. }, None) if told.may_have_lost(id) => {}
            (Fate::Gone, Some(_)) if told.may_be_given(id) => {}
            // Another came from its session, and got another id.
            (Fate::Gone, Some(agent)) if from_sessions.contains(agent.id.as_str()) => {}
            (Fate::Exists { .. }, None) => {
                found.push(format!("{id}: it was created and is not there"));
            }
            (Fate::Gone, Some(_)) => found.push(format!("{id}: it was destroyed and is there")),
            (Fate::Exists { since }, Some(agent)) => {
                let count = told.messages_told(id, since);
                if (agent.messages.len() as u64) < count {
                    let left = agent.messages.len();
                    found.push(format!("{id}: of {count} messages that were told {left} are left"));
                }
                let heard = told.heard().into_iter();
                let heard = heard.filter(|heard| heard.agent == id && heard.made >= since);
                found.extend(forgotten(kept, agent, &heard.collect::<Vec<_>>()));
            }
            (Fate::Gone | Fate::Unknown, _) => {}
        }
    }
    found
}

/// What was told of an agent's requests and is otherwise now.
fn forgotten(kept: &Kept, agent: &KeptAgent, heard: &[Heard<'_>]) -> Vec<String> {
    let requests: BTreeMap<&str, &KeptRequest> =
        kept.requests_of(agent).map(|request| (request.id.as_str(), request)).collect();
    if requests.len() >= REQUESTS_KEPT_MAX {
        return Vec::new();
    }
    let problem = |heard: &Heard<'_>| {
        let what = match requests.get(heard.request) {
            None => "it was taken and is not known".to_owned(),
            Some(request) => otherwise(agent, request, &heard.how)?,
        };
        Some(format!("{} of {}: {what}", heard.request, agent.id))
    };
    heard.iter().filter_map(problem).collect()
}

fn otherwise(agent: &KeptAgent, request: &KeptRequest, how: &How<'_>) -> Option<String> {
    let (expected, said) = match how {
        How::Taken => return None,
        How::Completed(said) => ("completed", Some(*said)),
        How::Cancelled => ("cancelled", None),
        How::Failed => ("failed", None),
        How::Interrupted => ("interrupted", None),
    };
    if request.status != expected {
        return Some(format!("it was told to be {expected} and is {}", request.status));
    }
    let said = said?;
    if request.outcome.pointer("/completed/content").is_none_or(|content| content != said) {
        return Some("its answer was told otherwise".to_owned());
    }
    let is_there = turns(&agent.messages)
        .iter()
        .any(|(content, answer)| **content == *request.content && answer == said);
    (!is_there).then(|| "its messages are not in the conversation".to_owned())
}

/// What users said, each with all that was answered to it.
fn turns(messages: &[Message]) -> Vec<(&str, String)> {
    let mut turns: Vec<(&str, String)> = Vec::new();
    for message in messages {
        match message {
            Message::User { content, .. } => turns.push((content, String::new())),
            Message::Assistant { content, .. } => {
                if let Some((_, answer)) = turns.last_mut() {
                    answer.push_str(content);
                }
            }
            Message::Tool { .. } => {}
        }
    }
    turns
}

#[cfg(test)]
#[path = "durable_tests.rs"]
mod tests;
