//! Which agent waits for which, so that none comes to wait for itself. Pure bookkeeping, by numbers: an
//! agent that is waited for can get another id.

use std::collections::BTreeMap;

use crate::id::AgentId;
use crate::policy::{Reason, Refusal};
use crate::store::AgentNumber;

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
    waits: BTreeMap<AgentNumber, BTreeMap<AgentNumber, usize>>,
}

impl Waits {
    /// Notes that `from` waits for `to`, unless it would wait for itself: through these, from it back
    /// to it.
    pub fn start(&mut self, from: AgentNumber, to: AgentNumber) -> Result<(), Vec<AgentNumber>> {
        if let Some(mut chain) = self.path(to, from) {
            chain.insert(0, from);
            return Err(chain);
        }
        *self.waits.entry(from).or_default().entry(to).or_default() += 1;
        Ok(())
    }

    pub fn end(&mut self, from: AgentNumber, to: AgentNumber) {
        let awaited = self.waits.get_mut(&from).expect("a wait ends after it started");
        let count = awaited.get_mut(&to).expect("a wait ends after it started");
        *count -= 1;
        if *count == 0 {
            awaited.remove(&to);
        }
        if awaited.is_empty() {
            self.waits.remove(&from);
        }
    }

    /// Who waits along the way from `from` to `to`, both included.
    fn path(&self, from: AgentNumber, to: AgentNumber) -> Option<Vec<AgentNumber>> {
        let mut came_from: BTreeMap<AgentNumber, Option<AgentNumber>> =
            BTreeMap::from([(from, None)]);
        let mut open = vec![from];
        while let Some(agent) = open.pop() {
            if agent == to {
                let mut chain: Vec<AgentNumber> =
                    std::iter::successors(Some(agent), |agent| came_from[agent]).collect();
                chain.reverse();
                return Some(chain);
            }
            for next in self.waits.get(&agent).into_iter().flat_map(BTreeMap::keys).copied() {
                came_from.entry(next).or_insert_with(|| {
                    open.push(next);
                    Some(agent)
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
        let [a, b, c] = [1, 2, 3];
        assert_eq!(waits.start(a, b), Ok(()));
        assert_eq!(waits.start(b, c), Ok(()));
        assert_eq!(waits.start(b, c), Ok(()));
        assert_eq!(waits.start(c, a), Err(vec![c, a, b, c]));
        assert_eq!(waits.start(a, a), Err(vec![a, a]));
        waits.end(b, c);
        assert!(waits.start(c, a).is_err(), "the second wait still holds");
        waits.end(b, c);
        assert_eq!(waits.start(c, a), Ok(()));
    }
}
