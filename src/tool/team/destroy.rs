//! `nexus_destroy`: ends an agent below the calling one, with all below that.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Act, OnTeam};
use crate::id::AgentId;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NexusDestroy {
    /// Whom.
    agent_id: AgentId,
}

impl OnTeam for NexusDestroy {
    const NAME: &'static str = "nexus_destroy";
    const DESCRIPTION: &'static str = "Ends an agent below you, with everything that it runs and all \
                                       agents below it. Nothing brings it back.";

    fn act(self) -> Act {
        Act::Destroy { id: self.agent_id }
    }
}
