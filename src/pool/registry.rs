//! Which agents exist and who is whose parent.
//! Pure bookkeeping: generic over what it keeps of an agent, so that it is tested without any.

use std::collections::{BTreeMap, BTreeSet};

use super::waits::Waits;
use crate::agent::{Family, Followed};
use crate::id::AgentId;
use crate::store::{AgentNumber, Exported, Resident};

#[derive(Debug)]
pub struct Registry<A> {
    /// In order of creation.
    pub(super) agents: BTreeMap<AgentNumber, Entry<A>>,
    pub(super) by_id: BTreeMap<AgentId, AgentNumber>,
    /// Who has an id once the agent that has it is gone.
    pub(super) coming: BTreeMap<AgentId, AgentNumber>,
    /// The old and the new id of each agent that is getting another one.
    pub(super) changing: BTreeSet<AgentId>,
    next_number: AgentNumber,
    pub waits: Waits,
    stopping: bool,
    /// The agent that a terminal followed last, as far as this server knows.
    pub(super) last_session: Option<AgentNumber>,
    pub(super) followed_at_all: Followed,
}

#[derive(Debug)]
pub(super) struct Entry<A> {
    pub(super) id: AgentId,
    pub(super) presence: Presence<A>,
    parent: Option<AgentNumber>,
    pub(super) children: BTreeSet<AgentNumber>,
    /// Whether its session file follows it.
    pub(super) exported: Exported,
}

/// How far an agent is there. Its id is taken in any case.
#[derive(Debug)]
pub(super) enum Presence<A> {
    /// Being written down for the first time; nobody finds it yet.
    Arriving,
    /// On disk only, until somebody asks for it.
    Dormant,
    Here(A),
    /// Being destroyed; nobody finds it any more.
    Leaving(Option<A>),
}

/// An agent as others see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed<A> {
    pub agent: A,
    pub family: Family,
}

/// An agent by its place in the order of creation, which no other agent ever has.
#[derive(Clone, Debug)]
pub struct Found<A> {
    pub agent: A,
    number: AgentNumber,
}

/// An agent with its place in a family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member<A> {
    pub number: AgentNumber,
    pub id: AgentId,
    pub agent: A,
    pub parent: Option<AgentNumber>,
    pub parent_id: Option<AgentId>,
    /// Those that are dormant count.
    pub has_children: bool,
}

/// An agent on its way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaving<A> {
    pub number: AgentNumber,
    pub id: AgentId,
    pub parent: Option<AgentId>,
    /// `None` of one that is only on disk.
    pub agent: Option<A>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    Taken,
    NoParent,
    Stopping,
}

/// What becomes of the children of a destroyed agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Children {
    Destroy,
    /// They stay, without a parent.
    Keep,
}

impl<A> Registry<A> {
    /// Starts with the agents that are on disk, in order of their numbers.
    pub fn new(residents: Vec<Resident>, next_number: AgentNumber) -> Self {
        let mut registry = Self {
            agents: BTreeMap::new(),
            by_id: BTreeMap::new(),
            coming: BTreeMap::new(),
            changing: BTreeSet::new(),
            next_number,
            waits: Waits::default(),
            stopping: false,
            last_session: None,
            followed_at_all: Followed::default(),
        };
        for Resident { number, id, parent, exported, .. } in residents {
            assert!(number < next_number, "no agent has a number that is still to be given");
            let parent = parent.and_then(|parent| registry.by_id.get(&parent).copied());
            registry.add(number, id, parent, Presence::Dormant);
            registry.set_exported(number, if exported { Exported::Yes } else { Exported::No });
        }
        registry
    }

    fn add(
        &mut self,
        number: AgentNumber,
        id: AgentId,
        parent: Option<AgentNumber>,
        presence: Presence<A>,
    ) {
        if let Some(parent) = parent {
            self.agents.get_mut(&parent).expect("parents are there").children.insert(number);
        }
        let of_id = if self.by_id.contains_key(&id) { &mut self.coming } else { &mut self.by_id };
        of_id.insert(id.clone(), number);
        let (children, exported) = (BTreeSet::new(), Exported::No);
        self.agents.insert(number, Entry { id, presence, parent, children, exported });
    }
}

impl<A: Clone> Registry<A> {
    /// Takes a new agent's id and number, once its id and parent are known to be fine. The parent is
    /// the one that was found: another that has its id by now is not.
    pub fn reserve(
        &mut self,
        id: &AgentId,
        parent: Option<&Found<A>>,
    ) -> Result<AgentNumber, Refused> {
        if self.stopping {
            return Err(Refused::Stopping);
        }
        if !self.is_free(id) {
            return Err(Refused::Taken);
        }
        self.reserve_beside(id, parent)
    }

    /// The same of an id that another may have.
    pub(super) fn reserve_beside(
        &mut self,
        id: &AgentId,
        parent: Option<&Found<A>>,
    ) -> Result<AgentNumber, Refused> {
        let parent = parent.map(|parent| parent.number);
        if parent.is_some_and(|parent| !self.is_here(parent)) {
            return Err(Refused::NoParent);
        }
        let number = self.next_number;
        self.next_number += 1;
        self.add(number, id.clone(), parent, Presence::Arriving);
        Ok(number)
    }

    /// Lets others find an agent that was reserved or dormant; false where it is to go instead,
    /// because an ancestor was destroyed meanwhile.
    #[must_use]
    pub fn arrive(&mut self, number: AgentNumber, agent: A) -> bool {
        let entry = self.agents.get_mut(&number).expect("an agent arrives where it was reserved");
        match entry.presence {
            Presence::Arriving | Presence::Dormant => {
                entry.presence = Presence::Here(agent);
                true
            }
            Presence::Leaving(_) => false,
            Presence::Here(_) => panic!("an agent arrives once"),
        }
    }

    pub fn is_free(&self, id: &AgentId) -> bool {
        !self.by_id.contains_key(id) && !self.is_changing(id)
    }

    /// The lowest numbered temporary id that nobody has.
    pub fn free_temp_id(&self) -> AgentId {
        let mut ids = (1..).map(AgentId::temp);
        ids.find(|id| self.is_free(id)).expect("there are more numbers than agents")
    }

    /// Of an agent that is in memory, dormant, or on its way.
    pub fn number(&self, id: &AgentId) -> Option<AgentNumber> {
        self.by_id.get(id).copied()
    }

    pub fn get(&self, id: &AgentId) -> Option<A> {
        self.find(id).map(|found| found.agent)
    }

    /// An agent that can still be told from a later one of the same id.
    pub fn find(&self, id: &AgentId) -> Option<Found<A>> {
        let number = *self.by_id.get(id)?;
        let agent = self.agents[&number].here()?.clone();
        Some(Found { agent, number })
    }

    /// The dormant agent of this id after its dormant ancestors, the outermost first; empty where
    /// there is none. An agent is never more than those above it allow, so they come back first.
    pub fn dormant_line(&self, id: &AgentId) -> Vec<AgentNumber> {
        let mut line = Vec::new();
        let mut next = self.by_id.get(id).copied();
        while let Some(number) = next {
            let entry = &self.agents[&number];
            if !matches!(entry.presence, Presence::Dormant) {
                break;
            }
            line.insert(0, number);
            next = entry.parent;
        }
        line
    }

    /// An agent and all its descendants that are in memory, parents before their children; empty where
    /// there is none of this number.
    pub fn family(&self, number: AgentNumber) -> Vec<Member<A>> {
        // Numbers are given in order of creation, and parents come before their children.
        let within = |other: AgentNumber| {
            let mut line = std::iter::successors(Some(other), |number| self.agents[number].parent);
            line.any(|ancestor| ancestor == number)
        };
        let numbers = self.agents.keys().copied().filter(|other| within(*other));
        numbers.filter_map(|number| self.member(number)).collect()
    }

    fn member(&self, number: AgentNumber) -> Option<Member<A>> {
        let entry = &self.agents[&number];
        Some(Member {
            number,
            id: entry.id.clone(),
            agent: entry.here()?.clone(),
            parent: entry.parent,
            parent_id: self.parent_of(entry),
            has_children: self.child_count(entry) > 0,
        })
    }

    /// The dormant descendants of an agent, parents before their children.
    pub fn dormant_below(&self, id: &AgentId) -> Vec<AgentId> {
        let dormant = self.dormant().into_iter();
        dormant.filter(|below| below != id && self.is_within(below, id)).collect()
    }

    /// All dormant agents, in order of creation.
    pub fn dormant(&self) -> Vec<AgentId> {
        let dormant =
            self.agents.values().filter(|entry| matches!(entry.presence, Presence::Dormant));
        dormant.map(|entry| entry.id.clone()).collect()
    }

    /// The parent that an agent has, whether it is in memory or dormant.
    pub fn parent(&self, id: &AgentId) -> Option<AgentId> {
        let number = self.by_id.get(id)?;
        self.parent_of(&self.agents[number])
    }

    pub fn parent_agent(&self, number: AgentNumber) -> Option<A> {
        self.agents[&self.agents[&number].parent?].here().cloned()
    }

    pub fn list(&self) -> Vec<Listed<A>> {
        self.agents.values().filter_map(|entry| self.listed(entry)).collect()
    }

    /// The agents that `viewer` may see: itself, its descendants and its parent.
    pub fn list_for(&self, viewer: &AgentId) -> Vec<Listed<A>> {
        let parent = self.parent(viewer);
        let seen = |entry: &&Entry<A>| {
            Some(&entry.id) == parent.as_ref() || self.is_within(&entry.id, viewer)
        };
        self.agents.values().filter(seen).filter_map(|entry| self.listed(entry)).collect()
    }

    /// Whether `id` is `ancestor` or one of its descendants.
    pub fn is_within(&self, id: &AgentId, ancestor: &AgentId) -> bool {
        let Some(ancestor) = self.by_id.get(ancestor) else {
            return false;
        };
        let mut current = self.by_id.get(id).copied();
        while let Some(number) = current {
            if number == *ancestor {
                return true;
            }
            current = self.agents[&number].parent;
        }
        false
    }

    /// Hides an agent, and with it what [`Children`] says, from everybody. Returns them in the order
    /// in which they are to end: the agent itself, then its descendants, deepest first.
    pub fn start_leaving(&mut self, id: &AgentId, children: Children) -> Vec<Leaving<A>> {
        let Some(number) = self.by_id.get(id).copied() else {
            return Vec::new();
        };
        if !matches!(self.agents[&number].presence, Presence::Here(_) | Presence::Dormant) {
            return Vec::new();
        }
        let mut leaving = vec![number];
        if children == Children::Destroy {
            leaving.extend(self.descendants_deepest_first(number));
        }
        let parents: Vec<_> =
            leaving.iter().map(|number| self.parent_of(&self.agents[number])).collect();
        let hidden = leaving.into_iter().zip(parents);
        hidden.filter_map(|(number, parent)| self.hide(number, parent)).collect()
    }

    fn hide(&mut self, number: AgentNumber, parent: Option<AgentId>) -> Option<Leaving<A>> {
        let entry = self.agents.get_mut(&number).expect("families hold only agents that are there");
        let id = entry.id.clone();
        let agent = match std::mem::replace(&mut entry.presence, Presence::Leaving(None)) {
            Presence::Here(agent) => Some(agent),
            Presence::Dormant => None,
            // Whoever is writing it down finds that it is to go, and sees to it.
            Presence::Arriving => return None,
            // Somebody else is destroying it already.
            before @ Presence::Leaving(_) => {
                entry.presence = before;
                return None;
            }
        };
        entry.presence = Presence::Leaving(agent.clone());
        Some(Leaving { number, id, parent, agent })
    }

    /// Takes back [`Registry::start_leaving`] for an agent that could not be destroyed.
    pub fn stay(&mut self, number: AgentNumber) {
        let entry = self.agents.get_mut(&number).expect("an agent that leaves is still there");
        entry.presence = match std::mem::replace(&mut entry.presence, Presence::Dormant) {
            Presence::Leaving(Some(agent)) => Presence::Here(agent),
            Presence::Leaving(None) => Presence::Dormant,
            Presence::Arriving | Presence::Dormant | Presence::Here(_) => {
                panic!("only an agent that leaves can stay")
            }
        };
    }

    /// Forgets an agent that has left or never arrived; its id is free from now on, or that of whoever
    /// comes for it, and its children have no parent any more.
    pub fn remove(&mut self, number: AgentNumber) {
        let entry = self.agents.remove(&number).expect("an agent is removed once");
        assert!(
            matches!(entry.presence, Presence::Leaving(_) | Presence::Arriving),
            "an agent leaves before it is forgotten"
        );
        self.let_go(&entry.id, number);
        if let Some(parent) = entry.parent.and_then(|parent| self.agents.get_mut(&parent)) {
            parent.children.remove(&number);
        }
        for child in entry.children {
            self.agents.get_mut(&child).expect("children outlive their link").parent = None;
        }
    }

    pub fn ids_of(&self, numbers: &[AgentNumber]) -> Vec<AgentId> {
        let entries = numbers.iter().filter_map(|number| self.agents.get(number));
        entries.map(|entry| entry.id.clone()).collect()
    }

    /// Refuses new agents from now on.
    pub fn stop(&mut self) {
        self.stopping = true;
    }

    pub fn is_stopping(&self) -> bool {
        self.stopping
    }

    fn is_here(&self, number: AgentNumber) -> bool {
        self.agents.get(&number).is_some_and(|entry| entry.here().is_some())
    }

    fn descendants_deepest_first(&self, number: AgentNumber) -> Vec<AgentNumber> {
        let mut levels: Vec<Vec<AgentNumber>> = vec![vec![number]];
        while let Some(last) = levels.last().filter(|last| !last.is_empty()) {
            let below = last.iter().flat_map(|number| self.agents[number].children.iter());
            let below = below.copied().collect();
            levels.push(below);
        }
        levels.into_iter().skip(1).rev().flatten().collect()
    }

    fn listed(&self, entry: &Entry<A>) -> Option<Listed<A>> {
        let agent = entry.here()?.clone();
        let child_count = self.child_count(entry);
        Some(Listed { agent, family: Family { parent: self.parent_of(entry), child_count } })
    }

    fn child_count(&self, entry: &Entry<A>) -> usize {
        let children = entry.children.iter().map(|number| &self.agents[number]);
        children.filter(|child| child.is_there()).count()
    }

    pub(super) fn parent_of(&self, entry: &Entry<A>) -> Option<AgentId> {
        let parent = &self.agents[&entry.parent?];
        parent.is_there().then(|| parent.id.clone())
    }
}

impl<A> Entry<A> {
    pub(super) fn here(&self) -> Option<&A> {
        match &self.presence {
            Presence::Here(agent) => Some(agent),
            Presence::Arriving | Presence::Dormant | Presence::Leaving(_) => None,
        }
    }

    /// Whether it is in memory, or can be.
    pub(super) fn is_there(&self) -> bool {
        match self.presence {
            Presence::Here(_) | Presence::Dormant => true,
            Presence::Arriving | Presence::Leaving(_) => false,
        }
    }
}

#[cfg(test)]
#[path = "registry_tests.rs"]
pub(super) mod tests;
