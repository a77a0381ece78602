//! The tools of `nexus3 mcp`: their names, arguments and schemas. What they do is done elsewhere.

use std::sync::Arc;

use rmcp::model::Tool;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::id::{AgentId, RequestId};
use crate::rpc::method::CreateAgentParams;

/// A call, read.
pub(super) enum Asked {
    Create(Box<CreateAgentParams>),
    Send(Send),
    Status(Of),
    Cancel(Cancel),
    List,
    Destroy(Of),
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Send {
    pub(super) agent_id: AgentId,
    pub(super) content: String,
    /// Seconds that the answer may take.
    pub(super) timeout: Option<f64>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Of {
    pub(super) agent_id: AgentId,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Cancel {
    pub(super) agent_id: AgentId,
    /// One request. Default: everything that runs and waits.
    pub(super) request_id: Option<RequestId>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

impl Asked {
    pub(super) fn read(tool: &str, arguments: Value) -> Result<Self, String> {
        match tool {
            "create" => typed(arguments).map(Self::Create),
            "send" => typed(arguments).map(Self::Send),
            "status" => typed(arguments).map(Self::Status),
            "cancel" => typed(arguments).map(Self::Cancel),
            "list" => typed::<Nothing>(arguments).map(|_| Self::List),
            "destroy" => typed(arguments).map(Self::Destroy),
            _ => Err(format!("there is no tool `{tool}`")),
        }
    }
}

fn typed<T: DeserializeOwned>(arguments: Value) -> Result<T, String> {
    serde_json::from_value(arguments).map_err(|error| error.to_string())
}

pub(super) fn all() -> Vec<Tool> {
    vec![
        tool::<CreateAgentParams>("create", "Creates an agent. Returns its `agent_id`."),
        tool::<Send>("send", "Sends an agent a message and waits for its answer, in `content`."),
        tool::<Of>("status", "Tells how an agent is: what it does, its model, tokens, context."),
        tool::<Cancel>("cancel", "Cancels what an agent does."),
        tool::<Nothing>("list", "Lists the agents."),
        tool::<Of>("destroy", "Ends an agent, everything it runs and the agents below it."),
    ]
}

fn tool<T: JsonSchema>(name: &'static str, about: &'static str) -> Tool {
    let schema = schemars::generate::SchemaSettings::draft2020_12()
        .with(|settings| settings.inline_subschemas = true)
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value();
    let schema: Map<String, Value> = schema.as_object().cloned().unwrap_or_default();
    Tool::new(name, about, Arc::new(schema))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_tool_that_is_offered_can_be_called() {
        for tool in all() {
            let named = ["send", "status", "cancel", "destroy"].contains(&tool.name.as_ref());
            let arguments = match tool.name.as_ref() {
                "send" => json!({"agent_id": "a", "content": "x"}),
                _ if named => json!({"agent_id": "a"}),
                _ => json!({}),
            };
            assert!(Asked::read(&tool.name, arguments).is_ok(), "{}", tool.name);
            assert_eq!(tool.input_schema["type"], "object", "{}", tool.name);
        }
        assert!(Asked::read("fly", json!({})).is_err());
        assert!(Asked::read("list", json!({"more": 1})).is_err());
    }
}
