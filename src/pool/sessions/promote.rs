//! Saving a temporary agent: it gets the name of its session as its id, and is temporary no more. The row
//! comes first, since it is the truth: a file that a crash leaves unwritten is written after the next turn.

use std::sync::Arc;

use super::SessionsError;
use crate::id::AgentId;
use crate::pool::Pool;
use crate::pool::rename::Export;
use crate::session::{Overwrite, Session, SessionError, SessionName};

impl Pool {
    pub(super) async fn promote(
        self: &Arc<Self>,
        id: &AgentId,
        name: SessionName,
        overwrite: Overwrite,
    ) -> Result<(), SessionsError> {
        let (pool, id) = (Arc::clone(self), id.clone());
        // What has begun is finished even if the caller goes away.
        let promoted =
            tokio::spawn(async move { pool.promote_at_desk(&id, name, overwrite).await });
        promoted.await.expect("promoting an agent does not panic")
    }

    async fn promote_at_desk(
        &self,
        id: &AgentId,
        name: SessionName,
        overwrite: Overwrite,
    ) -> Result<(), SessionsError> {
        let _desk = self.desk.both(id, name.id()).await;
        let session = Session::from(name.clone());
        self.with_files(move |directory| match overwrite {
            Overwrite::Refuse if directory.has(&session)? => Err(SessionError::Exists { session }),
            Overwrite::Refuse => Ok(()),
            Overwrite::Replace => directory.check_known(&session),
        })
        .await?;
        let number = self.rename((id, name.id()), Export::FromNowOn).await?;
        let agent = self.agent(name.id());
        let agent = agent.ok_or_else(|| SessionsError::NoAgent { id: name.id().clone() })?;
        self.shared.exports.changed(number);
        self.write_session(&agent, name, Overwrite::Replace).await
    }
}
