//! `nexus_status`: how an agent below the calling one is doing.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Act, OnTeam};
use crate::id::AgentId;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NexusStatus {
    /// Of whom.
    agent_id: AgentId,
}

impl OnTeam for NexusStatus {
    const NAME: &'static str = "nexus_status";
    const DESCRIPTION: &'static str = "Tells what an agent below you is doing, how many messages wait \
                                       for it, and how long its conversation is.";

    fn act(self) -> Act {
        Act::Status { of: self.agent_id }
    }
}
