//! A copy of a session under another name: of an agent that runs as it was after its last turn that ended,
//! of any other as it would be loaded. The copy is a file, and becomes an agent when somebody asks for it.

use std::sync::Arc;

use super::SessionsError;
use crate::pool::Pool;
use crate::session::{Directory, Overwrite, Session, SessionName};

impl Pool {
    pub async fn clone_session(
        self: &Arc<Self>,
        from: SessionName,
        to: SessionName,
    ) -> Result<(), SessionsError> {
        let pool = Arc::clone(self);
        // What has begun is finished even if the caller goes away.
        let cloned = tokio::spawn(async move { pool.clone_at_desk(&from, to).await });
        cloned.await.expect("cloning a session does not panic")
    }

    async fn clone_at_desk(
        &self,
        from: &SessionName,
        to: SessionName,
    ) -> Result<(), SessionsError> {
        let _desk = self.desk.both(from.id(), to.id()).await;
        let found = match self.agent(from.id()) {
            Some(agent) => self.session_of(&agent).await?,
            None => self.any_session(from).await?,
        };
        let Some(mut file) = found else {
            return Err(self.unknown_session(from.as_str()).await);
        };
        self.check_free(&to).await?;
        file.agent_id = to.id().clone();
        let session = Session::from(to);
        let write =
            move |directory: &Directory| directory.write(&session, &file, Overwrite::Refuse);
        Ok(self.with_files(write).await?)
    }
}
