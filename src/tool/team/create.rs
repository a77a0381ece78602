//! `nexus_create`: a child of the calling agent. It takes the params of the method `create_agent`, which
//! are these.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Act, OnTeam, Waits, Wanted};
use crate::id::AgentId;
use crate::policy::budget::Limits;
use crate::policy::{Leave, Permissions, Side};

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateAgentParams {
    /// Its name; `.` asks for the next temporary one. Default: drawn by the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// What it may do: `trusted`, `sandboxed`, `worker`, or one of the configuration. Default:
    /// `sandboxed`, unless configured otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
    /// What its model is told first. Default: made from the files of its directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// An existing directory, relative to the parent's. Default: the parent's, else the server's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Where a `sandboxed` one may write, within its directory. Default: nowhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_write_paths: Option<Vec<String>>,
    /// An alias of the configuration, or `provider/model-id`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Tools that it does not get.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_tools: Option<Vec<String>>,
    /// Whose child it is. An agent creates only children of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_agent_id: Option<AgentId>,
    /// A first message, which begins a turn at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_message: Option<String>,
    /// Whether to wait for the end of that turn. Default: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_for_initial_response: Option<bool>,
    /// What it and all below it may use together, out of what its parent has left. Default: no limits
    /// of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
}

impl OnTeam for CreateAgentParams {
    const NAME: &'static str = "nexus_create";
    const DESCRIPTION: &'static str = "Creates an agent below you, with fewer rights than yours. It \
                                       works on what you send it with nexus_send.";
    const PATHS: Wanted = &[("cwd", Side::Read)];

    fn leave(permissions: &Permissions) -> Leave {
        if permissions.rights().may_create { Leave::Free } else { Leave::Never }
    }

    fn waits(arguments: &Value) -> Waits {
        match arguments["wait_for_initial_response"].as_bool() {
            Some(true) => Waits::ForAgents,
            Some(false) | None => Waits::ForItself,
        }
    }

    fn act(self) -> Act {
        Act::Create(Box::new(self))
    }
}
