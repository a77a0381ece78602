//! An agent from a session: what it may do is decided anew, by today's configuration and by who stands
//! above it. What the file says of its rights is what it is given at most, never what it has.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::agent::{AgentHandle, Facts, Kit, Retire};
use crate::event::{What, iso};
use crate::id::AgentId;
use crate::policy::budget::{Exceeded, Limits};
use crate::policy::{Level, PolicyError, Refusal, Rights, WriteRule, ceiling, normal};
use crate::pool::create::CreateError;
use crate::pool::registry::{Found, Refused};
use crate::pool::{Pool, RestoreError};
use crate::session::SessionFile;
use crate::store::{
    AgentNumber, AgentRecord, Exported, Recipe, Standing, StoreError, TakenSession, Write,
};

/// A session on its way to become an agent.
#[derive(Debug)]
pub(super) struct Incoming {
    /// The id that the agent shall have.
    pub(super) id: AgentId,
    pub(super) file: SessionFile,
    pub(super) wishes: Wishes,
    pub(super) follows: Follows,
}

/// What somebody wants to be different from what the session says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Wishes {
    pub(super) preset: Option<String>,
    pub(super) model: Option<String>,
}

/// What follows the agent from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Follows {
    /// Its session file; none, where it is temporary.
    File,
    /// What is called the last session, too.
    FileAndLast,
}

impl Incoming {
    /// Whose child the agent is to be. With a preset that somebody chose, one whose parent is gone is
    /// an agent of its own.
    pub(super) fn parent<'p>(
        &self,
        parent: Option<&'p Found<AgentHandle>>,
    ) -> Result<Option<&'p Found<AgentHandle>>, RestoreError> {
        match (&self.file.parent_agent_id, parent) {
            (None, _) => Ok(None),
            (Some(_), Some(parent)) => Ok(Some(parent)),
            (Some(_), None) if self.wishes.preset.is_some() => Ok(None),
            (Some(id), None) => Err(RestoreError::NoParent { id: id.clone() }),
        }
    }
}

impl Pool {
    /// Makes an agent from a session. Its id must be free, and the desk of its name is the caller's.
    pub(super) async fn admit(&self, incoming: Incoming) -> Result<AgentHandle, RestoreError> {
        // What its parent may do stays as it is until the child is there.
        let _place = self.families.acquire().await.expect("this semaphore is never closed");
        let found = self.found_parent(&incoming.file);
        let parent = incoming.parent(found.as_ref())?;
        let record = self.record_of(&incoming, parent).await?;
        let (number, budget) = self.take_place(&incoming.id, parent)?;
        let parent = parent.map(|parent| &parent.agent);
        let made = self.remade(number, &record, parent);
        let (facts, kit) = made.inspect_err(|_| self.forget(number))?;
        let writes = self.arrival(number, incoming, record, budget);
        let committed = self.shared.store.commit(writes).await;
        committed.map_err(|source| {
            self.forget(number);
            RestoreError::Storage { source }
        })?;
        self.begin(facts, kit).await
    }

    /// An agent from a session, whole.
    pub(super) fn arrival(
        &self,
        number: AgentNumber,
        incoming: Incoming,
        record: AgentRecord,
        budget: Option<Write>,
    ) -> Vec<Write> {
        let (parent, recipe) = (record.parent.clone(), record.recipe.clone());
        let mut writes = vec![Write::AgentCreated { number, record: Box::new(record) }];
        writes.extend(self.taking(number, incoming, recipe, parent));
        writes.extend(budget);
        writes
    }

    /// What a session brings besides the agent itself, and the event that tells of it.
    pub(super) fn taking(
        &self,
        number: AgentNumber,
        incoming: Incoming,
        recipe: Recipe,
        parent_agent_id: Option<AgentId>,
    ) -> Vec<Write> {
        let Incoming { id, file, follows, .. } = incoming;
        let told = self.event(&id, What::AgentRestored { parent_agent_id });
        let taken = TakenSession {
            recipe,
            messages: file.messages,
            standing: Standing { token_usage: file.token_usage, ..Standing::default() },
            modified_at: iso(file.modified_at),
            unknown: file.unknown,
        };
        let mut writes = vec![Write::SessionTaken { agent: number, taken: Box::new(taken) }];
        if !id.is_temp() {
            writes.push(Write::Exported { agent: number, exported: Exported::Yes });
        }
        if follows == Follows::FileAndLast {
            writes.push(Write::LastSession { agent: number });
        }
        writes.push(Write::Event(told));
        writes
    }

    /// Starts an agent that is on record, and lets others find it.
    pub(super) async fn begin(&self, facts: Facts, kit: Kit) -> Result<AgentHandle, RestoreError> {
        let (number, id) = (facts.number, kit.id.clone());
        let failed = |source: StoreError| RestoreError::Storage { source };
        let loaded = self.shared.store.load(number, self.shared.in_memory_max).await;
        let past = match loaded {
            Ok(Some(loaded)) => loaded.into(),
            Ok(None) => return Err(RestoreError::Missing),
            Err(source) => {
                // It is on record, and comes back with the next request to it.
                self.registry().fall_asleep(number);
                return Err(failed(source));
            }
        };
        let agent = AgentHandle::start(facts, kit, past, Arc::clone(&self.shared));
        let exported = if id.is_temp() { Exported::No } else { Exported::Yes };
        let arrived = {
            let mut registry = self.registry();
            registry.set_exported(number, exported);
            registry.arrive(number, agent.clone())
        };
        if arrived {
            tracing::debug!(agent = %id, "made from a session");
            return Ok(agent);
        }
        // Its parent was destroyed in that moment, and it goes too.
        let _ = agent.retire(Retire::Leave).await;
        let gone = Write::Event(self.event(&id, What::AgentDestroyed { parent_agent_id: None }));
        let undone = self.shared.store.commit(vec![Write::AgentDestroyed { number }, gone]).await;
        self.forget(number);
        undone.map_err(failed)?;
        Err(RestoreError::Destroyed)
    }

    pub(super) fn found_parent(&self, file: &SessionFile) -> Option<Found<AgentHandle>> {
        self.registry().find(file.parent_agent_id.as_ref()?)
    }

    fn take_place(
        &self,
        id: &AgentId,
        parent: Option<&Found<AgentHandle>>,
    ) -> Result<(AgentNumber, Option<Write>), RestoreError> {
        let mut registry = self.registry();
        let reserved = registry.reserve(id, parent).map_err(|refused| no_place(refused, id));
        let (number, now) = (reserved?, self.shared.world.clock.now());
        let above = parent.map(|parent| parent.agent.facts().number);
        let opened = self.shared.accounts.open(number, above, &Limits::default(), now);
        opened.map(|budget| (number, budget)).map_err(|exceeded| {
            registry.remove(number);
            no_budget(exceeded)
        })
    }

    /// What an agent is made from, as far as the session may say so.
    pub(super) async fn record_of(
        &self,
        incoming: &Incoming,
        parent: Option<&Found<AgentHandle>>,
    ) -> Result<AgentRecord, RestoreError> {
        let parent = parent.map(|parent| &parent.agent);
        let recipe = self.recipe_of(incoming, parent).await.map_err(RestoreError::from)?;
        Ok(AgentRecord {
            id: incoming.id.clone(),
            parent: parent.map(AgentHandle::id),
            depth: parent.map_or(0, |parent| parent.facts().depth + 1),
            created_at: iso(incoming.file.created_at),
            recipe,
        })
    }

    /// What the agent could not leave, if it still is around where it works and within what its parent
    /// may use; else it is held to where it works.
    async fn root_of(
        &self,
        file: &SessionFile,
        cwd: &Path,
        above: Option<&Rights>,
    ) -> Option<PathBuf> {
        let root = file.root_directory.as_ref()?;
        let root = self.resolved_dir(Path::new("/"), root).await.ok()?;
        let is_within = above.is_none_or(|above| ceiling::cwd(above, &root, None).is_ok());
        (is_within && root != cwd && cwd.starts_with(&root)).then_some(root)
    }

    async fn recipe_of(
        &self,
        Incoming { file, wishes, .. }: &Incoming,
        parent: Option<&AgentHandle>,
    ) -> Result<Recipe, CreateError> {
        let name = wishes.preset.as_ref().unwrap_or(&file.permission_preset);
        let preset = self.presets.get(name)?;
        let above = parent.map(Self::ceiling_of);
        let cwd = self.resolved_dir(Path::new("/"), &file.working_directory).await?;
        if let (Some(above), Some(parent)) = (&above, parent) {
            let shown = file.working_directory.display().to_string();
            ceiling::cwd(above, &cwd, Some(&shown)).map_err(PolicyError::from)?;
            if wishes.preset.is_some() {
                let depth = parent.facts().depth + 1;
                ceiling::child(above, preset, depth).map_err(PolicyError::from)?;
            }
        }
        let root = self.root_of(file, &cwd, above.as_deref()).await;
        let model = wishes.model.as_ref().unwrap_or(&file.model);
        let model = self.models.resolve(Some(model))?;
        // Tools that the preset lacks by now are not given back by a file.
        let mut disabled_tools = preset.disabled_tools.clone();
        disabled_tools.extend(file.disabled_tools.iter().cloned());
        Ok(Recipe {
            preset: preset.name.clone(),
            model: model.name.to_string(),
            write_paths: match preset.writes {
                WriteRule::ListedInCwd => {
                    file.write_paths.iter().map(|path| normal(&cwd, path)).collect()
                }
                WriteRule::ByLevel | WriteRule::Never => Vec::new(),
            },
            cwd,
            disabled_tools: disabled_tools.into_iter().collect(),
            enabled_tools: Vec::new(),
            system_prompt: Arc::clone(&file.system_prompt),
            system_prompt_path: file.system_prompt_path.clone(),
            root,
            session_allowances: match preset.level {
                Level::Sandboxed => None,
                Level::Trusted | Level::Yolo => Some(file.session_allowances.clone()),
            },
            ceiling: above.map(Arc::unwrap_or_clone),
        })
    }
}

pub(super) fn no_place(refused: Refused, id: &AgentId) -> RestoreError {
    match refused {
        Refused::Taken => CreateError::Taken { id: id.clone() }.into(),
        Refused::NoParent => RestoreError::Destroyed,
        Refused::Stopping => RestoreError::Stopping,
    }
}

pub(super) fn no_budget(exceeded: Exceeded) -> RestoreError {
    CreateError::from(PolicyError::from(Refusal::from(exceeded))).into()
}
