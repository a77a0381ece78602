//! The methods that change which sessions there are: their names, copies, and end.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Call;
use super::code::Code;
use super::params::invalid;
use super::wire::ErrorObject;
use crate::id::AgentId;
use crate::limits::PRUNED_DAYS_MAX;
use crate::pool::{Pruning, SessionsError};
use crate::session::SessionName;

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PruneSessionsParams {
    pub older_than_days: u64,
    /// Tells what would be removed, and removes nothing. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dry_run: Option<bool>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PruneSessionsResult {
    /// What they were called, in the order in which they were created.
    pub removed: Vec<AgentId>,
    /// Of what was kept of them, and of their logs.
    pub bytes: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CloneSessionParams {
    pub src_session: String,
    /// Nothing may have this name.
    pub dest_session: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CloneSessionResult {
    pub cloned: bool,
    pub src_session: String,
    pub dest_session: String,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RenameSessionParams {
    pub old_name: String,
    /// Nothing may have this name.
    pub new_name: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RenameSessionResult {
    pub renamed: bool,
    pub old_name: String,
    pub new_name: String,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DeleteSessionParams {
    pub session_name: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeleteSessionResult {
    pub deleted: bool,
    pub session_name: String,
}

impl Call<'_> {
    pub(super) async fn clone_session(
        &self,
        params: CloneSessionParams,
    ) -> Result<CloneSessionResult, ErrorObject> {
        let CloneSessionParams { src_session, dest_session } = params;
        let cloned = self.rpc.pool.clone_session(name(&src_session)?, name(&dest_session)?).await;
        cloned.map_err(|error| Code::of_sessions(&error))?;
        Ok(CloneSessionResult { cloned: true, src_session, dest_session })
    }

    pub(super) async fn rename_session(
        &self,
        params: RenameSessionParams,
    ) -> Result<RenameSessionResult, ErrorObject> {
        let RenameSessionParams { old_name, new_name } = params;
        let renamed = self.rpc.pool.rename_session(name(&old_name)?, name(&new_name)?).await;
        renamed.map_err(|error| Code::of_sessions(&error))?;
        Ok(RenameSessionResult { renamed: true, old_name, new_name })
    }

    pub(super) async fn delete_session(
        &self,
        params: DeleteSessionParams,
    ) -> Result<DeleteSessionResult, ErrorObject> {
        let session_name = params.session_name;
        let deleted = self.rpc.pool.delete_session(name(&session_name)?).await;
        deleted.map_err(|error| Code::of_sessions(&error))?;
        Ok(DeleteSessionResult { deleted: true, session_name })
    }

    pub(super) async fn prune_sessions(
        &self,
        params: PruneSessionsParams,
    ) -> Result<PruneSessionsResult, ErrorObject> {
        let PruneSessionsParams { older_than_days, dry_run } = params;
        if older_than_days > PRUNED_DAYS_MAX {
            let message = format!("it is more than {PRUNED_DAYS_MAX}");
            return Err(invalid(format!("Invalid parameter older_than_days: {message}")));
        }
        let pruning = if dry_run.unwrap_or(false) { Pruning::Dry } else { Pruning::Real };
        let pruned = self.rpc.pool.prune(older_than_days, pruning).await;
        let pruned = pruned.map_err(|error| Code::of_store(&error))?;
        Ok(PruneSessionsResult { removed: pruned.removed, bytes: pruned.bytes })
    }
}

fn name(text: &str) -> Result<SessionName, ErrorObject> {
    SessionName::parse(text).map_err(|error| Code::of_sessions(&SessionsError::from(error)))
}
