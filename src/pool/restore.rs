//! Bringing back agents that are only on disk: one at a time, each after those above it. What an agent
//! may do is decided anew by today's configuration, from what it was created with.

use std::sync::Arc;

use super::Pool;
use super::create::Draft;
use super::permissions::granted;
use crate::agent::{AgentHandle, Facts, Kit, Layered, Past, Remembered, summary_message};
use crate::event::What;
use crate::id::AgentId;
use crate::policy::{Grant, Permissions, PolicyError, ceiling};
use crate::provider::ModelError;
use crate::store::{AgentNumber, Loaded, Opening, StoreError, Write};

#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    #[error("it cannot be read")]
    Storage {
        #[source]
        source: StoreError,
    },
    #[error("it is not on record")]
    Missing,
    #[error("its record cannot be understood")]
    Unreadable,
    #[error("{source}")]
    Model { source: ModelError },
    #[error("{source}")]
    Policy { source: PolicyError },
    #[error("it was destroyed at this moment")]
    Destroyed,
    #[error("the server is shutting down")]
    Stopping,
}

impl Pool {
    /// The agent of this id, brought back from disk if it is there only; `None` where there is none.
    pub async fn find(self: &Arc<Self>, id: &AgentId) -> Result<Option<AgentHandle>, RestoreError> {
        self.settled(id).await;
        let (agent, is_dormant) = {
            let registry = self.registry();
            (registry.get(id), !registry.dormant_line(id).is_empty())
        };
        if agent.is_some() || !is_dormant {
            return Ok(agent);
        }
        let (pool, id) = (Arc::clone(self), id.clone());
        // What has begun is finished even if the caller goes away.
        let restored = tokio::spawn(async move { pool.restore(&id).await });
        restored.await.expect("restoring an agent does not panic")
    }

    /// Brings back every agent that is on disk; tells which could not be.
    pub async fn restore_all(self: &Arc<Self>) -> Vec<(AgentId, RestoreError)> {
        let mut failed = Vec::new();
        let dormant = self.registry().dormant();
        for id in dormant {
            if let Err(error) = self.find(&id).await {
                failed.push((id, error));
            }
        }
        failed
    }

    async fn restore(&self, id: &AgentId) -> Result<Option<AgentHandle>, RestoreError> {
        let _turn = self.restoring.acquire().await.expect("this semaphore is never closed");
        if self.is_stopping() {
            return Err(RestoreError::Stopping);
        }
        let _place = self.families.acquire().await.expect("this semaphore is never closed");
        // Somebody else may have brought some of them back meanwhile.
        let line = self.registry().dormant_line(id);
        for number in line {
            self.restore_one(number).await?;
        }
        Ok(self.registry().get(id))
    }

    async fn restore_one(&self, number: AgentNumber) -> Result<(), RestoreError> {
        let loaded = self.shared.store.load(number, self.shared.in_memory_max).await;
        let loaded = loaded.map_err(|source| RestoreError::Storage { source })?;
        let loaded = loaded.ok_or(RestoreError::Missing)?;
        let parent = self.registry().parent_agent(number);
        let (facts, kit) = self.remade(number, &loaded, parent.as_ref())?;
        let id = kit.id.clone();
        let parent_agent_id = parent.map(|parent| parent.id());
        let restored = Write::Event(self.event(&id, What::AgentRestored { parent_agent_id }));
        let mut writes = vec![Write::AgentRestored { number }, restored];
        let granted = granted(&kit.permissions);
        if granted.ceiling != loaded.record.recipe.ceiling {
            // Its parent may do something else than when that was written.
            writes.push(Write::PermissionsSet { agent: number, granted: Box::new(granted) });
        }
        let committed = self.shared.store.commit(writes).await;
        committed.map_err(|source| RestoreError::Storage { source })?;
        let opening = loaded.opening.map(|opening| match opening {
            Opening::Summary(summary) => Arc::new(summary_message(&summary)),
            Opening::First(message) => message,
        });
        let past = Past {
            conversation: Remembered {
                total: usize::try_from(loaded.message_count).expect("counts fit"),
                opening,
                newest: loaded.messages,
            },
            requests: loaded.requests,
            standing: loaded.standing,
        };
        let agent = AgentHandle::start(facts, kit, past, Arc::clone(&self.shared));
        if !self.registry().arrive(number, agent) {
            return Err(RestoreError::Destroyed);
        }
        tracing::debug!(agent = %id, "restored");
        Ok(())
    }

    /// The agent as today's configuration makes it: never more than that and its parent allow, and where
    /// there is no parent any more, never more than it last did.
    fn remade(
        &self,
        number: AgentNumber,
        loaded: &Loaded,
        parent: Option<&AgentHandle>,
    ) -> Result<(Facts, Kit), RestoreError> {
        let (record, recipe) = (&loaded.record, &loaded.record.recipe);
        let policy = |source| RestoreError::Policy { source };
        let preset = self.presets.get(&recipe.preset).map_err(policy)?;
        let kept = || recipe.ceiling.clone().map(Arc::new);
        let ceiling = parent.map(Self::ceiling_of).or_else(kept);
        match &ceiling {
            Some(ceiling) => ceiling::again(ceiling, record.depth),
            None => ceiling::root(preset, self.ground.yolo),
        }
        .map_err(|refusal| policy(refusal.into()))?;
        let model = self.models.resolve(Some(&recipe.model));
        let model = model.map_err(|source| RestoreError::Model { source })?;
        let cwd = recipe.cwd.clone();
        let mut grant = Grant::new(Arc::clone(preset), cwd.clone(), recipe.write_paths.clone());
        grant.root = recipe.root.clone().unwrap_or(cwd);
        grant.disabled_tools.extend(recipe.disabled_tools.iter().cloned());
        grant.enabled_tools.extend(recipe.enabled_tools.iter().cloned());
        grant.disabled_tools.retain(|tool| !recipe.enabled_tools.contains(tool));
        grant.allowances = recipe.session_allowances.clone().unwrap_or_default();
        let created_at = record.created_at.parse().map_err(|_| RestoreError::Unreadable)?;
        let draft = Draft {
            depth: record.depth,
            permissions: Permissions::new(grant, ceiling, &self.closed),
            prompt: Layered {
                text: Arc::clone(&recipe.system_prompt),
                path: recipe.system_prompt_path.clone(),
            },
        };
        Ok(self.made((number, record.id.clone()), created_at, draft, model))
    }
}
