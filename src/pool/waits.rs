//! Which agent waits for which, so that none comes to wait for itself. Pure bookkeeping.

use std::collections::BTreeMap;

use crate::id::AgentId;
use crate::policy::{Reason, Refusal};

/// Somebody would wait for itself: through these, from it back to it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the send would wait for itself: {}", names(chain))]
pub struct Deadlock {
    pub chain: Vec<AgentId>,
}

impl Deadlock {
    pub fn refusal(&self) -> Refusal {
        Refusal { reason: Reason::WouldDeadlock, message: self.to_string() }
    }
}

fn names(chain: &[AgentId]) -> String {
    chain.iter().map(AgentId::as_str).collect::<Vec<_>>().join(" → ")
}

#[derive(Debug, Default)]
pub struct Waits {
    /// Waiting agent → awaited agents, with the number of such waits.
    waits: BTreeMap<AgentId, BTreeMap<AgentId, usize>>,
}

impl Waits {
    /// Notes that `from` waits for `to`, unless it would wait for itself.
    pub fn start(&mut self, from: &AgentId, to: &AgentId) -> Result<(), Deadlock> {
        if let Some(mut chain) = self.path(to, from) {
            chain.insert(0, from.clone());
            return Err(Deadlock { chain });
        }
        *self.waits.entry(from.clone()).or_default().entry(to.clone()).or_default() += 1;
        Ok(())
    }

    pub fn end(&mut self, from: &AgentId, to: &AgentId) {
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_that_closes_a_circle_is_refused_with_its_chain() {
        let mut waits = Waits::default();
        let [a, b, c] = ["a", "b", "c"].map(|name| AgentId::parse(name).unwrap());
        assert_eq!(waits.start(&a, &b), Ok(()));
        assert_eq!(waits.start(&b, &c), Ok(()));
        assert_eq!(waits.start(&b, &c), Ok(()));
        let chain = vec![c.clone(), a.clone(), b.clone(), c.clone()];
        assert_eq!(waits.start(&c, &a), Err(Deadlock { chain }));
        let chain = vec![a.clone(), a.clone()];
        assert_eq!(waits.start(&a, &a), Err(Deadlock { chain }));
        waits.end(&b, &c);
        assert!(waits.start(&c, &a).is_err(), "the second wait still holds");
        waits.end(&b, &c);
        assert_eq!(waits.start(&c, &a), Ok(()));
    }
}
