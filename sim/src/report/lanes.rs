//! Who has a lane, and where: clients, the server, agents with their children beside them, and on the
//! right what agents use. Pure.

use std::collections::BTreeMap;

use nexus3::event::{Event, What};
use serde::Serialize;

use crate::play::story::{Happening, Moment};
use crate::scenario::{MODEL, SERVER};

/// Files and programs.
const MACHINE: &str = "machine";

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Lane {
    /// An agent's first, and those that it got later.
    pub name: String,
    pub kind: LaneKind,
    /// How many ancestors an agent has.
    pub depth: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LaneKind {
    Client,
    Server,
    Agent,
    Model,
    Mcp,
    Machine,
}

/// All lanes of a run, and where each is found.
#[derive(Debug)]
pub struct Lanes {
    pub lanes: Vec<Lane>,
    places: BTreeMap<(LaneKind, String), usize>,
}

impl Lanes {
    pub fn of(moments: &[Moment], events: &[&Event]) -> Self {
        let mut lanes = Self { lanes: Vec::new(), places: BTreeMap::new() };
        for moment in moments {
            let is_client = match moment.what {
                Happening::Called { .. }
                | Happening::Answered { .. }
                | Happening::Left { .. }
                | Happening::Heard(_) => true,
                Happening::Noted(_) => moment.who != SERVER,
                Happening::Served(_)
                | Happening::Listens
                | Happening::Asked { .. }
                | Happening::AskBegan { .. }
                | Happening::AskEnded { .. }
                | Happening::FaultBegan { .. }
                | Happening::FaultEnded { .. }
                | Happening::ClockSet { .. }
                | Happening::Started { .. } => false,
            };
            if is_client {
                lanes.add(LaneKind::Client, &moment.who, 0);
            }
        }
        lanes.add(LaneKind::Server, SERVER, 0);
        let family = Family::of(moments, events);
        let roots = family.ids.iter().filter(|id| family.parent(id).is_none());
        // Names that were given twice may make a circle without a root.
        for agent in roots.chain(&family.ids) {
            lanes.add_family(agent, 0, &family);
        }
        if moments.iter().any(|moment| matches!(moment.what, Happening::Asked { .. })) {
            lanes.add(LaneKind::Model, MODEL, 0);
        }
        for moment in moments.iter().filter(|moment| matches!(moment.what, Happening::Served(_))) {
            lanes.add(LaneKind::Mcp, &moment.who, 0);
        }
        let is_use = |event: &&Event| match &event.what {
            What::ToolStarted { name, .. } => uses_machine(name),
            _ => false,
        };
        if events.iter().any(is_use) {
            lanes.add(LaneKind::Machine, MACHINE, 0);
        }
        lanes
    }

    pub fn client(&self, name: &str) -> Option<usize> {
        self.at(LaneKind::Client, name)
    }

    pub fn agent(&self, id: &str) -> Option<usize> {
        self.at(LaneKind::Agent, id)
    }

    pub fn server(&self) -> usize {
        self.at(LaneKind::Server, SERVER).expect("the server always has a lane")
    }

    pub fn model(&self) -> Option<usize> {
        self.at(LaneKind::Model, MODEL)
    }

    /// The MCP server of this name.
    pub fn mcp(&self, name: &str) -> Option<usize> {
        self.at(LaneKind::Mcp, name)
    }

    /// Who does what a tool is asked for. Those that ask agents lead to their lanes by themselves.
    pub fn tool(&self, tool: &str) -> Option<usize> {
        match mcp_server(tool) {
            Some((server, _)) => self.mcp(server),
            None => self.machine().filter(|_| uses_machine(tool)),
        }
    }

    pub fn machine(&self) -> Option<usize> {
        self.at(LaneKind::Machine, MACHINE)
    }

    fn at(&self, kind: LaneKind, name: &str) -> Option<usize> {
        self.places.get(&(kind, name.to_owned())).copied()
    }

    fn add(&mut self, kind: LaneKind, name: &str, depth: usize) {
        let key = (kind, name.to_owned());
        if !self.places.contains_key(&key) {
            self.places.insert(key, self.lanes.len());
            self.lanes.push(Lane { name: name.to_owned(), kind, depth });
        }
    }

    /// An agent and all below it. Who has a lane already is not followed again.
    fn add_family(&mut self, agent: &str, depth: usize, family: &Family) {
        if self.agent(agent).is_some() {
            return;
        }
        let place = self.lanes.len();
        self.add(LaneKind::Agent, agent, depth);
        for (later, _) in family.renamed.iter().filter(|(_, first)| first == agent) {
            self.places.entry((LaneKind::Agent, later.clone())).or_insert(place);
            let name = &mut self.lanes[place].name;
            *name = format!("{name} → {later}");
        }
        for child in family.ids.iter().filter(|id| family.parent(id) == Some(agent)) {
            self.add_family(child, depth + 1, family);
        }
    }
}

/// Whether a tool works on files and programs. The others ask agents, which have lanes of their own.
fn uses_machine(tool: &str) -> bool {
    !tool.starts_with("nexus_") && mcp_server(tool).is_none()
}

/// The MCP server that has a tool, and the tool's name there.
pub fn mcp_server(tool: &str) -> Option<(&str, &str)> {
    tool.strip_prefix("mcp__")?.split_once("__")
}

/// The agents in the order in which they are first heard of.
#[derive(Debug, Default)]
struct Family {
    ids: Vec<String>,
    /// Names that agents got later, each with the first one.
    renamed: Vec<(String, String)>,
    parents: BTreeMap<String, String>,
}

impl Family {
    fn of(moments: &[Moment], events: &[&Event]) -> Self {
        let mut family = Self::default();
        for event in events {
            let Some(agent) = &event.agent_id else { continue };
            if let What::AgentUpdated { previous_agent_id: Some(before), .. } = &event.what {
                family.rename(before.as_str(), agent.as_str());
            }
            family.meet(agent.as_str());
            let parent = match &event.what {
                What::AgentCreated { parent_agent_id }
                | What::AgentRestored { parent_agent_id }
                | What::AgentUpdated { parent_agent_id, .. } => parent_agent_id.as_ref(),
                _ => None,
            };
            if let Some(parent) = parent.filter(|parent| *parent != agent) {
                let (agent, parent) = (family.first(agent.as_str()), family.first(parent.as_str()));
                family.parents.entry(agent).or_insert(parent);
            }
        }
        for moment in moments {
            if let Happening::Asked { agent, .. } = &moment.what {
                family.meet(agent);
            }
        }
        family
    }

    fn meet(&mut self, agent: &str) {
        let agent = self.first(agent);
        if !self.ids.contains(&agent) {
            self.ids.push(agent);
        }
    }

    /// An agent gets another name. One that somebody had before stays that one's.
    fn rename(&mut self, before: &str, now: &str) {
        self.meet(before);
        if self.first(now) == now && !self.ids.iter().any(|id| id == now) {
            self.renamed.push((now.to_owned(), self.first(before)));
        }
    }

    /// The first name of an agent.
    fn first(&self, agent: &str) -> String {
        let renamed = self.renamed.iter().find(|(later, _)| later == agent);
        renamed.map_or_else(|| agent.to_owned(), |(_, first)| first.clone())
    }

    /// The parent, where it is an agent that is known.
    fn parent(&self, agent: &str) -> Option<&str> {
        let parent = self.parents.get(agent)?;
        self.ids.contains(parent).then_some(parent.as_str())
    }
}
