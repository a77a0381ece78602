//! Another name for a session: for its agent, be it here or dormant, and for its file. The database comes
//! first, since it is the truth; a note beside the file says what is still to be done to it, so that a
//! server that dies in between leaves it to the next one.

use std::sync::Arc;

use super::SessionsError;
use crate::causes::told;
use crate::pool::Pool;
use crate::pool::rename::{Export, RenameError};
use crate::session::{Overwrite, Session, SessionError, SessionName};

/// Where a session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Places {
    agent: bool,
    file: bool,
}

impl Pool {
    /// Gives a session another name, which nothing has. Not possible while its agent is in a turn.
    pub async fn rename_session(
        self: &Arc<Self>,
        from: SessionName,
        to: SessionName,
    ) -> Result<(), SessionsError> {
        let pool = Arc::clone(self);
        // What has begun is finished even if the caller goes away: its file has to follow.
        let renamed = tokio::spawn(async move { pool.rename_at_desk(&from, &to).await });
        renamed.await.expect("renaming a session does not panic")
    }

    async fn rename_at_desk(
        &self,
        from: &SessionName,
        to: &SessionName,
    ) -> Result<(), SessionsError> {
        let _desk = self.desk.both(from.id(), to.id()).await;
        let places = self.places(from).await?;
        if places == (Places { agent: false, file: false }) {
            return Err(self.unknown_session(from.as_str()).await);
        }
        self.check_free(to).await?;
        if !places.agent {
            return self.rename_file(from, to).await;
        }
        if places.file {
            let (from, to) = (from.clone(), to.clone());
            self.with_files(move |directory| directory.note_rename(&from, &to)).await?;
        }
        let renamed = self.rename((from.id(), to.id()), Export::AsBefore).await;
        if places.file {
            let done = renamed.is_ok();
            let (from, to) = (from.clone(), to.clone());
            self.with_files(move |directory| {
                if done {
                    directory.rename(&from, &to)?;
                }
                directory.forget_rename(&from)
            })
            .await?;
        }
        let number = renamed?;
        // What its file says of itself is new, too.
        self.shared.exports.changed(number);
        Ok(())
    }

    /// A session without an agent. What it says of itself follows; without that it is the same session.
    async fn rename_file(&self, from: &SessionName, to: &SessionName) -> Result<(), SessionsError> {
        let file = self.read_session(from).await?;
        let (old, new) = (from.clone(), to.clone());
        self.with_files(move |directory| {
            directory.rename(&old, &new)?;
            let Some(mut file) = file else { return Ok(()) };
            file.agent_id = new.id().clone();
            let session = Session::from(new);
            if let Err(error) = directory.write(&session, &file, Overwrite::Replace) {
                tracing::warn!(%session, %error, "it still says its former name");
            }
            Ok(())
        })
        .await?;
        Ok(())
    }

    async fn places(&self, name: &SessionName) -> Result<Places, SessionsError> {
        let session = Session::from(name.clone());
        let file = self.with_files(move |directory| directory.has(&session)).await?;
        Ok(Places { agent: self.registry().number(name.id()).is_some(), file })
    }

    /// Whether neither an agent nor a file has this name. The caller has its desk.
    pub(super) async fn check_free(&self, name: &SessionName) -> Result<(), SessionsError> {
        let Places { agent, file } = self.places(name).await?;
        if agent {
            return Err(SessionsError::AgentTaken { id: name.id().clone() });
        }
        if file {
            return Err(SessionError::Exists { session: Session::from(name.clone()) }.into());
        }
        Ok(())
    }

    /// Does what a server that died had still to do: files follow their agents. Only at the start.
    pub(super) fn finish_renames(&self) {
        for (from, to) in self.directory.noted_renames() {
            let registry = self.registry();
            let has = |name: &SessionName| registry.number(name.id()).is_some();
            let is_renamed = has(&to) && !has(&from);
            drop(registry);
            tracing::info!(%from, %to, is_renamed, "a session was being renamed when the server died");
            let finished = if is_renamed { self.follow_rename(&from, &to) } else { Ok(()) };
            let finished = finished.and_then(|()| self.directory.forget_rename(&from));
            if let Err(error) = finished {
                // The note is there for the next start, unless only that is left to be done.
                tracing::warn!(%from, %to, error = told(&error), "its file keeps its name");
            }
        }
    }

    /// The file may have followed already.
    fn follow_rename(&self, from: &SessionName, to: &SessionName) -> Result<(), SessionError> {
        let [old, new] = [from, to].map(|name| Session::from(name.clone()));
        if self.directory.has(&old)? && !self.directory.has(&new)? {
            self.directory.rename(from, to)?;
        }
        Ok(())
    }
}

impl From<RenameError> for SessionsError {
    fn from(error: RenameError) -> Self {
        match error {
            RenameError::Unknown { id } => Self::NoAgent { id },
            RenameError::Taken { id } => Self::AgentTaken { id },
            RenameError::Busy { id } => Self::Busy { id },
            RenameError::Stopping => Self::Stopping,
            RenameError::Unwritten => Self::Unwritten,
        }
    }
}
