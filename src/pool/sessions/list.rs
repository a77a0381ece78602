//! Which sessions there are, and what stands in one: files, and what only the database has.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::SessionsError;
use crate::id::AgentId;
use crate::pool::Pool;
use crate::session::{
    Directory, Provenance, SCHEMA_VERSION, Session, SessionError, SessionFile, SessionName, Summary,
};
use crate::store::{AgentNumber, Listing, SessionRow};

/// How alike a name must be to be suggested.
const NEAR_MISS: f64 = 0.8;

/// One session in a list.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedSession {
    pub name: AgentId,
    pub summary: Summary,
}

/// A part of the list, newest first.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionsPage {
    pub total: usize,
    pub sessions: Vec<ListedSession>,
}

enum Source {
    Row(AgentNumber),
    File(Summary),
}

impl Pool {
    pub async fn list_sessions(
        &self,
        listing: Listing,
        offset: usize,
        limit: usize,
    ) -> Result<SessionsPage, SessionsError> {
        let mut files = self.with_files(summaries).await?;
        let mut found: Vec<(Timestamp, AgentId, Source)> = Vec::new();
        for row in self.shared.store.sessions(listing).await? {
            let Ok(modified_at) = row.modified_at.parse() else { continue };
            let file = files.get(&row.id);
            let is_older = file.is_some_and(|file| file.modified_at > modified_at);
            // The file of an agent that runs becomes what the agent is.
            if is_older && !row.id.is_temp() && self.agent(&row.id).is_none() {
                continue;
            }
            if !row.id.is_temp() {
                files.remove(&row.id);
            }
            found.push((modified_at, row.id, Source::Row(row.number)));
        }
        let files = files.into_iter();
        found.extend(files.map(|(id, file)| (file.modified_at, id, Source::File(file))));
        found.sort_by(|(at, id, _), (other_at, other, _)| {
            other_at.cmp(at).then_with(|| id.cmp(other))
        });
        let total = found.len();
        let mut sessions = Vec::new();
        for (_, name, source) in found.into_iter().skip(offset).take(limit) {
            let summary = match source {
                Source::File(summary) => Some(summary),
                Source::Row(number) => {
                    let row = self.shared.store.session(number).await?;
                    row.and_then(|row| self.summary_of(row, self.settled_count(&name)))
                }
            };
            // What is gone by now is not listed.
            sessions.extend(summary.map(|summary| ListedSession { name, summary }));
        }
        Ok(SessionsPage { total, sessions })
    }

    /// A session as it would be loaded; of an agent that runs, as it was after its last turn.
    pub async fn show_session(&self, session: &Session) -> Result<SessionFile, SessionsError> {
        let found = match session {
            Session::Last => self.last_file().await?,
            Session::Named(name) => {
                let _desk = self.desk.at(name.id()).await;
                match self.agent(name.id()) {
                    Some(agent) => self.session_of(&agent).await?,
                    None => self.any_session(name).await?,
                }
            }
        };
        match found {
            Some(file) => Ok(file),
            None => Err(self.unknown_session(session.as_str()).await),
        }
    }

    /// That there is no such session, and which one may have been meant.
    pub(in crate::pool) async fn unknown_session(&self, name: &str) -> SessionsError {
        let files = self.with_files(Directory::names).await.unwrap_or_default();
        let files = files.iter().map(SessionName::as_str).map(str::to_owned);
        let agents = self.registry().ids();
        let likeness = |other: &String| strsim::jaro_winkler(name, other);
        let nearest = files
            .chain(agents.iter().filter(|id| !id.is_temp()).map(ToString::to_string))
            .filter(|other| other != name && likeness(other) >= NEAR_MISS)
            .max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
        SessionsError::Unknown { name: name.to_owned(), nearest }
    }

    /// How many messages an agent that runs had after its last turn.
    fn settled_count(&self, id: &AgentId) -> Option<usize> {
        self.agent(id).map(|agent| agent.status().settled_count)
    }

    fn summary_of(&self, row: SessionRow, settled_count: Option<usize>) -> Option<Summary> {
        let message_count = usize::try_from(row.message_count).ok()?;
        let permission_level = self.level_of(&row.record.recipe);
        Some(Summary {
            schema_version: SCHEMA_VERSION,
            created_at: row.record.created_at.parse().ok()?,
            modified_at: row.modified_at.parse().ok()?,
            message_count: settled_count.unwrap_or(message_count),
            working_directory: row.record.recipe.cwd,
            permission_level,
            model: row.record.recipe.model,
            provenance: Provenance::of(row.record.parent.as_ref()),
        })
    }
}

/// What lists tell of every file that can be understood.
fn summaries(directory: &Directory) -> Result<BTreeMap<AgentId, Summary>, SessionError> {
    let names = directory.names()?.into_iter();
    let summary = |name: SessionName| Some((name.id().clone(), directory.summary(&name)?));
    Ok(names.filter_map(summary).collect())
}
