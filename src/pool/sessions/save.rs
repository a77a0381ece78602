//! Saving an agent's session: under its own name, where the file follows it from then on, or as a copy
//! under another. What is saved is what the agent was after its last turn that ended.

use std::sync::Arc;

use super::SessionsError;
use crate::agent::AgentHandle;
use crate::id::AgentId;
use crate::pool::Pool;
use crate::session::{Overwrite, Session, SessionName};
use crate::store::{Exported, Write};

impl Pool {
    /// Saves a named agent's session; an agent that is only on disk comes back for it.
    pub async fn save_session(
        self: &Arc<Self>,
        id: &AgentId,
        name: Option<SessionName>,
        overwrite: Overwrite,
    ) -> Result<SessionName, SessionsError> {
        let agent =
            self.find(id).await?.ok_or_else(|| SessionsError::NoAgent { id: id.clone() })?;
        let name = match name {
            Some(name) => name,
            None => SessionName::of(id)?,
        };
        if id.is_temp() {
            self.promote(id, name.clone(), overwrite).await?;
            return Ok(name);
        }
        let (pool, saved) = (Arc::clone(self), name.clone());
        // What has begun is finished even if the caller goes away.
        let save = tokio::spawn(async move {
            if *name.id() == agent.id() {
                pool.save_own(&agent, name).await
            } else {
                pool.save_copy(&agent, name, overwrite).await
            }
        });
        save.await.expect("saving a session does not panic")?;
        Ok(saved)
    }

    async fn save_own(&self, agent: &AgentHandle, name: SessionName) -> Result<(), SessionsError> {
        let _desk = self.desk.at(name.id()).await;
        if agent.id() != *name.id() {
            // It got another while we waited for the desk.
            return Err(SessionsError::NoAgent { id: name.id().clone() });
        }
        self.write_session(agent, name, Overwrite::Replace).await?;
        let (number, exported) = (agent.facts().number, Exported::Yes);
        self.shared.store.commit(vec![Write::Exported { agent: number, exported }]).await?;
        self.registry().set_exported(number, exported);
        Ok(())
    }

    /// The agent keeps its id, and the copy stays as it is.
    async fn save_copy(
        &self,
        agent: &AgentHandle,
        name: SessionName,
        overwrite: Overwrite,
    ) -> Result<(), SessionsError> {
        let _desk = self.desk.at(name.id()).await;
        if self.registry().number(name.id()).is_some() {
            return Err(SessionsError::AgentTaken { id: name.id().clone() });
        }
        self.write_session(agent, name, overwrite).await
    }

    pub(super) async fn write_session(
        &self,
        agent: &AgentHandle,
        name: SessionName,
        overwrite: Overwrite,
    ) -> Result<(), SessionsError> {
        let gone = || SessionsError::NoAgent { id: agent.id() };
        let mut file = self.session_of(agent).await?.ok_or_else(gone)?;
        file.agent_id = name.id().clone();
        let session = Session::from(name);
        self.with_files(move |directory| directory.write(&session, &file, overwrite)).await?;
        Ok(())
    }
}
