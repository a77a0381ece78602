//! Where what happens to agents goes: the store, then the streams and the logs.

use std::path::Path;
use std::sync::Arc;

use crate::agent::outcome;
use crate::config::{Config, SyncMode};
use crate::event::{Audience, Committed, Event, What};
use crate::home::DATABASE;
use crate::hub::Hub;
use crate::id::AgentId;
use crate::logs::Logs;
use crate::store::{Kept, Opened, Options, Store, StoreError, Sync};
use crate::tool::mcp::Ear;
use crate::world::World;

pub struct Records {
    pub opened: Opened,
    pub hub: Arc<Hub>,
    pub logs: Logs,
    /// Who hears what is said with MCP servers, if somebody does.
    pub ear: Option<Arc<dyn Ear>>,
}

impl std::fmt::Debug for Records {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Records").field("opened", &self.opened).finish_non_exhaustive()
    }
}

impl Records {
    /// Opens what is in `home`, and closes what the last server left open.
    pub async fn open(
        world: &World,
        home: &Path,
        config: &Config,
        logs: Logs,
    ) -> Result<Self, StoreError> {
        Self::open_before(world, home, config, logs, None).await
    }

    /// The same, with somebody else who is told of events.
    pub async fn open_before(
        world: &World,
        home: &Path,
        config: &Config,
        logs: Logs,
        other: Option<Arc<dyn Audience>>,
    ) -> Result<Self, StoreError> {
        let hub = Hub::new(Arc::clone(&world.clock));
        let options = Options {
            path: home.join(DATABASE),
            sync: match config.storage.sync {
                SyncMode::Full => Sync::Full,
                SyncMode::Normal => Sync::Normal,
            },
            kept: Kept {
                per_agent: config.events.retain.per_agent,
                days: config.events.retain.days,
            },
            interrupted: outcome::interrupted(),
        };
        let audience = Everybody { hub: Arc::clone(&hub), logs: logs.clone(), other };
        let opened = Store::open(world, options, Arc::new(audience)).await?;
        // Whoever lived wrote their messages themselves; these are the server's own.
        for (agent, result) in &opened.results {
            logs.message(agent, result);
        }
        Ok(Self { opened, hub, logs, ear: None })
    }
}

struct Everybody {
    hub: Arc<Hub>,
    logs: Logs,
    other: Option<Arc<dyn Audience>>,
}

impl Audience for Everybody {
    fn publish(&self, events: &[Committed]) {
        self.hub.publish(events);
        self.logs.publish(events);
        if let Some(other) = &self.other {
            other.publish(events);
        }
        for committed in events {
            audit(&committed.event);
        }
    }
}

/// Tells the server's log who was asked what, and how it was decided.
fn audit(event: &Event) {
    let agent = event.agent_id.as_ref().map(AgentId::as_str);
    if let What::ConfirmationRequested { confirm_id, tool, target, .. } = &event.what {
        tracing::info!(agent, %confirm_id, tool = tool.name, target, "a confirmation is asked for");
    }
    if let What::ConfirmationResolved { confirm_id, decision, reason, resolved_by, .. } =
        &event.what
    {
        let decision = decision.name();
        tracing::info!(agent, %confirm_id, decision, reason, resolved_by, "a confirmation is decided");
    }
}
