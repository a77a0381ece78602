//! Another name for a session: for its agent, be it here or dormant, and for its file. The database comes
//! first, since it is the truth; a note beside the file says what is still to be done to it, so that a
//! server that dies in between leaves it to the next one.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::time::timeout;

use super::SessionsError;
use crate::causes::told;
use crate::limits::EXPORT_CLOSE_MAX;
use crate::pool::Pool;
use crate::pool::rename::{Export, RenameError};
use crate::session::{Directory, Noted, Overwrite, Rename, Session, SessionError, SessionName};

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
        let number = self.registry().number(from.id());
        if let Some(agent) = number.filter(|_| places.file) {
            let rename = Rename { from: from.clone(), to: to.clone(), agent };
            self.with_note(move |directory| directory.note_rename(&rename)).await?;
        }
        let renamed = self.rename((from.id(), to.id()), Export::AsBefore).await;
        if places.file {
            let done = renamed.is_ok();
            let (from, to) = (from.clone(), to.clone());
            self.with_note(move |directory| {
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

    /// Does something to the note of a rename, which may stay behind where that fails.
    async fn with_note(
        &self,
        act: impl FnOnce(&Directory) -> Result<(), SessionError> + Send + 'static,
    ) -> Result<(), SessionError> {
        let done = self.with_files(act).await;
        if done.is_err() {
            self.has_rename_left.store(true, Ordering::Relaxed);
        }
        done
    }

    /// Does what a server that died had still to do: files follow their agents. Only at the start.
    pub(super) fn finish_renames(&self) {
        for noted in self.directory.noted_renames() {
            finish(&self.directory, &noted, self.is_renamed(&noted));
        }
    }

    /// Does what a disk that failed did not let be done; what takes too long is left to the next start.
    pub async fn finish_failed_renames(&self) {
        let is_left = self.has_rename_left.load(Ordering::Relaxed);
        if is_left && timeout(EXPORT_CLOSE_MAX, self.finish_noted_renames()).await.is_err() {
            tracing::warn!("the renaming of a session is not finished");
        }
    }

    /// Once nobody has these sessions in hand.
    async fn finish_noted_renames(&self) {
        let noted = self.with_files(|directory| Ok(directory.noted_renames())).await;
        for noted in noted.unwrap_or_default() {
            let to = match &noted {
                Noted::Rename(rename) => rename.to.id(),
                Noted::Nonsense(from) => from.id(),
            };
            let _desk = self.desk.both(noted.from().id(), to).await;
            let is_renamed = self.is_renamed(&noted);
            let finished = self.with_files(move |directory| {
                finish(directory, &noted, is_renamed);
                Ok(())
            });
            finished.await.expect("what fails is told in the log");
        }
    }

    /// Whether the agent has the name that its file is to have, and nobody the one that it had.
    fn is_renamed(&self, noted: &Noted) -> bool {
        match noted {
            Noted::Rename(Rename { from, to, agent }) => {
                let registry = self.registry();
                registry.number(to.id()) == Some(*agent) && registry.number(from.id()).is_none()
            }
            Noted::Nonsense(_) => false,
        }
    }
}

fn finish(directory: &Directory, noted: &Noted, is_renamed: bool) {
    let from = noted.from();
    tracing::info!(%from, is_renamed, "the renaming of a session was not finished");
    let followed = match noted {
        Noted::Rename(rename) if is_renamed => follow(directory, rename),
        Noted::Rename(_) | Noted::Nonsense(_) => Ok(()),
    };
    if let Err(error) = followed.and_then(|()| directory.forget_rename(from)) {
        // The note is there for the next start, unless only that is left to be done.
        tracing::warn!(%from, error = told(&error), "its file keeps its name");
    }
}

/// The file may have followed already.
fn follow(directory: &Directory, Rename { from, to, .. }: &Rename) -> Result<(), SessionError> {
    let [old, new] = [from, to].map(|name| Session::from(name.clone()));
    if directory.has(&old)? && !directory.has(&new)? {
        directory.rename(from, to)?;
    }
    Ok(())
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
