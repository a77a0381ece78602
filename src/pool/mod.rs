//! The agents of one server: create, find, list, destroy, stop.
//! It keeps handles and families; it never looks into an agent's conversation.

mod create;
mod destroy;
mod change;
mod permissions;
mod callers; // what agents may ask of others
mod team; // what they do to each other
pub mod told; // about agents, to whoever asks
mod prune;
mod records;
mod registry;
mod rename;
mod renaming; // who is called what, as bookkeeping
mod registry_sessions;
mod replacing; // who comes for whom, as bookkeeping
mod restore;
mod sessions; // what is done to saved ones
mod waits;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

pub use callers::{AskError, FirstMessage};
pub use change::SetModelError;
pub use create::{Asker, CreateError, FirstTurn, NewAgent, NewId};
pub use permissions::{ChangeError, NewPermissions};
pub use prune::{Pruned, Pruning};
pub use records::Records;
use registry::Registry;
pub use registry::{Children, Listed};
pub use restore::RestoreError;
use sessions::{Desk, export};
pub use sessions::{ListedSession, LoadRequest, SessionsError, SessionsPage};
pub use waits::Deadlock;

use crate::activity::Activity;
use crate::agent::{
    Accounts, AgentHandle, Automatic, CancelReason, CompactionRules, Exports, Retire, Rules,
    Shared, Tables,
};
use crate::config::{Config, PermissionsConfig};
use crate::event::{Event, What};
use crate::hub::Hub;
use crate::id::{AgentId, RequestId};
use crate::limits::{AUTO_REQUEST_ID_HEX, FAMILIES_AT_ONCE_MAX, FAMILIES_REST_MAX};
use crate::policy::ceiling::Yolo;
use crate::policy::{PolicyError, Presets, normal};
use crate::provider::Models;
use crate::session::Directory;
use crate::store::{AgentNumber, Opened, Store};
use crate::tool::Tools;
use crate::tool::mcp::{Servers, WorkplaceNumber};
use crate::world::{Fs, Use, World};

#[derive(Debug)]
pub struct Pool {
    /// Which agents exist. Held for a few map look-ups at a time; nothing is awaited under it.
    registry: Mutex<Registry<AgentHandle>>,
    /// Who may do something to the sessions of a name.
    desk: Desk,
    /// Agents are restored one at a time, so that each is restored once.
    restoring: Semaphore,
    /// One place for whoever makes or ends an agent, all of them for whoever changes permissions
    /// or an id.
    families: Arc<Semaphore>,
    /// Where session files lie.
    directory: Directory,
    /// Whether a disk that failed may have kept the note of a rename.
    has_rename_left: AtomicBool,
    /// What is left of agents that are gone is removed by one at a time, so that each is counted once.
    pruning: Semaphore,
    /// What no agent below `yolo` may use, absolute and without links.
    closed: Arc<[PathBuf]>,
    shared: Arc<Shared>,
    models: Models,
    presets: Presets,
    ground: Ground,
    turn_timeout: Duration,
    stop: CancellationToken,
}

/// What the pool must know of the place it runs in.
#[derive(Clone, Debug)]
pub struct Ground {
    /// Our own directory, closed to agents.
    pub home: PathBuf,
    /// Where agents work that name no directory.
    pub cwd: PathBuf,
    pub blocked_paths: Vec<PathBuf>,
    pub yolo: Yolo,
}

impl Pool {
    pub fn new(
        world: World,
        config: &Config,
        models: Models,
        ground: Ground,
        records: Records,
    ) -> Result<Arc<Self>, PolicyError> {
        let presets = Presets::new(&resolved(&config.permissions, world.fs.as_ref()))?;
        let Records { opened, hub, logs, ear } = records;
        let servers = Servers::new(&world, config.network.reach(), ground.cwd.clone(), ear);
        servers.start(&config.mcp_servers);
        let tools = Tools::new().beside(servers);
        presets.check_tools(&tools.names().collect::<Vec<_>>())?;
        let closed = [&ground.home].into_iter().chain(&ground.blocked_paths);
        let closed = closed.map(|path| normal(Path::new("/"), path)).collect();
        let Opened { store, residents, budgets, next_number, .. } = opened;
        let accounts = Accounts::restored(budgets, world.clock.now());
        let directory = Directory::new(world.clone(), ground.home.clone());
        let registry = Registry::new(residents, next_number);
        let (exports, jobs) = Exports::new(registry.followed_at_all());
        let pool = Arc::new_cyclic(|pool: &Weak<Self>| {
            let shared = Shared {
                world,
                activity: Activity::new(),
                store,
                hub,
                logs,
                tools,
                team: Weak::<Self>::clone(pool),
                rules: Rules {
                    iterations_max: config.max_tool_iterations,
                    concurrent_tools_max: config.max_concurrent_tools,
                },
                skill_timeout: Duration::from_secs_f64(config.skill_timeout),
                confirmation_timeout: Duration::from_secs_f64(config.confirmation_timeout),
                compaction: compaction(config, &models),
                in_memory_max: config.max_messages,
                secrets: models.secrets().clone(),
                tables: Tables::default(),
                accounts: Arc::new(accounts),
                exports,
            };
            Self {
                registry: Mutex::new(registry),
                desk: Desk::default(),
                restoring: Semaphore::new(1),
                pruning: Semaphore::new(1),
                families: Arc::new(Semaphore::new(FAMILIES_AT_ONCE_MAX)),
                directory,
                has_rename_left: AtomicBool::new(false),
                closed,
                shared: Arc::new(shared),
                models,
                presets,
                ground,
                turn_timeout: Duration::from_secs_f64(config.turn_timeout),
                stop: CancellationToken::new(),
            }
        });
        tokio::spawn(export::export(Arc::downgrade(&pool), jobs));
        Ok(pool)
    }

    /// The agent of this id, if it is in memory.
    pub fn agent(&self, id: &AgentId) -> Option<AgentHandle> {
        self.registry().get(id)
    }

    /// Whether there is an agent of this id in memory that is not just getting another one.
    pub fn has_agent(&self, id: &AgentId) -> bool {
        let registry = self.registry();
        registry.get(id).is_some() && !registry.is_changing(id)
    }

    pub fn parent(&self, id: &AgentId) -> Option<AgentId> {
        self.registry().parent(id)
    }

    pub fn list(&self) -> Vec<Listed<AgentHandle>> {
        self.registry().list()
    }

    pub fn list_for(&self, viewer: &AgentId) -> Vec<Listed<AgentHandle>> {
        self.registry().list_for(viewer)
    }

    /// Whether `id` is `ancestor` or one of its descendants.
    pub fn is_within(&self, id: &AgentId, ancestor: &AgentId) -> bool {
        self.registry().is_within(id, ancestor)
    }

    /// Notes that `from` waits for `to` until the guard is dropped, unless it would wait for itself.
    pub fn wait_for(self: &Arc<Self>, from: &AgentId, to: &AgentHandle) -> Result<Wait, Deadlock> {
        let to = to.facts().number;
        let mut registry = self.registry();
        // One that is gone by now holds nobody up.
        let from = registry.number(from);
        if let Some(from) = from {
            let started = registry.waits.start(from, to);
            started.map_err(|chain| Deadlock { chain: registry.ids_of(&chain) })?;
        }
        Ok(Wait { pool: Arc::clone(self), from, to })
    }

    /// How long a turn may take, with the wait for it, where nobody says.
    pub fn turn_timeout(&self) -> Duration {
        self.turn_timeout
    }

    pub fn draw_request_id(&self) -> RequestId {
        let drawn = self.shared.world.chance.hex(Use::RequestId, AUTO_REQUEST_ID_HEX);
        RequestId::parse(&drawn).expect("hex digits are a well-formed id")
    }

    pub fn is_stopping(&self) -> bool {
        self.registry().is_stopping()
    }

    /// Asks the server to stop. Whoever runs it sees [`Pool::stop_requested`].
    pub fn request_stop(&self) {
        self.registry().stop();
        self.stop.cancel();
    }

    /// Asks the server to stop if there are agents and all of them asked for it.
    pub fn stop_if_all_asked(&self) {
        let agents = self.list();
        if !agents.is_empty() && agents.iter().all(|listed| listed.agent.status().should_shutdown) {
            self.request_stop();
        }
    }

    pub async fn stop_requested(&self) {
        self.stop.cancelled().await;
    }

    /// Cancels what waits, and waits for the running turns until `grace` is over; then cancels them.
    /// Whoever is about to come or to go does so first, and nobody after that.
    pub async fn wind_down(&self, grace: impl Future<Output = ()>) {
        self.request_stop();
        let finish = async {
            self.families_at_rest().await;
            self.retire_all(Retire::FinishTurn(CancelReason::Shutdown)).await;
        };
        tokio::select! {
            // Turns that all have ended need no grace.
            biased;
            () = finish => {}
            () = grace => {
                self.retire_all(Retire::CancelTurn(CancelReason::Shutdown)).await;
            }
        }
        if timeout(FAMILIES_REST_MAX, self.families_at_rest()).await.is_err() {
            tracing::warn!("agents come or go while the server stops");
        }
        self.mcp().close().await;
    }

    async fn retire_all(&self, how: Retire) {
        let agents: Vec<AgentHandle> = self.list().into_iter().map(|listed| listed.agent).collect();
        join_all(agents.iter().map(|agent| agent.retire(how))).await;
    }

    /// Waits for whoever makes, restores, changes or ends an agent just now.
    async fn families_at_rest(&self) {
        let _turn = self.restoring.acquire().await.expect("this semaphore is never closed");
        let places = u32::try_from(FAMILIES_AT_ONCE_MAX).expect("they are few");
        let _alone = self.families.acquire_many(places).await.expect("it is never closed");
    }

    /// The MCP servers.
    pub fn mcp(&self) -> &Servers {
        self.shared.tools.servers().expect("a pool's tools stand beside its MCP servers")
    }

    /// The agent whose tools work there.
    pub fn at_workplace(&self, number: WorkplaceNumber) -> Option<AgentId> {
        let agents = self.list();
        let agent = agents.into_iter().find(|listed| listed.agent.workplace() == Some(number));
        agent.map(|listed| listed.agent.id())
    }

    /// Who uses the server.
    pub fn activity(&self) -> &Arc<Activity> {
        &self.shared.activity
    }

    pub fn store(&self) -> &Store {
        &self.shared.store
    }

    pub fn hub(&self) -> &Arc<Hub> {
        &self.shared.hub
    }

    fn event(&self, agent: &AgentId, what: What) -> Event {
        Event::new(agent, self.shared.world.clock.now(), what)
    }

    fn registry(&self) -> MutexGuard<'_, Registry<AgentHandle>> {
        self.registry.lock().expect("nothing under this lock panics")
    }
}

/// The presets with their paths as what they lead to, since decisions are about resolved paths. What is
/// blocked stays blocked under the name that was written, too.
fn resolved(config: &PermissionsConfig, fs: &dyn Fs) -> PermissionsConfig {
    let mut config = config.clone();
    let written = |path: &PathBuf| normal(Path::new("/"), path);
    let leads_to = |path: &PathBuf| fs.canonical(path).unwrap_or_else(|_| written(path));
    let allow = |paths: &mut Option<Vec<PathBuf>>| {
        for path in paths.iter_mut().flatten() {
            *path = leads_to(path);
        }
    };
    for preset in config.presets.values_mut() {
        allow(&mut preset.allowed_paths);
        preset.tools.values_mut().for_each(|tool| allow(&mut tool.allowed_paths));
        let blocked = preset.blocked_paths.iter();
        preset.blocked_paths = blocked.flat_map(|path| [written(path), leads_to(path)]).collect();
    }
    config
}

fn compaction(config: &Config, models: &Models) -> CompactionRules {
    let config = &config.compaction;
    CompactionRules {
        automatic: if config.enabled { Automatic::On } else { Automatic::Off },
        model: models.compaction().cloned(),
        trigger_threshold: config.trigger_threshold,
        recent_preserve_ratio: config.recent_preserve_ratio,
    }
}

/// One agent waiting for another.
#[derive(Debug)]
pub struct Wait {
    pool: Arc<Pool>,
    from: Option<AgentNumber>,
    to: AgentNumber,
}

impl Drop for Wait {
    fn drop(&mut self) {
        if let Some(from) = self.from {
            self.pool.registry().waits.end(from, self.to);
        }
    }
}
