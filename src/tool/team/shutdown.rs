//! `nexus_shutdown`: stops the server.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Act, OnTeam};
use crate::policy::{Leave, Level, Permissions};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NexusShutdown {}

impl OnTeam for NexusShutdown {
    const NAME: &'static str = "nexus_shutdown";
    const DESCRIPTION: &'static str = "Stops the whole server, with all agents. Turns that run, yours \
                                       too, have a few seconds to end.";

    fn leave(permissions: &Permissions) -> Leave {
        match permissions.level() {
            Level::Yolo => Leave::Free,
            Level::Trusted => Leave::Confirm,
            Level::Sandboxed => Leave::Never,
        }
    }

    fn act(self) -> Act {
        Act::Shutdown
    }
}
