//! A session in place of an agent that runs, and of all below that. All checks come first; then the end of the
//! ones and the beginning of the other are one commit, so a disk that fails leaves either, and never neither.

use super::admit::{Incoming, no_budget, no_place};
use crate::agent::AgentHandle;
use crate::id::AgentId;
use crate::policy::budget::Limits;
use crate::pool::registry::Found;
use crate::pool::replacing::Replacing;
use crate::pool::{Pool, RestoreError};
use crate::store::Write;

impl Pool {
    /// Makes an agent from a session; whoever has its id goes for it. The desk of its name is the caller's.
    pub(super) async fn replace(&self, incoming: Incoming) -> Result<AgentHandle, RestoreError> {
        // An agent that is just being restored is replaced afterwards.
        let turn = self.restoring.acquire().await.expect("this semaphore is never closed");
        // What its parent may do stays as it is until the child is there.
        let _place = self.families.acquire().await.expect("this semaphore is never closed");
        let found = self.found_parent(&incoming.file);
        let parent = incoming.parent(found.as_ref())?;
        let record = self.record_of(&incoming, parent).await?;
        let (replacing, budget) = self.take_over(&incoming.id, parent)?;
        drop(turn);
        let number = replacing.number;
        let made = self.remade(number, &record, parent.map(|parent| &parent.agent));
        let (facts, kit) = made.inspect_err(|_| {
            self.registry().give_up_replacing(&replacing);
            self.shared.accounts.close(number);
        })?;
        let arrival = self.arrival(number, incoming, record, budget);
        let ended = self.end(replacing.leaving, arrival).await;
        ended.map_err(|source| {
            self.forget(number);
            RestoreError::Storage { source }
        })?;
        self.begin(facts, kit).await
    }

    fn take_over(
        &self,
        id: &AgentId,
        parent: Option<&Found<AgentHandle>>,
    ) -> Result<(Replacing<AgentHandle>, Option<Write>), RestoreError> {
        let mut registry = self.registry();
        let replacing = registry.start_replacing(id, parent);
        let replacing = replacing.map_err(|refused| no_place(refused, id))?;
        let who = (replacing.number, parent.map(|parent| parent.agent.facts().number));
        let (gone, now) = (replacing.gone(), self.shared.world.clock.now());
        let accounts = &self.shared.accounts;
        match accounts.open_in_place_of(&gone, who, &Limits::default(), now) {
            Ok(budget) => Ok((replacing, budget)),
            Err(exceeded) => {
                registry.give_up_replacing(&replacing);
                Err(no_budget(exceeded))
            }
        }
    }
}
