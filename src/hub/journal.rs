//! What the hub asks of whoever keeps durable events: pages of them, and the newest number.

use std::sync::Arc;

use crate::event::Seq;
use crate::id::AgentId;
use crate::world::BoxFuture;

/// What a stream is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    Agent(AgentId),
    Everything,
}

/// Durable events that were committed and are kept.
pub trait Journal: Send + Sync {
    /// The oldest kept events of a scope after a place in the order. It holds every event that was
    /// published before it was asked for, as far as that is still kept.
    fn page<'a>(&'a self, of: &'a Scope, after: Seq) -> BoxFuture<'a, Result<Page, JournalError>>;

    /// The number of the newest event that was ever committed, 0 before the first.
    fn last_seq(&self) -> Seq;
}

/// A bounded piece of what is kept, with at least one event where there is any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    pub events: Vec<KeptEvent>,
    /// The first and last number of those before them that were asked for and are not kept.
    pub gap: Option<(Seq, Seq)>,
    /// Whether there are further ones.
    pub more: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptEvent {
    pub seq: Seq,
    /// Its type on the wire.
    pub name: String,
    /// One line of JSON.
    pub json: Arc<str>,
}

#[derive(Debug, thiserror::Error)]
#[error("cannot read the kept events")]
pub struct JournalError {
    #[source]
    pub source: Box<dyn std::error::Error + Send + Sync>,
}
