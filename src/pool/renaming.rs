//! Which agents are getting another id. Both ids are taken until that is done or given up.

use super::registry::{Presence, Registry};
use crate::id::AgentId;
use crate::store::AgentNumber;

/// An agent that is to have another id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renamed<A> {
    pub number: AgentNumber,
    /// `None` of one that is only on disk.
    pub agent: Option<A>,
    pub parent: Option<AgentId>,
    /// Those that are there, in memory or dormant.
    pub children: Vec<AgentId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotRenamed {
    Unknown,
    Taken,
    Stopping,
}

impl<A: Clone> Registry<A> {
    /// Takes an id for an agent that has another. It keeps that until [`Registry::end_renaming`].
    pub fn start_renaming(
        &mut self,
        from: &AgentId,
        to: &AgentId,
    ) -> Result<Renamed<A>, NotRenamed> {
        if self.is_stopping() {
            return Err(NotRenamed::Stopping);
        }
        let number = self.number(from).ok_or(NotRenamed::Unknown)?;
        let entry = &self.agents[&number];
        let agent = match &entry.presence {
            Presence::Here(agent) => Some(agent.clone()),
            Presence::Dormant => None,
            Presence::Arriving | Presence::Leaving(_) => return Err(NotRenamed::Unknown),
        };
        if !self.is_free(to) {
            return Err(NotRenamed::Taken);
        }
        let children = entry.children.iter().map(|child| &self.agents[child]);
        let children = children.filter(|child| child.is_there());
        let renamed = Renamed {
            number,
            agent,
            parent: self.parent_of(entry),
            children: children.map(|child| child.id.clone()).collect(),
        };
        self.changing.extend([from.clone(), to.clone()]);
        Ok(renamed)
    }

    /// Whether an agent is getting this id, or another than this.
    pub fn is_changing(&self, id: &AgentId) -> bool {
        self.changing.contains(id)
    }

    /// The agent has the new id.
    pub fn rename(&mut self, number: AgentNumber, to: &AgentId) {
        let entry = self.agents.get_mut(&number).expect("an agent stays while its id changes");
        let from = std::mem::replace(&mut entry.id, to.clone());
        self.by_id.remove(&from);
        self.by_id.insert(to.clone(), number);
    }

    /// Both ids are as free as they look from now on.
    pub fn end_renaming(&mut self, from: &AgentId, to: &AgentId) {
        self.changing.remove(from);
        self.changing.remove(to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::registry::tests::{id, registry_of};

    fn team() -> Registry<&'static str> {
        registry_of(&[("boss", None), (".1", Some("boss")), ("child", Some(".1"))])
    }

    #[test]
    fn a_family_goes_along_and_the_old_id_is_free() {
        let mut registry = team();
        let renamed = registry.start_renaming(&id(".1"), &id("scout")).unwrap();
        let (agent, parent) = (Some(".1"), Some(id("boss")));
        let expected = Renamed { number: 2, agent, parent, children: vec![id("child")] };
        assert_eq!(renamed, expected);
        registry.rename(2, &id("scout"));
        registry.end_renaming(&id(".1"), &id("scout"));
        assert_eq!(registry.parent(&id("child")), Some(id("scout")));
        assert!(registry.is_within(&id("scout"), &id("boss")));
        assert_eq!((registry.get(&id("scout")), registry.get(&id(".1"))), (Some(".1"), None));
        assert_eq!(registry.free_temp_id(), id(".1"));
    }

    #[test]
    fn both_ids_are_taken_until_it_is_over_and_then_only_the_one_that_it_has() {
        let mut registry = team();
        registry.start_renaming(&id(".1"), &id("scout")).unwrap();
        assert!(registry.is_changing(&id("scout")) && registry.is_changing(&id(".1")));
        assert!(!registry.is_free(&id("scout")) && registry.get(&id("scout")).is_none());
        let second = registry.start_renaming(&id("boss"), &id("scout"));
        assert_eq!(second, Err(NotRenamed::Taken));
        registry.end_renaming(&id(".1"), &id("scout"));
        assert!(registry.is_free(&id("scout")) && !registry.is_free(&id(".1")));
        assert_eq!(registry.start_renaming(&id("x"), &id("y")), Err(NotRenamed::Unknown));
        assert_eq!(registry.start_renaming(&id(".1"), &id("boss")), Err(NotRenamed::Taken));
        registry.stop();
        assert_eq!(registry.start_renaming(&id(".1"), &id("y")), Err(NotRenamed::Stopping));
    }
}
