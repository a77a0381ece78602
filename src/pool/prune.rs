//! The end of what is left of agents that are gone: temporary ones whose server ended, and those that were
//! destroyed. A little at a time, so that agents go on meanwhile.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::SignedDuration;

use super::Pool;
use crate::event::iso;
use crate::id::AgentId;
use crate::limits::{PRUNED_AGENTS_MAX, PRUNED_AGENTS_PAGE, PRUNED_DAYS_MAX};
use crate::store::{AgentNumber, GoneAgent, StoreError};

/// Whether something is done, or only told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pruning {
    Real,
    /// Tells what would be removed.
    Dry,
}

/// Whether the logs of an id are still to be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Logs {
    Its,
    Seen,
}

/// What was removed, or would be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// In the order in which they were created; an id may have been given more than once.
    pub removed: Vec<AgentId>,
    /// Of what was kept of them, and of their logs.
    pub bytes: u64,
}

impl Pool {
    /// Removes what is left of agents that are gone for so many days.
    pub async fn prune(
        self: &Arc<Self>,
        older_than_days: u64,
        pruning: Pruning,
    ) -> Result<Pruned, StoreError> {
        let pool = Arc::clone(self);
        // What has begun is finished even if the caller goes away: logs go with the last of their rows.
        let pruned = tokio::spawn(async move { pool.prune_before(older_than_days, pruning).await });
        pruned.await.expect("removing what is left of agents does not panic")
    }

    async fn prune_before(&self, days: u64, pruning: Pruning) -> Result<Pruned, StoreError> {
        let _alone = self.pruning.acquire().await.expect("this semaphore is never closed");
        let hours = i64::try_from(days.min(PRUNED_DAYS_MAX) * 24).expect("it is bounded");
        let age = SignedDuration::from_hours(hours);
        // Where there is no such time nothing is older.
        let Ok(before) = self.shared.world.clock.now().checked_sub(age) else {
            return Ok(Pruned::default());
        };
        let before = iso(before);
        let mut pruned = Pruned::default();
        let (mut last, mut seen): (AgentNumber, _) = (0, BTreeSet::new());
        while pruned.removed.len() < PRUNED_AGENTS_MAX {
            let page = self.shared.store.gone(&before, last, PRUNED_AGENTS_PAGE).await?;
            let Some(end) = page.last() else { break };
            last = end.number;
            for gone in page {
                // Several that had an id have one directory.
                let logs = if seen.insert(gone.id.clone()) { Logs::Its } else { Logs::Seen };
                pruned.bytes += self.prune_one(&gone, logs, pruning).await?;
                pruned.removed.push(gone.id);
            }
        }
        if pruning == Pruning::Real {
            tracing::info!(agents = pruned.removed.len(), bytes = pruned.bytes, "pruned");
        }
        Ok(pruned)
    }

    async fn prune_one(
        &self,
        gone: &GoneAgent,
        logs: Logs,
        pruning: Pruning,
    ) -> Result<u64, StoreError> {
        let mut bytes = self.shared.store.bytes_left(gone.number).await?;
        if pruning == Pruning::Real {
            self.shared.store.prune(gone.number).await?;
        }
        if logs == Logs::Its && !gone.is_shared && self.is_nobodys(&gone.id) {
            bytes += match pruning {
                Pruning::Real => self.shared.logs.discard(&gone.id).await,
                Pruning::Dry => self.shared.logs.bytes(&gone.id).await,
            };
        }
        Ok(bytes)
    }

    fn is_nobodys(&self, id: &AgentId) -> bool {
        self.registry().is_free(id)
    }
}
