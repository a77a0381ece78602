//! Making an agent. All checks come before anything is created: a refused call leaves nothing.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;

use super::Pool;
use super::registry::{Found, Refused, Registry};
use crate::agent::{AgentHandle, Facts, Layered, Past, Preamble, Retire, layered};
use crate::event::{Event, What, iso};
use crate::id::AgentId;
use crate::limits::{AUTO_AGENT_ID_DRAWS_MAX, AUTO_AGENT_ID_HEX};
use crate::policy::{self, Level, Permissions, PolicyError, Preset, Reason, Refusal, ceiling};
use crate::provider::{Model, ModelError};
use crate::store::{AgentNumber, AgentRecord, Recipe, StoreError, Write};
use crate::world::Use;

/// An agent to be. What is `None` takes its default.
#[derive(Debug)]
pub struct NewAgent {
    pub id: NewId,
    pub preset: Option<String>,
    pub system_prompt: Option<String>,
    pub cwd: Option<PathBuf>,
    pub write_paths: Option<Vec<PathBuf>>,
    pub model: Option<String>,
    pub disable_tools: Vec<String>,
    pub parent: Option<AgentId>,
}

#[derive(Debug)]
pub enum NewId {
    Given(AgentId),
    /// The next numbered temporary one.
    Temp,
    /// Drawn by chance.
    Auto,
}

/// An agent whose checks have passed.
#[derive(Debug)]
pub(super) struct Draft {
    pub depth: u32,
    pub permissions: Permissions,
    pub cwd: PathBuf,
    pub prompt: Layered,
}

#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    #[error("Agent already exists: {id}")]
    Taken { id: AgentId },
    #[error("Parent agent not found: {id}")]
    UnknownParent { id: AgentId },
    #[error("cwd does not exist: {given}")]
    NoCwd { given: String },
    #[error("cwd is not a directory: {given}")]
    CwdNotDir { given: String },
    #[error("cwd cannot be used: {given}")]
    CwdUnusable {
        given: String,
        #[source]
        source: io::Error,
    },
    #[error("Unknown tool: {name}. Tools there are: {known}")]
    UnknownTool { name: String, known: String },
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error(transparent)]
    Policy(#[from] PolicyError),
    #[error("the server is shutting down")]
    Stopping,
    #[error("the agent could not be written down")]
    Storage {
        #[source]
        source: StoreError,
    },
}

impl Pool {
    pub async fn create(self: &Arc<Self>, new: NewAgent) -> Result<AgentHandle, CreateError> {
        let found = match &new.parent {
            Some(id) => {
                let found = self.registry().find(id);
                Some(found.ok_or_else(|| CreateError::UnknownParent { id: id.clone() })?)
            }
            None => None,
        };
        let parent = found.as_ref().map(|found| found.agent.facts());
        let preset = match &new.preset {
            Some(name) => self.presets.get(name)?,
            None => self.presets.default_preset(),
        };
        let depth = parent.map_or(0, |parent| parent.depth + 1);
        let cwd = match self.check_rank(preset, depth, parent) {
            Ok(()) => self.cwd(&new, parent).await?,
            Err(error) => return Err(error.into()),
        };
        let permissions = self.permissions(&new, preset, &cwd, parent)?;
        let model = self.models.resolve(new.model.as_deref())?;
        let prompt = match &new.system_prompt {
            Some(given) => Layered { text: given.as_str().into(), path: None },
            None => self.prompt(&cwd).await,
        };
        let draft = Draft { depth, permissions, cwd, prompt };
        self.insert(&new.id, found.as_ref(), draft, model).await
    }

    /// Whether an agent of this preset may be under this parent.
    pub(super) fn check_rank(
        &self,
        preset: &Preset,
        depth: u32,
        parent: Option<&Facts>,
    ) -> Result<(), PolicyError> {
        let checked = match parent {
            Some(parent) => ceiling::child(&parent.permissions, preset, depth),
            None => ceiling::root(preset, self.ground.yolo),
        };
        checked.map_err(PolicyError::from)
    }

    async fn insert(
        self: &Arc<Self>,
        id: &NewId,
        parent: Option<&Found<AgentHandle>>,
        draft: Draft,
        model: Model,
    ) -> Result<AgentHandle, CreateError> {
        let (number, id) = self.reserve(id, parent)?;
        let parent = parent.map(|parent| parent.agent.facts().id.clone());
        let (facts, preamble) = self.facts(number, id, self.shared.world.clock.now(), draft);
        let (pool, asks) = (Arc::clone(self), (model, preamble));
        // What has begun is finished even if the caller goes away: the id would be taken for ever.
        let created = tokio::spawn(async move { pool.write_down(facts, asks, parent).await });
        created.await.expect("creating an agent does not panic")
    }

    fn reserve(
        &self,
        id: &NewId,
        parent: Option<&Found<AgentHandle>>,
    ) -> Result<(AgentNumber, AgentId), CreateError> {
        let mut registry = self.registry();
        let id = match id {
            NewId::Given(id) => id.clone(),
            NewId::Temp => registry.free_temp_id(),
            NewId::Auto => self.draw_id(&registry),
        };
        let reserved = registry.reserve(&id, parent).map_err(|refused| match refused {
            Refused::Taken => CreateError::Taken { id: id.clone() },
            Refused::NoParent => {
                let parent = parent.expect("only a given parent can be missing");
                CreateError::UnknownParent { id: parent.agent.facts().id.clone() }
            }
            Refused::Stopping => CreateError::Stopping,
        });
        reserved.map(|number| (number, id))
    }

    /// Makes the reserved agent durable, then lets others find it.
    async fn write_down(
        &self,
        facts: Facts,
        asks: (Model, Preamble),
        parent: Option<AgentId>,
    ) -> Result<AgentHandle, CreateError> {
        let (number, id) = (facts.number, facts.id.clone());
        let what = What::AgentCreated { parent_agent_id: parent.clone() };
        let record = Box::new(record(&facts, &asks, parent.clone()));
        let writes = vec![
            Write::AgentCreated { number, record },
            Write::Event(Event::new(&id, facts.created_at, what)),
        ];
        if let Err(source) = self.shared.store.commit(writes).await {
            self.registry().remove(number);
            return Err(CreateError::Storage { source });
        }
        let agent = AgentHandle::start(facts, asks, Past::default(), Arc::clone(&self.shared));
        let arrived = self.registry().arrive(number, agent.clone());
        if arrived {
            tracing::debug!(agent = %id, preset = agent.facts().permissions.preset.name, "created");
            return Ok(agent);
        }
        // Its parent was destroyed in that moment, and it goes too.
        agent.retire(Retire::Leave).await;
        let gone = Write::Event(self.event(&id, What::AgentDestroyed { parent_agent_id: None }));
        let undone = self.shared.store.commit(vec![Write::AgentDestroyed { number }, gone]).await;
        self.registry().remove(number);
        undone.map_err(|source| CreateError::Storage { source })?;
        Err(CreateError::UnknownParent { id: parent.expect("only a parent takes it along") })
    }

    pub(super) fn facts(
        &self,
        number: AgentNumber,
        id: AgentId,
        created_at: Timestamp,
        draft: Draft,
    ) -> (Facts, Preamble) {
        let Draft { depth, permissions, cwd, prompt } = draft;
        let tools = self.shared.tools.definitions(&permissions);
        let preamble = Preamble::new(prompt.text, prompt.path, Arc::clone(&tools));
        (Facts { number, id, created_at, depth, permissions, cwd, tools }, preamble)
    }

    /// The prompt of an agent that is given none.
    async fn prompt(&self, cwd: &Path) -> Layered {
        let (world, home, cwd) =
            (self.shared.world.clone(), self.ground.home.clone(), cwd.to_owned());
        self.shared.world.blocking.call(move || layered(&world, &home, &cwd)).await
    }

    /// An id that nobody has, if chance does not insist on one that somebody has.
    fn draw_id(&self, registry: &Registry<AgentHandle>) -> AgentId {
        let drawn = || {
            let digits = self.shared.world.chance.hex(Use::AgentId, AUTO_AGENT_ID_HEX);
            AgentId::parse(&digits).expect("hex digits are a well-formed id")
        };
        let mut id = drawn();
        for _ in 1..AUTO_AGENT_ID_DRAWS_MAX {
            if registry.is_free(&id) {
                break;
            }
            id = drawn();
        }
        id
    }

    /// The working directory with its links resolved: what lies inside is decided against that.
    async fn cwd(&self, new: &NewAgent, parent: Option<&Facts>) -> Result<PathBuf, CreateError> {
        let base = parent.map_or(&self.ground.cwd, |parent| &parent.cwd);
        let Some(given) = &new.cwd else {
            return Ok(base.clone());
        };
        let (path, fs) = (base.join(given), Arc::clone(&self.shared.world.fs));
        let blocking = &self.shared.world.blocking;
        let resolved = blocking
            .call(move || {
                let path = fs.canonical(&path)?;
                fs.dir(&path).map(|_| path)
            })
            .await;
        let shown = given.display().to_string();
        let resolved = resolved.map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => CreateError::NoCwd { given: shown },
            io::ErrorKind::NotADirectory => CreateError::CwdNotDir { given: shown },
            _ => CreateError::CwdUnusable { given: shown, source },
        })?;
        if let Some(parent) = parent
            && self.is_closed(&resolved, parent.permissions.level())
        {
            let message = format!("{} is closed to agents of this server", given.display());
            return Err(PolicyError::from(Refusal { reason: Reason::Ceiling, message }).into());
        }
        Ok(resolved)
    }

    fn is_closed(&self, path: &Path, level: Level) -> bool {
        policy::blocked(path, level, self.shared.tools.closed())
    }

    fn permissions(
        &self,
        new: &NewAgent,
        preset: &Arc<Preset>,
        cwd: &Path,
        parent: Option<&Facts>,
    ) -> Result<Permissions, CreateError> {
        let write_paths = match &new.write_paths {
            Some(paths) => policy::write_paths(preset, cwd, paths)?,
            None => Vec::new(),
        };
        let known: BTreeSet<&str> = self.shared.tools.names().collect();
        if let Some(name) = new.disable_tools.iter().find(|name| !known.contains(name.as_str())) {
            let known = known.into_iter().collect::<Vec<_>>().join(", ");
            return Err(CreateError::UnknownTool { name: name.clone(), known });
        }
        let mut permissions = match parent {
            Some(parent) => {
                Permissions::under(&parent.permissions, Arc::clone(preset), write_paths)
            }
            None => Permissions::new(Arc::clone(preset), write_paths),
        };
        permissions.disabled_tools.extend(new.disable_tools.iter().cloned());
        Ok(permissions)
    }
}

/// What is needed to make this agent again.
fn record(
    facts: &Facts,
    (model, preamble): &(Model, Preamble),
    parent: Option<AgentId>,
) -> AgentRecord {
    let permissions = &facts.permissions;
    AgentRecord {
        id: facts.id.clone(),
        parent,
        depth: facts.depth,
        created_at: iso(facts.created_at),
        recipe: Recipe {
            preset: permissions.preset.name.clone(),
            model: model.name.to_string(),
            cwd: facts.cwd.clone(),
            write_paths: permissions.write_paths.clone(),
            disabled_tools: permissions.disabled_tools.iter().cloned().collect(),
            system_prompt: Arc::clone(&preamble.system),
            system_prompt_path: preamble.path.clone(),
        },
    }
}
