//! Loading a session: its file, or what the database has of it, becomes an agent. All checks come before
//! anything is changed.

use std::sync::Arc;

use super::SessionsError;
use super::admit::{Follows, Incoming, Wishes};
use super::snapshot::Upto;
use crate::agent::AgentHandle;
use crate::id::AgentId;
use crate::pool::create::check_id;
use crate::pool::{ChangeError, CreateError, NewPermissions, Pool};
use crate::session::{Overwrite, Session, SessionError, SessionFile, SessionName};

/// What is asked for.
#[derive(Clone, Debug)]
pub struct LoadRequest {
    pub session: Session,
    /// The id of the agent; where it is not given, the name of the session.
    pub agent_id: Option<AgentId>,
    pub preset: Option<String>,
    pub model: Option<String>,
    /// What becomes of an agent that has this id.
    pub overwrite: Overwrite,
}

impl Pool {
    pub async fn load_session(
        self: &Arc<Self>,
        request: LoadRequest,
    ) -> Result<AgentHandle, SessionsError> {
        if self.is_stopping() {
            return Err(SessionsError::Stopping);
        }
        if let Some(id) = &request.agent_id {
            check_id(id)?;
        }
        let pool = Arc::clone(self);
        // What has begun is finished even if the caller goes away.
        let loaded = tokio::spawn(async move {
            match request.session.clone() {
                Session::Named(name) => pool.load_named(name, request).await,
                Session::Last => pool.load_last(request).await,
            }
        });
        loaded.await.expect("loading a session does not panic")
    }

    pub(super) async fn load_named(
        self: &Arc<Self>,
        name: SessionName,
        request: LoadRequest,
    ) -> Result<AgentHandle, SessionsError> {
        let id = request.agent_id.clone().unwrap_or_else(|| name.id().clone());
        let wishes = Wishes { preset: request.preset, model: request.model };
        if id == *name.id() && self.registry().dormant_number(&id).is_some() {
            return self.load_dormant(&id, wishes).await;
        }
        self.wake_parent(&name).await?;
        let _desk = self.desk.both(name.id(), &id).await;
        let Some(mut file) = self.any_session(&name).await? else {
            return Err(self.unknown_session(name.as_str()).await);
        };
        if id != *name.id() {
            self.touch(&mut file);
        }
        if request.overwrite == Overwrite::Refuse && self.registry().number(&id).is_some() {
            return Err(SessionsError::AgentTaken { id });
        }
        if let Ok(own) = SessionName::of(&id)
            && own != name
            && request.overwrite == Overwrite::Refuse
        {
            let session = Session::from(own);
            let taken = session.clone();
            if self.with_files(move |directory| directory.has(&session)).await? {
                return Err(SessionError::Exists { session: taken }.into());
            }
        }
        let incoming = Incoming { id, file, wishes, follows: Follows::File };
        self.admit_in_place(incoming, request.overwrite).await
    }

    /// What gets another name is newer than any file that was saved under that before.
    pub(super) fn touch(&self, file: &mut SessionFile) {
        file.modified_at = file.modified_at.max(self.shared.world.clock.now());
    }

    /// Brings back an agent that is on record, and gives it what is wished for.
    async fn load_dormant(
        self: &Arc<Self>,
        id: &AgentId,
        wishes: Wishes,
    ) -> Result<AgentHandle, SessionsError> {
        if let Some(preset) = &wishes.preset {
            self.presets.get(preset).map_err(CreateError::from)?;
        }
        if let Some(model) = &wishes.model {
            self.models.resolve(Some(model)).map_err(CreateError::from)?;
        }
        let agent = self.restore(id).await?;
        let agent = agent.ok_or_else(|| SessionsError::NoAgent { id: id.clone() })?;
        if let Some(preset) = wishes.preset {
            let (disable_tools, enable_tools) = (Vec::new(), Vec::new());
            let new = NewPermissions { preset, disable_tools, enable_tools };
            self.set_permissions(&agent, new).await.map_err(|error| match error {
                ChangeError::Refused(source) => SessionsError::Refused(source),
                ChangeError::Gone => SessionsError::NoAgent { id: id.clone() },
            })?;
        }
        if let Some(model) = wishes.model {
            self.set_model(&agent, &model).await?;
        }
        Ok(agent)
    }

    /// Makes the agent; whoever has its id goes for it, if that is asked for.
    pub(super) async fn admit_in_place(
        self: &Arc<Self>,
        incoming: Incoming,
        overwrite: Overwrite,
    ) -> Result<AgentHandle, SessionsError> {
        let id = incoming.id.clone();
        if self.registry().number(&id).is_some() {
            let parent = incoming.file.parent_agent_id.as_ref();
            // It cannot be the child of one that goes for it.
            let goes = parent.is_some_and(|parent| self.is_within(parent, &id));
            if overwrite == Overwrite::Refuse || goes {
                return Err(SessionsError::AgentTaken { id });
            }
            return Ok(self.replace(incoming).await?);
        }
        Ok(self.admit(incoming).await?)
    }

    /// The parent of a session is there before it, if it is on record.
    async fn wake_parent(&self, name: &SessionName) -> Result<(), SessionsError> {
        let is_on_record = self.registry().number(name.id()).is_some();
        let parent = if is_on_record {
            self.parent(name.id())
        } else {
            self.read_session(name).await?.and_then(|file| file.parent_agent_id)
        };
        if let Some(parent) = parent {
            self.restore(&parent).await?;
        }
        Ok(())
    }

    /// What there is of a session: the newer one of its file and its row, or what an agent that runs
    /// was after its last turn. The caller has the desk of the name.
    pub(super) async fn any_session(
        &self,
        name: &SessionName,
    ) -> Result<Option<SessionFile>, SessionsError> {
        let dormant = self.registry().dormant_number(name.id());
        if let Some(number) = dormant {
            if let Some(file) = self.newer_file(number, name.id()).await? {
                return Ok(Some(file));
            }
            return Ok(self.session_on_record(number, Upto::Everything).await?);
        }
        let file = self.read_session(name).await?;
        match (file, self.agent(name.id())) {
            (Some(file), _) => Ok(Some(file)),
            (None, Some(agent)) => Ok(self.session_of(&agent).await?),
            (None, None) => Ok(None),
        }
    }
}
