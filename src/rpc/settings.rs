//! The params and results of the methods about what an agent is set to: its model, its prompt and what
//! it may do. `method` has all others. Types only.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::id::AgentId;
use crate::policy::{Allowances, Level, PolicyView, Rule, Verdict};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GetModelResult {
    /// Its alias, or `provider/model-id`.
    pub model: String,
    pub provider: String,
    /// Whether it is asked to think before it answers.
    pub reasoning: bool,
    pub context_window: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SetModelParams {
    /// An alias of the configuration, or `provider/model-id`.
    pub model: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SetModelResult {
    pub updated: bool,
    pub model: String,
    pub provider: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GetSystemPromptResult {
    pub system_prompt: String,
    /// The nearest of the files it was made from.
    pub system_prompt_path: Option<String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct SetSystemPromptParams {
    pub system_prompt: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SetSystemPromptResult {
    pub updated: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GetPermissionsResult {
    pub permission_level: Level,
    pub preset: String,
    /// What the configuration says about the preset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub disabled_tools: BTreeSet<String>,
    pub policy: PolicyView,
    pub session_allowances: Allowances,
    pub depth: u32,
    pub parent_agent_id: Option<AgentId>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct SetPermissionsParams {
    pub preset: String,
    /// Taken from what the preset gives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disable_tools: Option<Vec<String>>,
    /// Given back of what the preset or `disable_tools` take; what the level forbids stays forbidden.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enable_tools: Option<Vec<String>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SetPermissionsResult {
    pub updated: bool,
    #[serde(flatten)]
    pub permissions: GetPermissionsResult,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct SetCwdParams {
    /// An existing directory that the agent may use, relative to its working directory.
    pub cwd: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SetCwdResult {
    pub cwd: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ExplainPermissionParams {
    pub tool: String,
    /// Those of the call. Without them only the tool itself is decided on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Map<String, Value>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExplainPermissionResult {
    pub decision: Verdict,
    /// The rule that decided.
    pub rule: Rule,
    pub reason: String,
}
