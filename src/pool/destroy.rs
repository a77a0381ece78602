//! Ending agents: what they run is cancelled, then all of them are gone by one commit, or none.

use std::sync::Arc;

use super::registry::Leaving;
use super::{Children, Pool};
use crate::agent::{AgentHandle, CancelReason, Retire};
use crate::event::What;
use crate::id::AgentId;
use crate::store::{AgentNumber, StoreError, Write};

impl Pool {
    /// Ends an agent; returns all that ended with it, in that order. Empty where there is none.
    /// What has begun is finished even if the caller goes away: half-destroyed agents would keep
    /// their ids for ever.
    pub async fn destroy(
        self: &Arc<Self>,
        id: &AgentId,
        children: Children,
    ) -> Result<Vec<AgentId>, StoreError> {
        if children == Children::Keep {
            // Those that stay keep the ceiling that their parent has now.
            let dormant = self.registry().dormant_below(id);
            for id in dormant {
                let _ = self.find(&id).await;
            }
        }
        let (leaving, place) = {
            // An agent that is just being restored is destroyed afterwards.
            let _turn = self.restoring.acquire().await.expect("this semaphore is never closed");
            // Nobody's permissions change after its end, and nobody's id until then.
            let place = Arc::clone(&self.families).acquire_owned().await;
            let place = place.expect("this semaphore is never closed");
            (self.registry().start_leaving(id, children), place)
        };
        if leaving.is_empty() {
            return Ok(Vec::new());
        }
        let pool = Arc::clone(self);
        let ended = tokio::spawn(async move {
            let _place = place;
            let ended = pool.end(leaving, Vec::new()).await?;
            // It may have been the last one that had not asked for the end.
            pool.stop_if_all_asked();
            Ok(ended)
        });
        ended.await.expect("ending an agent does not panic")
    }

    /// Ends agents that nobody finds any more; what is to be written with their end is.
    pub(super) async fn end(
        &self,
        leaving: Vec<Leaving<AgentHandle>>,
        more: Vec<Write>,
    ) -> Result<Vec<AgentId>, StoreError> {
        let agents = || leaving.iter().filter_map(|leaving| leaving.agent.as_ref());
        let mut ended = Ok(());
        for agent in agents() {
            ended = ended.and(end_work(agent).await);
        }
        let written = match ended {
            Ok(()) => {
                let mut writes = self.destruction(&leaving);
                writes.extend(more);
                self.shared.store.commit(writes).await
            }
            // Its turns would never be told to have ended.
            Err(error) => Err(error),
        };
        if let Err(error) = written {
            for agent in agents() {
                agent.resume().await;
            }
            let mut registry = self.registry();
            for Leaving { number, .. } in &leaving {
                registry.stay(*number);
            }
            return Err(error);
        }
        for agent in agents() {
            // All that it did is on record.
            let _ = agent.retire(Retire::Leave).await;
        }
        {
            let mut registry = self.registry();
            for Leaving { number, .. } in &leaving {
                registry.remove(*number);
                self.shared.accounts.close(*number);
            }
        }
        let gone: Vec<AgentNumber> = leaving.iter().map(|leaving| leaving.number).collect();
        self.forget_last(&gone).await;
        let destroyed: Vec<AgentId> = leaving.into_iter().map(|leaving| leaving.id).collect();
        tracing::debug!(?destroyed, "destroyed");
        Ok(destroyed)
    }

    fn destruction(&self, leaving: &[Leaving<AgentHandle>]) -> Vec<Write> {
        let writes = leaving.iter().flat_map(|Leaving { number, id, parent, .. }| {
            let what = What::AgentDestroyed { parent_agent_id: parent.clone() };
            // What the disk did not take of it before stays charged to those above it, too.
            let spent = self.shared.accounts.spent(*number);
            let destroyed = Write::AgentDestroyed { number: *number };
            [spent, Some(destroyed), Some(Write::Event(self.event(id, what)))].into_iter().flatten()
        });
        writes.collect()
    }
}

/// Ends what an agent runs. Says why that cannot be written, where it cannot.
async fn end_work(agent: &AgentHandle) -> Result<(), StoreError> {
    let how = Retire::CancelTurn(CancelReason::Destroyed);
    match agent.retire(how).await {
        Ok(()) => Ok(()),
        // It may be the end itself that failed, which was tried once.
        Err(_) => agent.retire(how).await,
    }
}
