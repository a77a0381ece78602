//! The agents of one server: create, find, list, destroy, stop.
//! It keeps handles and families; it never looks into an agent's conversation.

mod create;
mod registry;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures_util::future::join_all;
use tokio_util::sync::CancellationToken;

pub use create::{CreateError, NewAgent, NewId};
use registry::Registry;
pub use registry::{Children, Listed};

use crate::agent::{AgentHandle, CancelReason, Retire, Rules, Shared};
use crate::config::Config;
use crate::id::AgentId;
use crate::logs::Logs;
use crate::policy::ceiling::Yolo;
use crate::policy::{PolicyError, Presets};
use crate::provider::Models;
use crate::tool::Tools;
use crate::world::World;

#[derive(Debug)]
pub struct Pool {
    /// Which agents exist. Held for a few map look-ups at a time; nothing is awaited under it.
    registry: Mutex<Registry<AgentHandle>>,
    shared: Arc<Shared>,
    models: Models,
    presets: Presets,
    ground: Ground,
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
        logs: Logs,
    ) -> Result<Self, PolicyError> {
        let rules = Rules {
            iterations_max: config.max_tool_iterations,
            concurrent_tools_max: config.max_concurrent_tools,
        };
        let skill_timeout = Duration::from_secs_f64(config.skill_timeout);
        let shared = Shared { world, tools: Tools::default(), rules, skill_timeout, logs };
        let presets = Presets::new(&config.permissions)?;
        presets.check_tools(&shared.tools.names().collect::<Vec<_>>())?;
        Ok(Self {
            registry: Mutex::default(),
            shared: Arc::new(shared),
            models,
            presets,
            ground,
            stop: CancellationToken::new(),
        })
    }

    pub fn agent(&self, id: &AgentId) -> Option<AgentHandle> {
        self.registry().get(id)
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

    /// Ends an agent; returns all that ended with it, in that order. Empty where there is none.
    /// What has begun is finished even if the caller goes away: half-destroyed agents would keep
    /// their ids for ever.
    pub async fn destroy(self: &Arc<Self>, id: &AgentId, children: Children) -> Vec<AgentId> {
        let leaving = self.registry().start_leaving(id, children);
        if leaving.is_empty() {
            return Vec::new();
        }
        let pool = Arc::clone(self);
        let ended = tokio::spawn(async move {
            let mut destroyed = Vec::with_capacity(leaving.len());
            for (id, agent) in leaving {
                agent.retire(Retire::Leave(CancelReason::Destroyed)).await;
                pool.registry().remove(&id);
                tracing::debug!(agent = %id, "destroyed");
                destroyed.push(id);
            }
            // It may have been the last one that had not asked for the end.
            pool.stop_if_all_asked();
            destroyed
        });
        ended.await.expect("ending an agent does not panic")
    }

    /// Notes that `from` waits for `to` until the guard is dropped. Refused with the chain of agents
    /// where `from` would wait for itself.
    pub fn wait_for(&self, from: &AgentId, to: &AgentId) -> Result<Wait<'_>, Vec<AgentId>> {
        self.registry().start_waiting(from, to)?;
        Ok(Wait { pool: self, from: from.clone(), to: to.clone() })
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
    pub async fn wind_down(&self, grace: impl Future<Output = ()>) {
        self.request_stop();
        let agents: Vec<AgentHandle> = self.list().into_iter().map(|listed| listed.agent).collect();
        let retire = |how: Retire| join_all(agents.iter().map(move |agent| agent.retire(how)));
        tokio::select! {
            // Turns that all have ended need no grace.
            biased;
            _ = retire(Retire::FinishTurn(CancelReason::Shutdown)) => {}
            () = grace => {
                retire(Retire::CancelTurn(CancelReason::Shutdown)).await;
            }
        }
    }

    fn registry(&self) -> MutexGuard<'_, Registry<AgentHandle>> {
        self.registry.lock().expect("nothing under this lock panics")
    }
}

/// One agent waiting for another.
#[derive(Debug)]
pub struct Wait<'a> {
    pool: &'a Pool,
    from: AgentId,
    to: AgentId,
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        self.pool.registry().end_waiting(&self.from, &self.to);
    }
}
