//! What agents that are only on disk would come back as: for those who write down what there was.

use crate::id::AgentId;
use crate::pool::Pool;
use crate::session::{SessionFile, SessionName};

impl Pool {
    /// Who is only on disk.
    pub fn dormant(&self) -> Vec<AgentId> {
        self.registry().dormant()
    }

    /// What an agent that is only on disk would come back as; `None` where it could not.
    pub async fn dormant_session(&self, id: &AgentId) -> Option<SessionFile> {
        let name = SessionName::of(id).ok()?;
        let _desk = self.desk.at(id).await;
        self.any_session(&name).await.ok()?
    }
}
