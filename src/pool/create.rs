//! Making an agent. All checks come before anything is created: a refused call leaves nothing.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use tokio::sync::OwnedSemaphorePermit;

use super::permissions::granted;
use super::registry::{Found, Refused, Registry};
use super::{Pool, RestoreError};
use crate::agent::{AgentHandle, Facts, Kit, Layered, Past, Preamble, Retire, layered};
use crate::event::{Event, What, iso};
use crate::id::AgentId;
use crate::limits::{AUTO_AGENT_ID_DRAWS_MAX, AUTO_AGENT_ID_HEX};
use crate::policy::budget::{Exceeded, Limits};
use crate::policy::{self, Grant, Permissions, PolicyError, Preset, Rights, ceiling};
use crate::provider::{Model, ModelError};
use crate::session::LAST_SESSION;
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
    pub asker: Asker,
    pub limits: Limits,
    pub first_turn: FirstTurn,
}

/// Whether an agent is told something as soon as it is there. Without a turn for that it is not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstTurn {
    AtOnce,
    Later,
}

/// Who asks for an agent. What an agent would need a confirmation for itself, it gives to no child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asker {
    Person,
    Agent,
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
    pub prompt: Layered,
}

/// A new agent's place, with what makes its budget durable.
struct Reserved {
    number: AgentNumber,
    id: AgentId,
    created_at: Timestamp,
    budget: Option<Write>,
}

#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    #[error("Invalid agent id: `{LAST_SESSION}` is reserved")]
    Reserved,
    #[error("Agent already exists: {id}")]
    Taken { id: AgentId },
    #[error("Parent agent not found: {id}")]
    UnknownParent { id: AgentId },
    #[error("Parent agent cannot be brought back: {id}")]
    Parent {
        id: AgentId,
        #[source]
        source: Box<RestoreError>,
    },
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
    #[error(transparent)]
    Limit(#[from] Exceeded),
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
        if let NewId::Given(id) = &new.id {
            check_id(id)?;
        }
        if let Some(id) = &new.parent {
            self.bring_back_parent(id).await?;
        }
        // What its parent may do stays as it is until the child is there.
        let place = Arc::clone(&self.families).acquire_owned().await;
        let place = place.expect("this semaphore is never closed");
        let found = match &new.parent {
            Some(id) => {
                let found = self.registry().find(id);
                Some(found.ok_or_else(|| CreateError::UnknownParent { id: id.clone() })?)
            }
            None => None,
        };
        let parent = found.as_ref().map(|found| &found.agent);
        let preset = match &new.preset {
            Some(name) => self.presets.get(name)?,
            None => self.presets.default_preset(),
        };
        let depth = parent.map_or(0, |parent| parent.facts().depth + 1);
        let ceiling = parent.map(Self::ceiling_of);
        match &ceiling {
            Some(ceiling) => ceiling::child(ceiling, preset, depth),
            None => ceiling::root(preset, self.ground.yolo),
        }
        .map_err(PolicyError::from)?;
        let base = ceiling.as_ref().map_or(&self.ground.cwd, |ceiling| &ceiling.cwd);
        let cwd = match &new.cwd {
            Some(given) => self.resolved_dir(base, given).await?,
            None => base.clone(),
        };
        let permissions = self.permissions(&new, preset, cwd, ceiling)?;
        let model = self.models.resolve(new.model.as_deref())?;
        let prompt = match &new.system_prompt {
            Some(given) => Layered { text: given.as_str().into(), path: None },
            None => self.prompt(&permissions).await,
        };
        let draft = Draft { depth, permissions, prompt };
        self.insert(&new, found.as_ref(), draft, model, place).await
    }

    /// A parent that is only on disk comes back, as it would for any other request.
    async fn bring_back_parent(self: &Arc<Self>, id: &AgentId) -> Result<(), CreateError> {
        match self.find(id).await {
            Ok(Some(_)) => Ok(()),
            Ok(None) => Err(CreateError::UnknownParent { id: id.clone() }),
            Err(RestoreError::Stopping) => Err(CreateError::Stopping),
            Err(source) => {
                tracing::warn!(agent = %id, error = &source as &dyn std::error::Error, "cannot restore");
                Err(CreateError::Parent { id: id.clone(), source: Box::new(source) })
            }
        }
    }

    async fn insert(
        self: &Arc<Self>,
        new: &NewAgent,
        parent: Option<&Found<AgentHandle>>,
        draft: Draft,
        model: Model,
        place: OwnedSemaphorePermit,
    ) -> Result<AgentHandle, CreateError> {
        let Reserved { number, id, created_at, budget } = self.reserve(new, parent)?;
        let parent = parent.map(|parent| parent.agent.id());
        let (facts, kit) = self.made((number, id), created_at, draft, model);
        let pool = Arc::clone(self);
        // What has begun is finished even if the caller goes away: the id would be taken for ever.
        let created = tokio::spawn(async move {
            let created = pool.write_down(facts, kit, parent, budget).await;
            drop(place);
            created
        });
        created.await.expect("creating an agent does not panic")
    }

    fn reserve(
        &self,
        new: &NewAgent,
        parent: Option<&Found<AgentHandle>>,
    ) -> Result<Reserved, CreateError> {
        let mut registry = self.registry();
        let id = match &new.id {
            NewId::Given(id) => id.clone(),
            NewId::Temp => registry.free_temp_id(),
            NewId::Auto => self.draw_id(&registry),
        };
        let reserved = registry.reserve(&id, parent).map_err(|refused| match refused {
            Refused::Taken => CreateError::Taken { id: id.clone() },
            Refused::NoParent => {
                let parent = parent.expect("only a given parent can be missing");
                CreateError::UnknownParent { id: parent.agent.id() }
            }
            Refused::Stopping => CreateError::Stopping,
        });
        let (number, created_at) = (reserved?, self.shared.world.clock.now());
        let above = parent.map(|parent| parent.agent.facts().number);
        let accounts = &self.shared.accounts;
        let opened = accounts.open(number, above, &new.limits, created_at);
        let budget = opened.and_then(|budget| match new.first_turn {
            FirstTurn::AtOnce => accounts.may_take_turn(number).map(|()| budget),
            FirstTurn::Later => Ok(budget),
        });
        budget.map(|budget| Reserved { number, id, created_at, budget }).map_err(|exceeded| {
            registry.remove(number);
            accounts.close(number);
            exceeded.into()
        })
    }

    /// Takes a reserved place back.
    pub(super) fn forget(&self, number: AgentNumber) {
        self.registry().remove(number);
        self.shared.accounts.close(number);
    }

    /// Makes the reserved agent durable, then lets others find it.
    async fn write_down(
        &self,
        facts: Facts,
        kit: Kit,
        parent: Option<AgentId>,
        budget: Option<Write>,
    ) -> Result<AgentHandle, CreateError> {
        let (number, id) = (facts.number, kit.id.clone());
        let what = What::AgentCreated { parent_agent_id: parent.clone() };
        let record = Box::new(record(&facts, &kit, parent.clone()));
        let created = Write::AgentCreated { number, record };
        let told = Write::Event(Event::new(&id, facts.created_at, what));
        let writes = [Some(created), budget, Some(told)].into_iter().flatten().collect();
        if let Err(source) = self.shared.store.commit(writes).await {
            self.forget(number);
            return Err(CreateError::Storage { source });
        }
        let agent = AgentHandle::start(facts, kit, Past::default(), Arc::clone(&self.shared));
        let arrived = self.registry().arrive(number, agent.clone());
        if arrived {
            let permissions = agent.permissions();
            tracing::debug!(agent = %id, preset = permissions.grant().preset.name, "created");
            return Ok(agent);
        }
        // Its parent was destroyed in that moment, and it goes too.
        let _ = agent.retire(Retire::Leave).await;
        let gone = Write::Event(self.event(&id, What::AgentDestroyed { parent_agent_id: None }));
        let undone = self.shared.store.commit(vec![Write::AgentDestroyed { number }, gone]).await;
        self.forget(number);
        undone.map_err(|source| CreateError::Storage { source })?;
        Err(CreateError::UnknownParent { id: parent.expect("only a parent takes it along") })
    }

    pub(super) fn made(
        &self,
        (number, id): (AgentNumber, AgentId),
        created_at: Timestamp,
        draft: Draft,
        model: Model,
    ) -> (Facts, Kit) {
        let Draft { depth, permissions, prompt } = draft;
        let tools = self.shared.tools.definitions(&permissions);
        let preamble = Preamble::new(prompt.text, prompt.path, tools);
        (Facts { number, created_at, depth }, Kit { id, model, preamble, permissions })
    }

    /// The prompt of an agent that is given none.
    async fn prompt(&self, permissions: &Permissions) -> Layered {
        let (world, home, permissions) =
            (self.shared.world.clone(), self.ground.home.clone(), permissions.clone());
        self.shared.world.blocking.call(move || layered(&world, &home, &permissions)).await
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

    /// A working directory with its links resolved: what lies inside is decided against that.
    pub(super) async fn resolved_dir(
        &self,
        base: &Path,
        given: &Path,
    ) -> Result<PathBuf, CreateError> {
        let (path, fs) = (base.join(given), Arc::clone(&self.shared.world.fs));
        let blocking = &self.shared.world.blocking;
        let resolved = blocking
            .call(move || {
                let path = fs.canonical(&path)?;
                fs.dir(&path).map(|_| path)
            })
            .await;
        let given = given.display().to_string();
        resolved.map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => CreateError::NoCwd { given },
            io::ErrorKind::NotADirectory => CreateError::CwdNotDir { given },
            _ => CreateError::CwdUnusable { given, source },
        })
    }

    fn permissions(
        &self,
        new: &NewAgent,
        preset: &Arc<Preset>,
        cwd: PathBuf,
        ceiling: Option<Arc<Rights>>,
    ) -> Result<Permissions, CreateError> {
        let write_paths = match &new.write_paths {
            Some(paths) => policy::write_paths(preset, &cwd, paths)?,
            None => Vec::new(),
        };
        if let Some(above) = &ceiling {
            let given = new.cwd.as_ref().map(|given| given.display().to_string());
            ceiling::cwd(above, &cwd, given.as_deref()).map_err(PolicyError::from)?;
            let most = match new.asker {
                Asker::Person => above.writable(),
                Asker::Agent => &above.writes,
            };
            ceiling::writes(above, most, &write_paths).map_err(PolicyError::from)?;
        }
        self.check_tools(new.disable_tools.iter())?;
        let mut grant = Grant::new(Arc::clone(preset), cwd, write_paths);
        grant.disabled_tools.extend(new.disable_tools.iter().cloned());
        Ok(Permissions::new(grant, ceiling, &self.closed))
    }
}

/// What is needed to make this agent again.
fn record(facts: &Facts, kit: &Kit, parent: Option<AgentId>) -> AgentRecord {
    let granted = granted(&kit.permissions);
    AgentRecord {
        id: kit.id.clone(),
        parent,
        depth: facts.depth,
        created_at: iso(facts.created_at),
        recipe: Recipe {
            preset: granted.preset,
            model: kit.model.name.to_string(),
            cwd: granted.cwd,
            write_paths: granted.write_paths,
            disabled_tools: granted.disabled_tools,
            enabled_tools: granted.enabled_tools,
            system_prompt: Arc::clone(&kit.preamble.system),
            system_prompt_path: kit.preamble.path.clone(),
            root: granted.root,
            session_allowances: granted.session_allowances,
            ceiling: granted.ceiling,
        },
    }
}

/// Refuses what means the session of whichever agent a terminal followed last.
pub(super) fn check_id(id: &AgentId) -> Result<(), CreateError> {
    if id.as_str() == LAST_SESSION { Err(CreateError::Reserved) } else { Ok(()) }
}
