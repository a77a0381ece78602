//! What is done to sessions: the files of `session`, the rows of `store` and the agents of the pool,
//! together. The database is the truth; a file is what was last exported of it, or what somebody put
//! there.

mod admit; // an agent from one
mod clone;
mod delete;
mod desk; // who may do something to them
mod dormant; // of agents that are only on disk
pub(super) mod export; // files that follow their agents
mod last; // what a terminal followed
mod list;
mod load;
mod promote; // a temporary agent
mod rename;
mod replace; // an agent that runs
mod resume; // files of agents that come back
mod save;
mod snapshot; // what would be saved

pub use desk::Desk;
pub use export::Targets;
pub use list::{ListedSession, SessionsPage};
pub use load::LoadRequest;

use super::create::CreateError;
use super::{Pool, RestoreError, SetModelError};
use crate::id::AgentId;
use crate::session::{Directory, NameError, SessionError};
use crate::store::StoreError;

/// Why something was not done to a session.
#[derive(Debug, thiserror::Error)]
pub enum SessionsError {
    #[error(transparent)]
    Name(#[from] NameError),
    #[error("Session not found: {name}{}", near(nearest.as_deref()))]
    Unknown { name: String, nearest: Option<String> },
    #[error("Agent not found: {id}")]
    NoAgent { id: AgentId },
    #[error("Agent already exists: {id}")]
    AgentTaken { id: AgentId },
    #[error("{id} is in a turn; try again when it has ended")]
    Busy { id: AgentId },
    #[error(transparent)]
    File(#[from] SessionError),
    /// Of what a session says an agent would be.
    #[error(transparent)]
    Refused(#[from] CreateError),
    #[error(transparent)]
    Restore(RestoreError),
    #[error(transparent)]
    Model(#[from] SetModelError),
    #[error("the session cannot be read or written")]
    Storage {
        #[source]
        source: StoreError,
    },
    #[error("the change could not be written down")]
    Unwritten,
    #[error("the server is shutting down")]
    Stopping,
}

impl From<StoreError> for SessionsError {
    fn from(source: StoreError) -> Self {
        Self::Storage { source }
    }
}

impl From<RestoreError> for SessionsError {
    fn from(source: RestoreError) -> Self {
        match source {
            RestoreError::Stopping => Self::Stopping,
            RestoreError::File { source } => Self::File(source),
            RestoreError::Refused { source } => Self::Refused(source),
            RestoreError::Storage { source } => Self::Storage { source },
            RestoreError::Policy { source } => Self::Refused(source.into()),
            RestoreError::Model { source } => Self::Refused(source.into()),
            source @ (RestoreError::Missing
            | RestoreError::Unreadable
            | RestoreError::NoParent { .. }
            | RestoreError::Destroyed) => Self::Restore(source),
        }
    }
}

fn near(nearest: Option<&str>) -> String {
    nearest.map(|name| format!(" (did you mean {name}?)")).unwrap_or_default()
}

impl Pool {
    /// Removes what a server that died was about to put in place, and ends what it had begun.
    pub fn tidy_sessions(&self) {
        self.directory.tidy();
        self.finish_renames();
    }

    /// Does something with session files, off the async threads.
    pub(super) async fn with_files<T: Send + 'static>(
        &self,
        act: impl FnOnce(&Directory) -> Result<T, SessionError> + Send + 'static,
    ) -> Result<T, SessionError> {
        let directory = self.directory.clone();
        self.shared.world.blocking.call(move || act(&directory)).await
    }
}
