//! Which agents come for others of the same id. The id is never free in between: it is that of the one until
//! the one is gone, and then that of the other.

use super::registry::{Children, Found, Leaving, Refused, Registry};
use crate::id::AgentId;
use crate::store::AgentNumber;

/// An agent that comes for another, and for all below that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replacing<A> {
    pub number: AgentNumber,
    /// In the order in which they are to end; empty where there is nobody any more.
    pub leaving: Vec<Leaving<A>>,
}

impl<A> Replacing<A> {
    pub fn gone(&self) -> Vec<AgentNumber> {
        self.leaving.iter().map(|leaving| leaving.number).collect()
    }
}

impl<A: Clone> Registry<A> {
    /// Takes a number for an agent that is to have this id, and hides whoever has it.
    pub fn start_replacing(
        &mut self,
        id: &AgentId,
        parent: Option<&Found<A>>,
    ) -> Result<Replacing<A>, Refused> {
        if self.is_stopping() {
            return Err(Refused::Stopping);
        }
        let leaving = self.start_leaving(id, Children::Destroy);
        // Whoever is just being made, destroyed or renamed is not replaced.
        if leaving.is_empty() && !self.is_free(id) {
            return Err(Refused::Taken);
        }
        match self.reserve_beside(id, parent) {
            Ok(number) => Ok(Replacing { number, leaving }),
            Err(refused) => {
                self.stay_all(&leaving);
                Err(refused)
            }
        }
    }

    /// Takes back [`Registry::start_replacing`].
    pub fn give_up_replacing(&mut self, replacing: &Replacing<A>) {
        self.remove(replacing.number);
        self.stay_all(&replacing.leaving);
    }

    fn stay_all(&mut self, leaving: &[Leaving<A>]) {
        for Leaving { number, .. } in leaving {
            self.stay(*number);
        }
    }

    /// The id is not this agent's any more.
    pub(super) fn let_go(&mut self, id: &AgentId, number: AgentNumber) {
        if self.coming.get(id) == Some(&number) {
            self.coming.remove(id);
            return;
        }
        self.by_id.remove(id);
        if let Some(next) = self.coming.remove(id) {
            self.by_id.insert(id.clone(), next);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::registry::tests::{id, registry_of};

    fn team() -> Registry<&'static str> {
        registry_of(&[("boss", None), ("scout", Some("boss")), ("child", Some("scout"))])
    }

    #[test]
    fn an_id_is_never_free_while_one_comes_for_another() {
        let mut registry = team();
        let boss = registry.find(&id("boss"));
        let replacing = registry.start_replacing(&id("scout"), boss.as_ref()).unwrap();
        assert_eq!((replacing.number, replacing.gone()), (4, vec![2, 3]));
        assert!(!registry.is_free(&id("scout")) && registry.get(&id("scout")).is_none());
        assert_eq!(registry.start_replacing(&id("scout"), None), Err(Refused::Taken));
        for gone in replacing.gone() {
            registry.remove(gone);
        }
        assert!(!registry.is_free(&id("scout")) && registry.is_free(&id("child")));
        assert!(registry.arrive(4, "another"));
        assert_eq!(registry.get(&id("scout")), Some("another"));
        assert_eq!(registry.parent(&id("scout")), Some(id("boss")));
    }

    #[test]
    fn who_was_to_go_is_there_again_when_nobody_comes() {
        let mut registry = team();
        let replacing = registry.start_replacing(&id("scout"), None).unwrap();
        registry.give_up_replacing(&replacing);
        assert_eq!(registry.get(&id("scout")), Some("scout"));
        assert_eq!(registry.parent(&id("child")), Some(id("scout")));
        registry.start_leaving(&id("scout"), Children::Destroy);
        registry.remove(3);
        registry.remove(2);
        assert!(registry.is_free(&id("scout")));
    }

    #[test]
    fn nobody_comes_for_its_own_parent_or_for_one_that_is_on_its_way() {
        let mut registry = team();
        let scout = registry.find(&id("scout"));
        let refused = registry.start_replacing(&id("boss"), scout.as_ref());
        assert_eq!(refused, Err(Refused::NoParent));
        assert!(registry.get(&id("boss")).is_some() && registry.get(&id("child")).is_some());
        registry.reserve(&id("new"), None).unwrap();
        assert_eq!(registry.start_replacing(&id("new"), None), Err(Refused::Taken));
        let free = registry.start_replacing(&id("free"), None).unwrap();
        assert!(free.leaving.is_empty() && registry.arrive(free.number, "free"));
    }
}
