//! Another id for an agent, in memory or dormant: its children, streams, events and logs go along, and the
//! old id is free. Nobody is created, restored or destroyed meanwhile, and nobody's permissions change:
//! each of these names agents by their ids.

use serde_json::{Map, json};

use super::Pool;
use super::renaming::{NotRenamed, Renamed};
use crate::agent::{self, AgentHandle, Renaming};
use crate::causes::told;
use crate::event::{Event, What};
use crate::id::AgentId;
use crate::limits::FAMILIES_AT_ONCE_MAX;
use crate::store::{AgentNumber, Exported, Write};

/// What becomes of the session file of an agent that gets another id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Export {
    /// It follows the agent if it did before.
    AsBefore,
    FromNowOn,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RenameError {
    #[error("Agent not found: {id}")]
    Unknown { id: AgentId },
    #[error("Agent already exists: {id}")]
    Taken { id: AgentId },
    #[error("{id} is in a turn: it gets another id between turns only; try again later")]
    Busy { id: AgentId },
    #[error("the server is shutting down")]
    Stopping,
    #[error("the new id could not be written down")]
    Unwritten,
}

impl Pool {
    /// Gives the agent `from` the id `to`, which is not a temporary one, by one commit; its session file
    /// follows it from then on if that is asked for. To be finished even if the caller goes away: both
    /// ids would be taken for ever.
    pub(super) async fn rename(
        &self,
        (from, to): (&AgentId, &AgentId),
        export: Export,
    ) -> Result<AgentNumber, RenameError> {
        let _turn = self.restoring.acquire().await.expect("this semaphore is never closed");
        let places = u32::try_from(FAMILIES_AT_ONCE_MAX).expect("they are few");
        let _alone = self.families.acquire_many(places).await.expect("it is never closed");
        let renamed =
            self.registry().start_renaming(from, to).map_err(|refused| match refused {
                NotRenamed::Unknown => RenameError::Unknown { id: from.clone() },
                NotRenamed::Taken => RenameError::Taken { id: to.clone() },
                NotRenamed::Stopping => RenameError::Stopping,
            })?;
        let number = renamed.number;
        let written = self.write_name(renamed, (from, to), export).await;
        let mut registry = self.registry();
        if written.is_ok() {
            registry.rename(number, to);
            if export == Export::FromNowOn {
                registry.set_exported(number, Exported::Yes);
            }
        }
        registry.end_renaming(from, to);
        drop(registry);
        written?;
        tracing::info!(agent = %to, previously = %from, "renamed");
        Ok(number)
    }

    async fn write_name(
        &self,
        renamed: Renamed<AgentHandle>,
        (from, to): (&AgentId, &AgentId),
        export: Export,
    ) -> Result<(), RenameError> {
        let mut writes = self.name_writes(&renamed, from, to);
        if export == Export::FromNowOn {
            let (agent, exported) = (renamed.number, Exported::Yes);
            writes.push(Write::Exported { agent, exported });
        }
        let Some(agent) = renamed.agent else {
            return self.shared.store.commit(writes).await.map_err(|error| {
                tracing::warn!(agent = %from, error = told(&error), "it keeps its id");
                RenameError::Unwritten
            });
        };
        let given = agent.rename(Renaming { id: to.clone(), writes }).await;
        given.map_err(|refused| match refused {
            agent::NotRenamed::Busy => RenameError::Busy { id: from.clone() },
            agent::NotRenamed::Retiring => RenameError::Stopping,
            agent::NotRenamed::Storage => RenameError::Unwritten,
            agent::NotRenamed::Gone => RenameError::Unknown { id: from.clone() },
        })
    }

    fn name_writes(
        &self,
        renamed: &Renamed<AgentHandle>,
        from: &AgentId,
        to: &AgentId,
    ) -> Vec<Write> {
        let now = self.shared.world.clock.now();
        let mut changed = Map::from_iter([("agent_id".to_owned(), json!(to))]);
        if from.is_temp() {
            changed.insert("is_temp".to_owned(), json!(false));
        }
        let what = What::AgentUpdated {
            parent_agent_id: renamed.parent.clone(),
            changed,
            previous_agent_id: Some(from.clone()),
        };
        let own = [
            Write::AgentRenamed { number: renamed.number, id: to.clone() },
            Write::Event(Event::new(to, now, what)),
        ];
        let of_children = renamed.children.iter().map(|child| {
            let what = What::AgentUpdated {
                parent_agent_id: Some(to.clone()),
                changed: Map::from_iter([("parent_agent_id".to_owned(), json!(to))]),
                previous_agent_id: None,
            };
            Write::Event(Event::new(child, now, what))
        });
        own.into_iter().chain(of_children).collect()
    }

    /// Waits until the agent that has this id, or is to have it, is not just getting another one.
    pub(super) async fn settled(&self, id: &AgentId) {
        while self.registry().is_changing(id) {
            // Whoever gives an id keeps this until that is done.
            let _turn = self.restoring.acquire().await.expect("this semaphore is never closed");
        }
    }
}
