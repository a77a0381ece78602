//! A simple model of the pool that every run is compared with: which agents there are, whose children
//! they are, which of their turns wait, run and have ended, and how. It is fed with the durable events
//! in their order and knows nothing of how the server does it. An event that it does not allow, and a
//! server at rest that says something else, break the invariant `durable`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use nexus3::event::{Event, What};
use nexus3::id::AgentId;
use nexus3::limits::REQUESTS_KEPT_MAX;
use nexus3::message::Message;
use nexus3::rpc::method::AgentEntry;

use super::among::{Among, HostClock};
use super::families::Families;
use super::told::Told;
use super::{Check, End, Invariant, Seen};
use crate::play::checker::Survey;
use crate::play::kept::Kept;
use crate::scenario::Scenario;

/// The agents by what they are called last.
#[derive(Debug, Default, PartialEq, Eq)]
struct Pool {
    agents: BTreeMap<String, Agent>,
}

#[derive(Debug, PartialEq, Eq)]
struct Agent {
    presence: Presence,
    parent: Option<String>,
    queue: VecDeque<String>,
    running: Option<String>,
    /// The names of the events that ended turns, by request.
    outcomes: BTreeMap<String, &'static str>,
    /// What its turns began with; `None` where it came from a session, which has words of its own.
    heard: Option<Vec<String>>,
}

/// Active or dormant makes no difference to whoever asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    There,
    Destroyed,
}

impl Agent {
    fn new(parent: Option<String>, heard: Option<Vec<String>>) -> Self {
        Self {
            presence: Presence::There,
            parent,
            queue: VecDeque::new(),
            running: None,
            outcomes: BTreeMap::new(),
            heard,
        }
    }

    /// A turn of a request that was never seen, or was forgotten long ago.
    fn queue(&mut self, request: &str) -> Result<(), &'static str> {
        let waits = self.queue.iter().any(|queued| queued == request);
        if waits || self.running.as_deref() == Some(request) {
            return Err("is queued although it waits or runs already");
        }
        if self.outcomes.contains_key(request) && self.outcomes.len() < REQUESTS_KEPT_MAX {
            return Err("is queued although it has ended");
        }
        self.queue.push_back(request.to_owned());
        Ok(())
    }

    fn start(&mut self, request: &str, content: &str) -> Result<(), &'static str> {
        if self.running.is_some() {
            return Err("starts while another turn runs");
        }
        if self.queue.pop_front().as_deref() != Some(request) {
            return Err("starts although it is not the next");
        }
        self.running = Some(request.to_owned());
        if let Some(heard) = &mut self.heard {
            heard.push(content.to_owned());
        }
        Ok(())
    }

    fn end(&mut self, request: &str, outcome: &'static str) -> Result<(), &'static str> {
        if self.running.as_deref() == Some(request) {
            self.running = None;
        } else if let Some(place) = self.queue.iter().position(|queued| queued == request) {
            self.queue.remove(place);
        } else {
            return Err("ends although it neither waits nor runs");
        }
        self.outcomes.insert(request.to_owned(), outcome);
        Ok(())
    }
}

impl Pool {
    /// Follows an event of the agent that is called `id` in the end; says what it does not allow.
    fn on(&mut self, id: &str, event: &Event) -> Option<String> {
        let parent = |parent: &Option<AgentId>| parent.as_ref().map(ToString::to_string);
        match &event.what {
            What::AgentCreated { parent_agent_id } => {
                let agent = Agent::new(parent(parent_agent_id), Some(Vec::new()));
                let before = self.agents.insert(id.to_owned(), agent);
                // Numbers of temporary agents are given again after a restart.
                let was_there = before.is_some_and(|agent| agent.presence == Presence::There);
                return (was_there && !is_temporary(id))
                    .then(|| format!("{id} is created although it is there"));
            }
            What::AgentRestored { parent_agent_id } => {
                let agent = self.agents.entry(id.to_owned());
                let agent = agent.or_insert_with(|| Agent::new(None, None));
                // A session has a conversation, and no requests.
                (agent.presence, agent.heard) = (Presence::There, None);
                agent.outcomes.clear();
                agent.parent = parent(parent_agent_id);
            }
            What::AgentUpdated { parent_agent_id, previous_agent_id, .. } => {
                if let (Some(previous), Some(now)) = (previous_agent_id, &event.agent_id) {
                    self.rename_parent(previous.as_str(), now.as_str());
                }
                if let Some(agent) = self.agents.get_mut(id) {
                    agent.parent = parent(parent_agent_id);
                }
            }
            What::AgentDestroyed { .. } => {
                let agent = self.agents.get_mut(id)?;
                let busy = agent.running.is_some() || !agent.queue.is_empty();
                agent.presence = Presence::Destroyed;
                return busy.then(|| format!("{id} is destroyed before its turns have ended"));
            }
            what => return self.on_turn(id, event.request_id.as_ref()?.as_str(), what),
        }
        None
    }

    fn on_turn(&mut self, id: &str, request: &str, what: &What) -> Option<String> {
        let agent = self.agents.get_mut(id)?;
        let followed = match what {
            What::TurnQueued { .. } => agent.queue(request),
            What::TurnStarted { content, .. } => agent.start(request, content),
            what if what.is_terminal() => agent.end(request, what.name()),
            _ if agent.running.as_deref() == Some(request) => Ok(()),
            _ => Err("goes on although it does not run"),
        };
        followed.err().map(|problem| format!("{request} of {id} {problem} ({})", what.name()))
    }

    /// Children are told of their parent's new id by nobody.
    fn rename_parent(&mut self, previous: &str, now: &str) {
        for agent in self.agents.values_mut() {
            if agent.parent.as_deref() == Some(previous) {
                agent.parent = Some(now.to_owned());
            }
        }
    }

    /// How what a server at rest says differs from this, but for agents that are unclear.
    fn differs(&self, survey: &Survey, unclear: &BTreeSet<&str>) -> Vec<String> {
        let is_clear = |id: &str| !is_temporary(id) && !unclear.contains(id);
        let entries = survey.agents.iter().filter(|entry| is_clear(entry.agent_id.as_str()));
        let mut found: Vec<String> = entries.filter_map(|entry| self.differs_in(entry)).collect();
        for ((id, request), known) in &survey.requests {
            let agent = self.there(id.as_str()).filter(|_| is_clear(id.as_str()));
            let Some(agent) = agent else { continue };
            let expected = agent.outcomes.get(request.as_str());
            let told = known.as_ref().map(|known| {
                let status = serde_json::to_value(known.status).unwrap_or_default();
                format!("turn_{}", status.as_str().unwrap_or_default())
            });
            if let (Some(expected), Some(told)) = (expected, &told)
                && expected != told
            {
                found.push(format!("{request} of {id} is {told}, and its events say {expected}"));
            }
            if let (Some(expected), None) = (expected, told)
                && agent.outcomes.len() < REQUESTS_KEPT_MAX
            {
                found.push(format!("{request} of {id} is unknown, and its events say {expected}"));
            }
        }
        for (id, conversation) in &survey.conversations {
            let heard = self.there(id.as_str()).and_then(|agent| agent.heard.as_ref());
            let said = conversation.iter().filter_map(|message| by_user(message));
            found.extend(heard.and_then(|heard| {
                let missing = first_missing(heard, said)?;
                Some(format!("the conversation of {id} lacks {missing:?}, or has it elsewhere"))
            }));
        }
        found
    }

    fn differs_in(&self, entry: &AgentEntry) -> Option<String> {
        let id = entry.agent_id.as_str();
        let Some(agent) = self.there(id) else {
            return Some(format!("{id} is listed, and its events say that it is not there"));
        };
        let parent = entry.parent_agent_id.as_ref().map(AgentId::as_str);
        let expected = agent.parent.as_deref().filter(|parent| self.there(parent).is_some());
        (parent != expected).then(|| {
            format!("{id} is listed below {parent:?}, and its events say below {expected:?}")
        })
    }

    fn there(&self, id: &str) -> Option<&Agent> {
        self.agents.get(id).filter(|agent| agent.presence == Presence::There)
    }

    /// Turns that have not ended, of agents that are there.
    fn open(&self) -> Vec<String> {
        let there = self.agents.iter().filter(|(_, agent)| agent.presence == Presence::There);
        let open = there.flat_map(|(id, agent)| {
            let open = agent.running.iter().chain(&agent.queue);
            open.map(move |request| format!("{request} of {id} has not ended"))
        });
        open.collect()
    }

    /// How the agents on record differ from this.
    fn differs_from_record(&self, kept: &Kept, unclear: &BTreeSet<&str>) -> Vec<String> {
        let recorded = kept.agents.iter().filter(|agent| agent.exists());
        let recorded: BTreeSet<&str> = recorded.map(|agent| agent.id.as_str()).collect();
        let there = self.agents.iter().filter(|(_, agent)| agent.presence == Presence::There);
        let there: BTreeSet<&str> = there.map(|(id, _)| id.as_str()).collect();
        let differ = there
            .symmetric_difference(&recorded)
            .filter(|id| !is_temporary(id) && !unclear.contains(**id));
        let told = differ.map(|id| {
            let (has, says) = if recorded.contains(id) { ("", "not ") } else { ("not ", "") };
            format!("{id} is {has}on record, and its events say that it is {says}there")
        });
        told.chain(self.misplaced(kept, unclear)).collect()
    }

    /// Agents that are on record below another one than their events say.
    fn misplaced(&self, kept: &Kept, unclear: &BTreeSet<&str>) -> Vec<String> {
        let is_clear = |id: &str| !is_temporary(id) && !unclear.contains(id);
        let recorded = kept.agents.iter().filter(|it| it.exists() && is_clear(&it.id));
        let misplaced = recorded.filter_map(|recorded| {
            let agent = self.there(&recorded.id)?;
            let parent = recorded.parent.as_deref().filter(|parent| !unclear.contains(parent))?;
            let expected = agent.parent.as_deref().filter(|parent| self.there(parent).is_some());
            let id = &recorded.id;
            (expected != Some(parent)).then(|| {
                format!("{id} is on record below {parent}, and its events say below {expected:?}")
            })
        });
        misplaced.collect()
    }
}

/// Agents whose first events are gone, and ids that one agent was given which another had before: the
/// events of both are found under the same id.
fn unclear(kept: &Kept) -> BTreeSet<&str> {
    let mut births: BTreeMap<&str, u64> = BTreeMap::new();
    let mut renamed = BTreeSet::new();
    for kept_event in &kept.events {
        let (id, event) = (kept_event.agent.as_str(), kept_event.event.as_ref());
        if event.is_some_and(|event| matches!(event.what, What::AgentCreated { .. })) {
            *births.entry(id).or_default() += 1;
        }
        let called = event.and_then(|event| event.agent_id.as_ref());
        if called.is_some_and(|called| called.as_str() != id) {
            renamed.insert(id);
        }
    }
    renamed.retain(|id| births.get(id).is_some_and(|births| *births > 1));
    kept.forgotten.keys().map(String::as_str).chain(renamed).collect()
}

fn is_temporary(id: &str) -> bool {
    id.starts_with('.')
}

fn by_user(message: &Message) -> Option<String> {
    let message = serde_json::to_value(message).ok()?;
    (message["role"] == "user").then(|| message["content"].as_str().map(str::to_owned))?
}

/// The first text that does not stand among the others in its order.
fn first_missing(wanted: &[String], said: impl Iterator<Item = String>) -> Option<&String> {
    let mut wanted = wanted.iter().peekable();
    for said in said {
        wanted.next_if(|wanted| **wanted == said);
    }
    wanted.next()
}

/// The model, run over what the database has kept.
#[derive(Debug, Default)]
pub struct Reference {
    /// Who was there before: of those there are events once they come back.
    earlier: BTreeSet<String>,
}

impl Reference {
    pub fn new(scenario: &Scenario) -> Self {
        Self { earlier: scenario.agents.iter().map(|agent| agent.id.clone()).collect() }
    }
}

impl Check for Reference {
    fn invariant(&self) -> Invariant {
        Invariant::Durable
    }

    fn at_rest(&mut self, kept: &Kept, seen: &Seen<'_>, end: &End<'_>) -> Vec<String> {
        let mut unclear = unclear(kept);
        let is_known = |id: &&str| kept.events.iter().any(|event| event.agent == *id);
        let earlier = self.earlier.iter().map(String::as_str);
        unclear.extend(earlier.filter(|id| !is_known(id)));
        let mut pool = Pool::default();
        let mut found = Vec::new();
        for kept_event in &kept.events {
            if let Some(event) = &kept_event.event
                && !unclear.contains(kept_event.agent.as_str())
            {
                found.extend(pool.on(&kept_event.agent, event));
            }
        }
        found.extend(pool.differs_from_record(kept, &unclear));
        if kept.forgotten.is_empty() {
            let by_agents = Among::of(kept);
            let calls = [seen.calls, &by_agents.calls(HostClock::Steady)].concat();
            let told = Told { calls: &calls, raw: seen.raw, server_start: seen.server_start };
            found.extend(Families::of(kept).left_behind(&told));
        }
        if let Some(survey) = end.survey {
            found.extend(pool.differs(survey, &unclear));
            found.extend(pool.open());
        }
        found.into_iter().map(|problem| format!("the model of the pool: {problem}")).collect()
    }
}

#[cfg(test)]
#[path = "reference_tests.rs"]
mod tests;
