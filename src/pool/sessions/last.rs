//! What is called the last session: of the agent whose stream a terminal opened last, be it a temporary
//! one, over a stop or a crash. The database knows whose it is; the files beside `sessions/` are for
//! whoever has only them.

use std::sync::Arc;

use super::SessionsError;
use super::admit::{Follows, Incoming, Wishes};
use super::load::LoadRequest;
use super::snapshot::Upto;
use crate::agent::AgentHandle;
use crate::id::AgentId;
use crate::pool::Pool;
use crate::session::{Directory, LAST_SESSION, Session, SessionFile, SessionName};
use crate::store::{AgentNumber, Write};

/// Where the last session is.
enum Last {
    /// With an agent that is here or on record.
    Agent(AgentId),
    /// Left over from an agent that is gone.
    Left(Box<SessionFile>),
}

impl Pool {
    /// Notes that a terminal follows the agent. A disk that does not take it is no reason to refuse the
    /// stream.
    pub async fn follow(&self, id: &AgentId) {
        let Some(agent) = self.agent(id) else { return };
        let number = agent.facts().number;
        if self.registry().last_session() == Some(number) {
            return;
        }
        match self.shared.store.commit(vec![Write::LastSession { agent: number }]).await {
            Ok(()) => {
                self.registry().set_last_session(number);
                self.shared.exports.changed(number);
            }
            Err(error) => {
                tracing::warn!(agent = %id, %error, "it does not become the last session");
            }
        }
    }

    pub(super) async fn load_last(
        self: &Arc<Self>,
        request: LoadRequest,
    ) -> Result<AgentHandle, SessionsError> {
        let mut file = match self.last().await? {
            None => {
                let (name, nearest) = (LAST_SESSION.to_owned(), None);
                return Err(SessionsError::Unknown { name, nearest });
            }
            Some(Last::Agent(id)) if id.is_temp() => return Err(SessionsError::AgentTaken { id }),
            Some(Last::Agent(id)) => {
                return self.load_named(SessionName::of(&id)?, request).await;
            }
            Some(Last::Left(file)) => *file,
        };
        if let Some(parent) = &file.parent_agent_id {
            self.restore(parent).await?;
        }
        let id = request.agent_id.unwrap_or_else(|| self.free_like(&file.agent_id));
        if !id.is_temp() {
            self.touch(&mut file);
        }
        let wishes = Wishes { preset: request.preset, model: request.model };
        let _desk = self.desk.at(&id).await;
        let incoming = Incoming { id, file, wishes, follows: Follows::FileAndLast };
        let agent = self.admit_in_place(incoming, request.overwrite).await?;
        self.registry().set_last_session(agent.facts().number);
        Ok(agent)
    }

    /// What is called the last session, to be shown.
    pub(super) async fn last_file(&self) -> Result<Option<SessionFile>, SessionsError> {
        Ok(match self.last().await? {
            None => None,
            Some(Last::Left(file)) => Some(*file),
            Some(Last::Agent(id)) => {
                let number = self.registry().number(&id);
                match (self.agent(&id), number) {
                    (Some(agent), _) => self.session_of(&agent).await?,
                    (None, Some(number)) => {
                        self.session_on_record(number, Upto::Everything).await?
                    }
                    (None, None) => None,
                }
            }
        })
    }

    async fn last(&self) -> Result<Option<Last>, SessionsError> {
        if let Some(number) = self.shared.store.last_session().await? {
            if let Some(id) = self.registry().id(number) {
                return Ok(Some(Last::Agent(id)));
            }
            if let Some(file) = self.session_on_record(number, Upto::Everything).await? {
                return Ok(Some(Last::Left(Box::new(file))));
            }
        }
        let file = self.with_files(|directory| directory.read(&Session::Last)).await?;
        Ok(file.map(Box::new).map(Last::Left))
    }

    /// The id itself, or of temporary ones, which are given again, the next that is free.
    fn free_like(&self, id: &AgentId) -> AgentId {
        let registry = self.registry();
        if id.is_temp() && !registry.is_free(id) { registry.free_temp_id() } else { id.clone() }
    }

    /// Forgets the last session with its agent.
    pub(in crate::pool) async fn forget_last(&self, gone: &[AgentNumber]) {
        let was_last = {
            let mut registry = self.registry();
            let was_last = registry.last_session().is_some_and(|last| gone.contains(&last));
            if was_last {
                registry.clear_last_session();
            }
            was_last
        };
        if was_last && let Err(error) = self.with_files(Directory::remove_last).await {
            tracing::warn!(%error, "the file of the last session stays behind");
        }
    }
}
