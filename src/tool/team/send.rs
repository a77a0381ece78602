//! `nexus_send`: a message to another agent, and the wait for its answer.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{Act, OnTeam, Waits};
use crate::id::AgentId;
use crate::policy::{Leave, Permissions, SendRule};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NexusSend {
    /// To whom.
    agent_id: AgentId,
    /// The message, with all that the other needs to know: it sees nothing of your conversation.
    #[schemars(length(min = 1))]
    content: String,
}

impl OnTeam for NexusSend {
    const NAME: &'static str = "nexus_send";
    const DESCRIPTION: &'static str = "Sends a message to an agent and waits for its answer, however \
                                       long that takes. It remembers earlier messages.";

    fn leave(permissions: &Permissions) -> Leave {
        match permissions.rights().send {
            SendRule::Anyone | SendRule::ParentOnly => Leave::Free,
            SendRule::Nobody => Leave::Never,
        }
    }

    /// One that may send to its parent only and never had any has nobody to send to.
    fn is_of_use(permissions: &Permissions) -> bool {
        match permissions.rights().send {
            SendRule::Anyone => true,
            SendRule::ParentOnly | SendRule::Nobody => permissions.ceiling().is_some(),
        }
    }

    fn waits(_: &Value) -> Waits {
        Waits::ForAgents
    }

    fn act(self) -> Act {
        Act::Send { to: self.agent_id, content: self.content.into() }
    }
}
