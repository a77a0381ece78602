//! The end of a session: its file is gone, and its agent if it is dormant. An agent that runs goes on, and
//! its file does not come back. Dormant children stay, without a parent and with the ceiling on record.

use std::sync::Arc;

use super::SessionsError;
use crate::id::AgentId;
use crate::pool::{Children, Pool};
use crate::session::{Session, SessionName};
use crate::store::{Exported, Write};

impl Pool {
    pub async fn delete_session(self: &Arc<Self>, name: SessionName) -> Result<(), SessionsError> {
        let pool = Arc::clone(self);
        // What has begun is finished even if the caller goes away.
        let deleted = tokio::spawn(async move { pool.delete_at_desk(&name).await });
        deleted.await.expect("deleting a session does not panic")
    }

    async fn delete_at_desk(&self, name: &SessionName) -> Result<(), SessionsError> {
        let _desk = self.desk.at(name.id()).await;
        if let Some(agent) = self.agent(name.id()) {
            // First, or the next turn would bring the file back.
            let (number, exported) = (agent.facts().number, Exported::No);
            self.shared.store.commit(vec![Write::Exported { agent: number, exported }]).await?;
            self.registry().set_exported(number, exported);
        }
        let session = Session::from(name.clone());
        // The file goes before the row: what a crash leaves is the truth, and not an older copy of it.
        let had_file = self.with_files(move |directory| directory.remove(&session)).await?;
        let had_row = self.end_dormant(name.id()).await?;
        if had_file || had_row {
            tracing::info!(session = %name, "deleted");
            return Ok(());
        }
        Err(self.unknown_session(name.as_str()).await)
    }

    /// Ends an agent that is only on record; whether there was one.
    async fn end_dormant(&self, id: &AgentId) -> Result<bool, SessionsError> {
        let _turn = self.restoring.acquire().await.expect("this semaphore is never closed");
        let _place = self.families.acquire().await.expect("this semaphore is never closed");
        let leaving = {
            let mut registry = self.registry();
            if registry.dormant_number(id).is_none() {
                return Ok(false);
            }
            registry.start_leaving(id, Children::Keep)
        };
        let ended = self.end(leaving, Vec::new()).await?;
        Ok(!ended.is_empty())
    }
}
