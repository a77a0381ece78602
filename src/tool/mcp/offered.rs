//! What a server says it has, as definitions for models: under names that no other tool has and that
//! every provider takes. What cannot be offered is left out, with the reason. Pure.

use std::collections::BTreeSet;

use rmcp::model::Tool;
use serde_json::{Map, Value, json};

use super::PREFIX;
use crate::limits::{MCP_TOOL_BYTES_MAX, MCP_TOOL_NAME_CHARS_MAX, MCP_TOOLS_MAX};
use crate::message::ToolDefinition;
use crate::tool::PARALLEL_ARGUMENT;
use crate::tool::error::Given;

/// One tool of a server.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Offer {
    /// As the server calls it.
    pub(super) tool: String,
    pub(super) definition: ToolDefinition,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Offered {
    pub(super) tools: Vec<Offer>,
    /// What is not among them, and why.
    pub(super) refused: Vec<String>,
}

impl Offered {
    pub(super) fn of(server: &str, listed: Vec<Tool>) -> Self {
        let mut offered = Self::default();
        let mut names = BTreeSet::new();
        for tool in listed {
            let name = format!("{PREFIX}{server}__{}", tool.name);
            let problem = if offered.tools.len() >= MCP_TOOLS_MAX {
                Some(format!("there are {MCP_TOOLS_MAX} of this server already"))
            } else if !names.insert(name.clone()) {
                Some("another tool of this server has that name".to_owned())
            } else {
                unusable(&name, &tool.name)
            };
            let offer = match problem {
                Some(problem) => Err(problem),
                None => define(name, &tool),
            };
            match offer {
                Ok(offer) => offered.tools.push(offer),
                Err(problem) => {
                    offered.refused.push(format!("{}: {problem}", Given::new(&tool.name)));
                }
            }
        }
        offered
    }
}

/// What is wrong with the name of a tool.
fn unusable(name: &str, tool: &str) -> Option<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if tool.is_empty() || !tool.chars().all(plain) {
        return Some("models can only call names of letters, digits, `_` and `-`".to_owned());
    }
    (name.len() > MCP_TOOL_NAME_CHARS_MAX)
        .then(|| format!("its name would have more than {MCP_TOOL_NAME_CHARS_MAX} characters"))
}

fn define(name: String, tool: &Tool) -> Result<Offer, String> {
    let mut schema = Map::clone(&tool.input_schema);
    if schema.get("type").is_none_or(|kind| kind != "object") {
        schema.insert("type".to_owned(), "object".into());
    }
    let properties = schema.entry("properties").or_insert_with(|| json!({}));
    if !properties.is_object() {
        return Err("its schema is none of an object".to_owned());
    }
    // A tool with an argument of this name never gets it: the batch takes it away.
    properties[PARALLEL_ARGUMENT] = json!({
        "type": "boolean",
        "description": "Run all tool calls of this message at the same time."
    });
    let description = tool.description.as_deref().or(tool.title.as_deref()).unwrap_or_default();
    let parameters = Value::Object(schema);
    if description.len() + parameters.to_string().len() > MCP_TOOL_BYTES_MAX {
        return Err(format!("its description has more than {MCP_TOOL_BYTES_MAX} bytes"));
    }
    let definition = ToolDefinition {
        name: name.into(),
        description: description.to_owned().into(),
        parameters: parameters.into(),
    };
    Ok(Offer { tool: tool.name.to_string(), definition })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn tool(name: &str, schema: Value) -> Tool {
        let Value::Object(schema) = schema else { panic!("a schema is an object") };
        Tool::new(name.to_owned(), "Does it.", Arc::new(schema))
    }

    #[test]
    fn what_models_could_not_call_is_left_out_and_told() {
        let long = "x".repeat(60);
        let listed =
            ["read", "read", "a.b", "", &long].map(|name| tool(name, json!({"type": "object"})));
        let Offered { tools, refused } = Offered::of("files", listed.to_vec());
        let names: Vec<_> = tools.iter().map(|offer| offer.definition.name.as_ref()).collect();
        assert_eq!(names, ["mcp__files__read"]);
        let reasons: Vec<_> =
            refused.iter().filter_map(|told| Some(told.split_once(": ")?.1)).collect();
        assert_eq!(
            reasons,
            [
                "another tool of this server has that name",
                "models can only call names of letters, digits, `_` and `-`",
                "models can only call names of letters, digits, `_` and `-`",
                "its name would have more than 64 characters",
            ]
        );
    }

    #[test]
    fn every_schema_has_the_argument_of_all_tools() {
        let listed = vec![tool("t", json!({}))];
        let offered = Offered::of("s", listed);
        let parameters = &offered.tools[0].definition.parameters;
        assert_eq!(parameters["type"], "object");
        assert_eq!(parameters["properties"][PARALLEL_ARGUMENT]["type"], "boolean");
    }
}
