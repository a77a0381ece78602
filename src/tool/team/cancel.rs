//! `nexus_cancel`: ends what an agent below the calling one runs and has waiting.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Act, OnTeam};
use crate::id::{AgentId, RequestId};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NexusCancel {
    /// Of whom.
    agent_id: AgentId,
    /// Which request. Default: everything that runs and waits.
    request_id: Option<RequestId>,
}

impl OnTeam for NexusCancel {
    const NAME: &'static str = "nexus_cancel";
    const DESCRIPTION: &'static str = "Cancels what an agent below you is doing. The agent stays.";

    fn act(self) -> Act {
        Act::Cancel { of: self.agent_id, request: self.request_id }
    }
}
