//! The kept events as the lives of agents and the turns in them, for the invariants that compare them
//! with something. Pure.

use std::collections::{BTreeMap, BTreeSet};

use nexus3::event::{Seq, What};

use crate::play::kept::Kept;

/// An agent from its creation on. Another one may have its id later.
#[derive(Debug)]
pub struct Life {
    /// What it was called last.
    pub agent: String,
    /// What it was called before.
    formerly: BTreeSet<String>,
    /// In the order of their first events.
    pub turns: Vec<Turn>,
}

#[derive(Debug)]
pub struct Turn {
    pub request: String,
    pub queued: Option<Seq>,
    pub started: Option<Seq>,
    /// The agent that sent it, and what.
    pub from: Option<(String, String)>,
    /// Its last events, of which there should be one.
    pub ends: Vec<(Seq, What)>,
}

/// The lives of all agents of which no event is forgotten, in the order of their creation.
pub fn lives(kept: &Kept) -> Vec<Life> {
    let mut lives: Vec<Life> = Vec::new();
    let mut latest: BTreeMap<String, usize> = BTreeMap::new();
    for kept_event in &kept.events {
        let Some(event) = &kept_event.event else { continue };
        // Its events are found under the id that it got last.
        let agent = kept_event.agent.clone();
        if kept.forgotten.contains_key(&agent) {
            continue;
        }
        if matches!(event.what, What::AgentCreated { .. }) || !latest.contains_key(&agent) {
            latest.insert(agent.clone(), lives.len());
            let formerly = BTreeSet::new();
            lives.push(Life { agent: agent.clone(), formerly, turns: Vec::new() });
        }
        let life = &mut lives[latest[&agent]];
        life.formerly.extend(event.agent_id.as_ref().map(ToString::to_string));
        if let Some(request) = &event.request_id {
            life.turn(request.as_str()).follow(kept_event.seq, &event.what);
        }
    }
    lives
}

impl Life {
    /// The only life of an agent that was ever called this, whose requests can be of no other.
    pub fn only<'a>(lives: &'a [Self], agent: &str) -> Option<&'a Self> {
        let is_called = |life: &&Self| life.agent == agent || life.formerly.contains(agent);
        let mut of_agent = lives.iter().filter(is_called);
        let only = of_agent.next();
        if of_agent.next().is_some() { None } else { only }
    }

    pub fn find(&self, request: &str) -> Option<&Turn> {
        self.turns.iter().find(|turn| turn.request == request)
    }

    fn turn(&mut self, request: &str) -> &mut Turn {
        let found = self.turns.iter().position(|turn| turn.request == request);
        let place = found.unwrap_or_else(|| {
            self.turns.push(Turn {
                request: request.to_owned(),
                queued: None,
                started: None,
                from: None,
                ends: Vec::new(),
            });
            self.turns.len() - 1
        });
        &mut self.turns[place]
    }
}

impl Turn {
    fn follow(&mut self, seq: Seq, what: &What) {
        match what {
            What::TurnQueued { .. } => self.queued = self.queued.or(Some(seq)),
            What::TurnStarted { content, source_agent_id, .. } => {
                self.started = self.started.or(Some(seq));
                let from = source_agent_id.as_ref().map(ToString::to_string);
                self.from = from.map(|from| (from, content.to_string()));
            }
            what if what.is_terminal() => self.ends.push((seq, what.clone())),
            _ => {}
        }
    }
}
