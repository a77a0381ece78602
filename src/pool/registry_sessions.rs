//! What sessions need of the registry: who is only on disk, and whose file follows it.

use super::registry::{Presence, Registry};
use super::sessions::Targets;
use crate::agent::Followed;
use crate::id::AgentId;
use crate::store::{AgentNumber, Exported};

impl<A> Registry<A> {
    /// Notes whether an agent's session file follows it; of one that is gone there is nothing to note.
    pub fn set_exported(&mut self, number: AgentNumber, exported: Exported) {
        if let Some(entry) = self.agents.get_mut(&number) {
            entry.exported = exported;
            if exported == Exported::Yes {
                self.followed_at_all.note();
            }
        }
    }

    /// Whether an agent's session file follows it.
    pub fn exported(&self, number: AgentNumber) -> Exported {
        self.agents.get(&number).map_or(Exported::No, |entry| entry.exported)
    }

    pub fn last_session(&self) -> Option<AgentNumber> {
        self.last_session
    }

    pub fn set_last_session(&mut self, number: AgentNumber) {
        self.last_session = Some(number);
        self.followed_at_all.note();
    }

    pub fn clear_last_session(&mut self) {
        self.last_session = None;
    }

    /// The id of an agent that is only on disk.
    pub fn dormant_id(&self, number: AgentNumber) -> Option<AgentId> {
        let entry = self.agents.get(&number)?;
        matches!(entry.presence, Presence::Dormant).then(|| entry.id.clone())
    }

    /// The number of an agent that is only on disk.
    pub fn dormant_number(&self, id: &AgentId) -> Option<AgentNumber> {
        let number = *self.by_id.get(id)?;
        self.dormant_id(number).map(|_| number)
    }

    /// The id of an agent that is here or only on disk.
    pub fn id(&self, number: AgentNumber) -> Option<AgentId> {
        let entry = self.agents.get(&number)?;
        let is_there = matches!(entry.presence, Presence::Here(_) | Presence::Dormant);
        is_there.then(|| entry.id.clone())
    }

    /// All ids that are taken, sorted.
    pub fn ids(&self) -> Vec<AgentId> {
        self.by_id.keys().cloned().collect()
    }

    /// Leaves an agent that is on record to the next request to it.
    pub fn fall_asleep(&mut self, number: AgentNumber) {
        let entry = self.agents.get_mut(&number).expect("an agent arrives where it was reserved");
        if matches!(entry.presence, Presence::Arriving) {
            entry.presence = Presence::Dormant;
        }
    }

    /// The agents that are saved somewhere, whether or not they are here.
    pub fn followed(&self) -> Vec<AgentNumber> {
        let numbers = self.agents.keys().copied();
        numbers.filter(|number| self.targets_of(*number).is_some()).collect()
    }

    /// Where it is noted that there are any such agents.
    pub fn followed_at_all(&self) -> Followed {
        self.followed_at_all.clone()
    }

    /// Whether an agent is saved somewhere.
    pub fn is_followed(&self, number: AgentNumber) -> bool {
        self.targets_of(number).is_some()
    }

    fn targets_of(&self, number: AgentNumber) -> Option<Targets> {
        let own = self.agents.get(&number)?.exported;
        let is_last = self.last_session == Some(number);
        (own == Exported::Yes || is_last).then_some(Targets { own, is_last })
    }
}

impl<A: Clone> Registry<A> {
    /// An agent that is here, and where its session is to be written; `None` where it is not.
    pub fn targets(&self, number: AgentNumber) -> Option<(A, Targets)> {
        let targets = self.targets_of(number)?;
        Some((self.agents.get(&number)?.here()?.clone(), targets))
    }
}
