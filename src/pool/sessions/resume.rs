//! What session files have to do with bringing agents back: one that only has a file is made from it, and
//! of a file and a row of the same name the newer one counts.

use std::sync::Arc;

use jiff::Timestamp;

use super::admit::{Follows, Incoming, Wishes};
use crate::agent::AgentHandle;
use crate::id::AgentId;
use crate::pool::{Pool, RestoreError};
use crate::session::{Session, SessionFile, SessionName};
use crate::store::{AgentNumber, Exported, Write};

impl Pool {
    /// The agent of a session file, made from it; `None` where there is no file of that name.
    pub(in crate::pool) async fn restore_file(
        self: &Arc<Self>,
        id: &AgentId,
    ) -> Result<Option<AgentHandle>, RestoreError> {
        let Ok(name) = SessionName::of(id) else {
            return Ok(None);
        };
        let Some(seen) = self.read_session(&name).await? else {
            return Ok(None);
        };
        if self.is_stopping() {
            return Err(RestoreError::Stopping);
        }
        if let Some(parent) = &seen.parent_agent_id {
            self.restore(parent).await?;
        }
        let _desk = self.desk.at(id).await;
        // Somebody else may have been faster, or have deleted it.
        if let Some(agent) = self.agent(id) {
            return Ok(Some(agent));
        }
        let Some(file) = self.read_session(&name).await? else {
            return Ok(None);
        };
        let (wishes, follows) = (Wishes::default(), Follows::File);
        self.admit(Incoming { id: id.clone(), file, wishes, follows }).await.map(Some)
    }

    pub(super) async fn read_session(
        &self,
        name: &SessionName,
    ) -> Result<Option<SessionFile>, RestoreError> {
        let session = Session::from(name.clone());
        Ok(self.with_files(move |directory| directory.read(&session)).await?)
    }

    /// The session file of a dormant agent, if it is newer than the agent's row. One that cannot be used
    /// is nobody's loss: there is the row.
    pub(in crate::pool) async fn newer_file(
        &self,
        number: AgentNumber,
        id: &AgentId,
    ) -> Result<Option<SessionFile>, RestoreError> {
        let Ok(name) = SessionName::of(id) else {
            return Ok(None);
        };
        let file = match self.read_session(&name).await {
            Ok(Some(file)) => file,
            Ok(None) => return Ok(None),
            Err(error) => {
                tracing::warn!(agent = %id, %error, "its session file is passed over");
                return Ok(None);
            }
        };
        let row = self.shared.store.session(number).await;
        let row = row.map_err(|source| RestoreError::Storage { source })?;
        let row = row.ok_or(RestoreError::Missing)?;
        let of_row: Timestamp = row.modified_at.parse().map_err(|_| RestoreError::Unreadable)?;
        if file.modified_at == of_row {
            return Ok(None);
        }
        let file = Some(file).filter(|file| file.modified_at > of_row);
        let newer = if file.is_some() { "the file" } else { "the record" };
        tracing::info!(agent = %id, "its session file and its record differ: {newer} is newer");
        Ok(file)
    }

    /// Brings back a dormant agent as its session file has it. The caller has all that restoring needs.
    pub(in crate::pool) async fn restore_from_file(
        &self,
        number: AgentNumber,
        mut file: SessionFile,
    ) -> Result<(), RestoreError> {
        let before = self.loaded(number).await?.record;
        let parent = {
            let registry = self.registry();
            registry.parent_agent(number).and_then(|parent| registry.find(&parent.id()))
        };
        // Whose child it is stands on record, whatever the file says.
        file.parent_agent_id = parent.as_ref().and(before.parent);
        let (id, wishes, follows) = (before.id, Wishes::default(), Follows::File);
        let incoming = Incoming { id, file, wishes, follows };
        let mut record = self.record_of(&incoming, parent.as_ref()).await?;
        record.depth = before.depth;
        if parent.is_none() {
            // Never more than its parent could last do.
            record.recipe.ceiling = before.recipe.ceiling;
        }
        let parent = parent.as_ref().map(|parent| &parent.agent);
        let (facts, kit) = self.remade(number, &record, parent)?;
        let parent = parent.map(AgentHandle::id);
        let mut writes = vec![Write::AgentRestored { number }];
        writes.extend(self.taking(number, incoming, record.recipe, parent));
        let committed = self.shared.store.commit(writes).await;
        committed.map_err(|source| RestoreError::Storage { source })?;
        self.registry().set_exported(number, Exported::Yes);
        let past = self.loaded(number).await?.into();
        self.wake(facts, kit, past)
    }
}
