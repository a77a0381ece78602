//! The methods that change which sessions there are: their names, copies, and end.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Call;
use super::code::Code;
use super::params::invalid;
use super::wire::ErrorObject;
use crate::id::AgentId;
use crate::limits::PRUNED_DAYS_MAX;
use crate::pool::Pruning;

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

impl Call<'_> {
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
