//! Bringing back agents that are only on disk: each after those above it, from its row or, where that is
//! older or there is none, from its session file. What an agent may do is decided anew by today's
//! configuration, from what it was created with.

use std::sync::Arc;

use super::Pool;
use super::create::{CreateError, Draft};
use super::permissions::granted;
use crate::agent::{AgentHandle, Facts, Kit, Layered, Past, Remembered, summary_message};
use crate::event::What;
use crate::id::AgentId;
use crate::policy::{Grant, Permissions, PolicyError, ceiling};
use crate::provider::ModelError;
use crate::session::SessionError;
use crate::store::{AgentNumber, AgentRecord, Loaded, Opening, StoreError, Write};

#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    #[error("it cannot be read")]
    Storage {
        #[source]
        source: StoreError,
    },
    #[error("{source}")]
    File { source: SessionError },
    #[error("it is not on record")]
    Missing,
    #[error("its record cannot be understood")]
    Unreadable,
    #[error("{source}")]
    Model { source: ModelError },
    #[error("{source}")]
    Policy { source: PolicyError },
    /// What its session says it should be.
    #[error("{source}")]
    Refused { source: CreateError },
    #[error(
        "its parent {id} is not there: load that first, or load this with a preset as an agent of its own"
    )]
    NoParent { id: AgentId },
    #[error("it was destroyed at this moment")]
    Destroyed,
    #[error("the server is shutting down")]
    Stopping,
}

impl From<CreateError> for RestoreError {
    fn from(source: CreateError) -> Self {
        Self::Refused { source }
    }
}

impl From<SessionError> for RestoreError {
    fn from(source: SessionError) -> Self {
        Self::File { source }
    }
}

impl Pool {
    /// The agent of this id, brought back from disk if it is there only; `None` where there is none.
    pub async fn find(self: &Arc<Self>, id: &AgentId) -> Result<Option<AgentHandle>, RestoreError> {
        self.settled(id).await;
        if let Some(agent) = self.agent(id) {
            return Ok(Some(agent));
        }
        let (pool, id) = (Arc::clone(self), id.clone());
        // What has begun is finished even if the caller goes away.
        let restored = tokio::spawn(async move {
            match pool.restore(&id).await? {
                Some(agent) => Ok(Some(agent)),
                None => pool.restore_file(&id).await,
            }
        });
        restored.await.expect("restoring an agent does not panic")
    }

    /// The agent of this id, brought back if it is on record; one that only has a file is left alone.
    pub async fn find_on_record(
        self: &Arc<Self>,
        id: &AgentId,
    ) -> Result<Option<AgentHandle>, RestoreError> {
        self.settled(id).await;
        let (agent, is_dormant) = {
            let registry = self.registry();
            (registry.get(id), !registry.dormant_line(id).is_empty())
        };
        if agent.is_some() || !is_dormant {
            return Ok(agent);
        }
        let (pool, id) = (Arc::clone(self), id.clone());
        let restored = tokio::spawn(async move { pool.restore(&id).await });
        restored.await.expect("restoring an agent does not panic")
    }

    /// Brings back every agent that is on record; tells which could not be.
    pub async fn restore_all(self: &Arc<Self>) -> Vec<(AgentId, RestoreError)> {
        let mut failed = Vec::new();
        let dormant = self.registry().dormant();
        for id in dormant {
            if let Err(error) = self.find_on_record(&id).await {
                failed.push((id, error));
            }
        }
        failed
    }

    /// Brings back an agent that is on record, after those above it.
    pub(super) async fn restore(&self, id: &AgentId) -> Result<Option<AgentHandle>, RestoreError> {
        loop {
            let first = self.registry().dormant_line(id).first().copied();
            let Some(number) = first else {
                return Ok(self.agent(id));
            };
            self.restore_in_turn(number).await?;
        }
    }

    /// Brings back one agent, unless somebody else did or it was destroyed meanwhile.
    async fn restore_in_turn(&self, number: AgentNumber) -> Result<(), RestoreError> {
        let Some(id) = self.registry().dormant_id(number) else {
            return Ok(());
        };
        let _desk = self.desk.at(&id).await;
        let _turn = self.restoring.acquire().await.expect("this semaphore is never closed");
        if self.is_stopping() {
            return Err(RestoreError::Stopping);
        }
        let _place = self.families.acquire().await.expect("this semaphore is never closed");
        if self.registry().dormant_id(number).as_ref() != Some(&id) {
            return Ok(());
        }
        match self.newer_file(number, &id).await? {
            Some(file) => self.restore_from_file(number, file).await,
            None => self.restore_one(number).await,
        }
    }

    async fn restore_one(&self, number: AgentNumber) -> Result<(), RestoreError> {
        let loaded = self.loaded(number).await?;
        let parent = self.registry().parent_agent(number);
        let (facts, kit) = self.remade(number, &loaded.record, parent.as_ref())?;
        let parent_agent_id = parent.map(|parent| parent.id());
        let told = self.event(&kit.id, What::AgentRestored { parent_agent_id });
        let mut writes = vec![Write::AgentRestored { number }, Write::Event(told)];
        let granted = granted(&kit.permissions);
        if granted.ceiling != loaded.record.recipe.ceiling {
            // Its parent may do something else than when that was written.
            writes.push(Write::PermissionsSet { agent: number, granted: Box::new(granted) });
        }
        let committed = self.shared.store.commit(writes).await;
        committed.map_err(|source| RestoreError::Storage { source })?;
        self.wake(facts, kit, loaded.into())
    }

    pub(super) async fn loaded(&self, number: AgentNumber) -> Result<Loaded, RestoreError> {
        let loaded = self.shared.store.load(number, self.shared.in_memory_max).await;
        loaded.map_err(|source| RestoreError::Storage { source })?.ok_or(RestoreError::Missing)
    }

    /// Starts an agent that was dormant and is on record as restored.
    pub(super) fn wake(&self, facts: Facts, kit: Kit, past: Past) -> Result<(), RestoreError> {
        let (number, id) = (facts.number, kit.id.clone());
        let agent = AgentHandle::start(facts, kit, past, Arc::clone(&self.shared));
        if !self.registry().arrive(number, agent) {
            return Err(RestoreError::Destroyed);
        }
        tracing::debug!(agent = %id, "restored");
        Ok(())
    }

    /// The agent as today's configuration makes it: never more than that and its parent allow, and where
    /// there is no parent any more, never more than it last did.
    pub(super) fn remade(
        &self,
        number: AgentNumber,
        record: &AgentRecord,
        parent: Option<&AgentHandle>,
    ) -> Result<(Facts, Kit), RestoreError> {
        let recipe = &record.recipe;
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

impl From<Loaded> for Past {
    fn from(loaded: Loaded) -> Self {
        let opening = loaded.opening.map(|opening| match opening {
            Opening::Summary(summary) => Arc::new(summary_message(&summary)),
            Opening::First(message) => message,
        });
        Self {
            conversation: Remembered {
                total: usize::try_from(loaded.message_count).expect("counts fit"),
                opening,
                newest: loaded.messages,
            },
            requests: loaded.requests,
            standing: loaded.standing,
        }
    }
}
