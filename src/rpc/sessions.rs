//! The methods about sessions, with their params and results.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Call;
use super::code::Code;
use super::params::invalid;
use super::wire::ErrorObject;
use crate::id::AgentId;
use crate::limits::{SESSIONS_PAGE_DEFAULT, SESSIONS_PAGE_MAX};
use crate::policy::Level;
use crate::pool::{ListedSession, LoadRequest, SessionsError};
use crate::session::{Overwrite, Provenance, Session, SessionFile, SessionName};
use crate::store::Listing;

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ListSessionsParams {
    /// Default: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// 1 to 500. Default: 50.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// Also what temporary agents left that ended with their server. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub include_temp: Option<bool>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ListSessionsResult {
    pub total: usize,
    pub offset: u64,
    pub limit: u64,
    /// Newest first.
    pub sessions: Vec<SessionEntry>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionEntry {
    pub name: AgentId,
    pub message_count: usize,
    /// Seconds since 1970, as `updated_at`.
    pub created_at: f64,
    pub updated_at: f64,
    pub is_temp: bool,
    /// `user`, or the id of the parent.
    pub provenance: Provenance,
    pub model: String,
    pub permission_level: Level,
    pub cwd: String,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ShowSessionParams {
    pub session_name: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct LoadSessionParams {
    /// `last-session` is what a terminal followed last.
    pub session_name: String,
    /// Default: the name of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// Default: what the session says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Ends an agent that has this id, with those below it. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overwrite: Option<bool>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadSessionResult {
    pub restored: bool,
    pub agent_id: AgentId,
    pub message_count: usize,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SaveSessionParams {
    pub agent_id: AgentId,
    /// Default: the agent's own id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_name: Option<String>,
    /// Replaces a session of another name. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overwrite: Option<bool>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SaveSessionResult {
    pub saved: bool,
    pub session_name: String,
    pub agent_id: AgentId,
}

impl Call<'_> {
    pub(super) async fn list_sessions(
        &self,
        params: ListSessionsParams,
    ) -> Result<ListSessionsResult, ErrorObject> {
        let (offset, limit) =
            (params.offset.unwrap_or(0), params.limit.unwrap_or(SESSIONS_PAGE_DEFAULT));
        if !(1..=SESSIONS_PAGE_MAX).contains(&limit) {
            let message = format!("Invalid parameter limit: it must be 1 to {SESSIONS_PAGE_MAX}");
            return Err(invalid(message));
        }
        let listing = if params.include_temp.unwrap_or(false) {
            Listing::WithTemporary
        } else {
            Listing::Restorable
        };
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        let most = usize::try_from(limit).expect("the bound of a page is small");
        let page = self.rpc.pool.list_sessions(listing, from, most).await;
        let page = page.map_err(|error| Code::of_sessions(&error))?;
        let sessions = page.sessions.into_iter().map(SessionEntry::from).collect();
        Ok(ListSessionsResult { total: page.total, offset, limit, sessions })
    }

    pub(super) async fn show_session(
        &self,
        params: ShowSessionParams,
    ) -> Result<SessionFile, ErrorObject> {
        let session = session(&params.session_name)?;
        let shown = self.rpc.pool.show_session(&session).await;
        shown.map_err(|error| Code::of_sessions(&error))
    }

    pub(super) async fn load_session(
        &self,
        params: LoadSessionParams,
    ) -> Result<LoadSessionResult, ErrorObject> {
        let request = LoadRequest {
            session: session(&params.session_name)?,
            agent_id: params.agent_id,
            preset: params.preset,
            model: params.model,
            overwrite: overwrite(params.overwrite),
        };
        let agent = self.rpc.pool.load_session(request).await;
        let agent = agent.map_err(|error| Code::of_sessions(&error))?;
        let message_count = agent.status().message_count;
        Ok(LoadSessionResult { restored: true, agent_id: agent.id(), message_count })
    }

    pub(super) async fn save_session(
        &self,
        params: SaveSessionParams,
    ) -> Result<SaveSessionResult, ErrorObject> {
        let agent_id = params.agent_id;
        let name = params.session_name.as_deref().map(SessionName::parse).transpose();
        let name = name.map_err(|error| invalid(error.to_string()))?;
        let overwrite = overwrite(params.overwrite);
        let saved = self.rpc.pool.save_session(&agent_id, name, overwrite).await;
        let saved = saved.map_err(|error| Code::of_sessions(&error))?;
        // A temporary agent has the name of its session from now on.
        let agent_id = if agent_id.is_temp() { saved.id().clone() } else { agent_id };
        Ok(SaveSessionResult { saved: true, session_name: saved.to_string(), agent_id })
    }
}

impl From<ListedSession> for SessionEntry {
    fn from(ListedSession { name, summary }: ListedSession) -> Self {
        Self {
            message_count: summary.message_count,
            created_at: seconds(summary.created_at),
            updated_at: seconds(summary.modified_at),
            is_temp: name.is_temp(),
            name,
            provenance: summary.provenance,
            model: summary.model,
            permission_level: summary.permission_level,
            cwd: summary.working_directory.display().to_string(),
        }
    }
}

fn session(name: &str) -> Result<Session, ErrorObject> {
    Session::parse(name).map_err(|error| Code::of_sessions(&SessionsError::from(error)))
}

fn overwrite(given: Option<bool>) -> Overwrite {
    if given.unwrap_or(false) { Overwrite::Replace } else { Overwrite::Refuse }
}

/// To the millisecond, which a float holds exactly enough.
#[expect(clippy::cast_precision_loss, reason = "milliseconds of this age fit into 53 bits")]
fn seconds(time: Timestamp) -> f64 {
    time.as_millisecond() as f64 / 1000.0
}
