//! Which agents exist, who is whose parent, and who waits for whom.
//! Pure bookkeeping: generic over what it keeps of an agent, so that it is tested without any.

use std::collections::{BTreeMap, BTreeSet};

use crate::agent::Family;
use crate::id::AgentId;

#[derive(Debug)]
pub struct Registry<A> {
    /// In order of creation.
    agents: BTreeMap<u64, Entry<A>>,
    by_id: BTreeMap<AgentId, u64>,
    created: u64,
    /// Waiting agent → awaited agents, with the number of such waits.
    waits: BTreeMap<AgentId, BTreeMap<AgentId, usize>>,
    stopping: bool,
}

#[derive(Debug)]
struct Entry<A> {
    id: AgentId,
    agent: A,
    parent: Option<AgentId>,
    children: BTreeSet<AgentId>,
    /// Being destroyed: nobody finds it any more, but its id is not free yet.
    leaving: bool,
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
    number: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
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

impl<A> Default for Registry<A> {
    fn default() -> Self {
        Self {
            agents: BTreeMap::new(),
            by_id: BTreeMap::new(),
            created: 0,
            waits: BTreeMap::new(),
            stopping: false,
        }
    }
}

impl<A: Clone> Registry<A> {
    /// Adds the agent that `make` gives, once its id and parent are known to be fine. The parent is
    /// the one that was found: another that has its id by now is not.
    pub fn insert(
        &mut self,
        id: &AgentId,
        parent: Option<&Found<A>>,
        make: impl FnOnce() -> A,
    ) -> Result<A, Refused> {
        if self.stopping {
            return Err(Refused::Stopping);
        }
        if self.by_id.contains_key(id) {
            return Err(Refused::Taken);
        }
        let mut parent_id = None;
        if let Some(parent) = parent {
            let entry = self.agents.get_mut(&parent.number).filter(|entry| !entry.leaving);
            let entry = entry.ok_or(Refused::NoParent)?;
            entry.children.insert(id.clone());
            parent_id = Some(entry.id.clone());
        }
        let agent = make();
        let entry = Entry {
            id: id.clone(),
            agent: agent.clone(),
            parent: parent_id,
            children: BTreeSet::new(),
            leaving: false,
        };
        self.created += 1;
        self.by_id.insert(id.clone(), self.created);
        self.agents.insert(self.created, entry);
        Ok(agent)
    }

    pub fn is_free(&self, id: &AgentId) -> bool {
        !self.by_id.contains_key(id)
    }

    /// The lowest numbered temporary id that nobody has.
    pub fn free_temp_id(&self) -> AgentId {
        let mut ids = (1..).map(AgentId::temp);
        ids.find(|id| self.is_free(id)).expect("there are more numbers than agents")
    }

    pub fn get(&self, id: &AgentId) -> Option<A> {
        self.present(id).map(|entry| entry.agent.clone())
    }

    /// An agent that can still be told from a later one of the same id.
    pub fn find(&self, id: &AgentId) -> Option<Found<A>> {
        let agent = self.get(id)?;
        Some(Found { agent, number: self.by_id[id] })
    }

    pub fn parent(&self, id: &AgentId) -> Option<AgentId> {
        self.present(id)?.parent.clone()
    }

    pub fn list(&self) -> Vec<Listed<A>> {
        let present = self.agents.values().filter(|entry| !entry.leaving);
        present.map(Entry::listed).collect()
    }

    /// The agents that `viewer` may see: itself, its descendants and its parent.
    pub fn list_for(&self, viewer: &AgentId) -> Vec<Listed<A>> {
        let parent = self.parent(viewer);
        let present = self.agents.values().filter(|entry| !entry.leaving);
        present
            .filter(|entry| Some(&entry.id) == parent.as_ref() || self.is_within(&entry.id, viewer))
            .map(Entry::listed)
            .collect()
    }

    /// Whether `id` is `ancestor` or one of its descendants.
    pub fn is_within(&self, id: &AgentId, ancestor: &AgentId) -> bool {
        let mut current = Some(id);
        while let Some(id) = current {
            if id == ancestor {
                return true;
            }
            current = self.entry(id).and_then(|entry| entry.parent.as_ref());
        }
        false
    }

    /// Hides an agent, and with it what [`Children`] says, from everybody. Returns them in the order
    /// in which they are to end: the agent itself, then its descendants, deepest first.
    pub fn start_leaving(&mut self, id: &AgentId, children: Children) -> Vec<(AgentId, A)> {
        if self.present(id).is_none() {
            return Vec::new();
        }
        let below = match children {
            Children::Destroy => self.descendants_deepest_first(id),
            Children::Keep => Vec::new(),
        };
        let mut leaving = vec![id.clone()];
        leaving.extend(below);
        leaving.into_iter().map(|id| (id.clone(), self.hide(&id))).collect()
    }

    /// Takes an agent out of its family: nobody has a parent or child that cannot be found.
    fn hide(&mut self, id: &AgentId) -> A {
        let entry = self.present_mut(id).expect("families hold only agents that are there");
        entry.leaving = true;
        let (agent, parent) = (entry.agent.clone(), entry.parent.take());
        let children = std::mem::take(&mut entry.children);
        if let Some(parent) = parent.and_then(|parent| self.entry_mut(&parent)) {
            parent.children.remove(id);
        }
        for child in children {
            self.entry_mut(&child).expect("families hold only agents that are there").parent = None;
        }
        agent
    }

    /// Forgets an agent that has left; its id is free from now on.
    pub fn remove(&mut self, id: &AgentId) {
        let number = self.by_id.remove(id).expect("an agent is removed once");
        let entry = self.agents.remove(&number).expect("every id has its entry");
        assert!(entry.leaving, "an agent leaves before it is forgotten");
    }

    /// Notes that `from` waits for `to`, unless it would wait for itself: then the error is the
    /// chain of agents, from `from` back to `from`.
    pub fn start_waiting(&mut self, from: &AgentId, to: &AgentId) -> Result<(), Vec<AgentId>> {
        if let Some(mut chain) = self.path(to, from) {
            chain.insert(0, from.clone());
            return Err(chain);
        }
        *self.waits.entry(from.clone()).or_default().entry(to.clone()).or_default() += 1;
        Ok(())
    }

    pub fn end_waiting(&mut self, from: &AgentId, to: &AgentId) {
        let awaited = self.waits.get_mut(from).expect("a wait ends after it started");
        let count = awaited.get_mut(to).expect("a wait ends after it started");
        *count -= 1;
        if *count == 0 {
            awaited.remove(to);
        }
        if awaited.is_empty() {
            self.waits.remove(from);
        }
    }

    /// Refuses new agents from now on.
    pub fn stop(&mut self) {
        self.stopping = true;
    }

    pub fn is_stopping(&self) -> bool {
        self.stopping
    }

    /// Who waits along the way from `from` to `to`, both included.
    fn path(&self, from: &AgentId, to: &AgentId) -> Option<Vec<AgentId>> {
        let mut came_from: BTreeMap<&AgentId, Option<&AgentId>> = BTreeMap::from([(from, None)]);
        let mut open = vec![from];
        while let Some(id) = open.pop() {
            if id == to {
                let mut chain: Vec<AgentId> =
                    std::iter::successors(Some(id), |id| came_from[id]).cloned().collect();
                chain.reverse();
                return Some(chain);
            }
            for next in self.waits.get(id).into_iter().flat_map(BTreeMap::keys) {
                came_from.entry(next).or_insert_with(|| {
                    open.push(next);
                    Some(id)
                });
            }
        }
        None
    }

    fn descendants_deepest_first(&self, id: &AgentId) -> Vec<AgentId> {
        let mut levels: Vec<Vec<AgentId>> = vec![vec![id.clone()]];
        while let Some(last) = levels.last().filter(|last| !last.is_empty()) {
            let below = last.iter().filter_map(|id| self.entry(id));
            let below = below.flat_map(|entry| entry.children.iter().cloned()).collect();
            levels.push(below);
        }
        levels.into_iter().skip(1).rev().flatten().collect()
    }

    fn entry(&self, id: &AgentId) -> Option<&Entry<A>> {
        self.by_id.get(id).map(|number| &self.agents[number])
    }

    fn entry_mut(&mut self, id: &AgentId) -> Option<&mut Entry<A>> {
        let number = self.by_id.get(id)?;
        self.agents.get_mut(number)
    }

    fn present(&self, id: &AgentId) -> Option<&Entry<A>> {
        self.entry(id).filter(|entry| !entry.leaving)
    }

    fn present_mut(&mut self, id: &AgentId) -> Option<&mut Entry<A>> {
        self.entry_mut(id).filter(|entry| !entry.leaving)
    }
}

impl<A: Clone> Entry<A> {
    fn listed(&self) -> Listed<A> {
        Listed {
            agent: self.agent.clone(),
            family: Family { parent: self.parent.clone(), child_count: self.children.len() },
        }
    }
}

#[cfg(test)]
#[path = "registry_tests.rs"]
mod tests;
