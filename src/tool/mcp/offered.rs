//! What a server says it has, as definitions for models: under names that no other tool has and that
//! every provider takes. What cannot be offered is left out, with the reason. Pure.

use std::collections::BTreeSet;

use rmcp::model::Tool;
use serde_json::{Map, Value, json};

use super::PREFIX;
use crate::config::McpServer;
use crate::limits::{
    MCP_REFUSED_TOLD_MAX, MCP_TOOL_BYTES_MAX, MCP_TOOL_NAME_CHARS_MAX, MCP_TOOLS_MAX,
};
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

/// A list of tools that comes page by page. What is not offered is not kept.
pub(super) struct Listing<'a> {
    server: &'a str,
    config: &'a McpServer,
    offered: Offered,
    names: BTreeSet<String>,
    listed: usize,
    /// Refused, and not told by name.
    untold: usize,
}

impl<'a> Listing<'a> {
    pub(super) fn new(server: &'a str, config: &'a McpServer) -> Self {
        let (offered, names) = (Offered::default(), BTreeSet::new());
        Self { server, config, offered, names, listed: 0, untold: 0 }
    }

    pub(super) fn add(&mut self, tools: &[Tool]) {
        for tool in tools {
            self.listed += 1;
            match self.offer(tool) {
                Ok(offer) => self.offered.tools.push(offer),
                Err(_) if self.offered.refused.len() >= MCP_REFUSED_TOLD_MAX => self.untold += 1,
                Err(problem) => {
                    let name = self.config.hide(&tool.name);
                    self.offered.refused.push(format!("{}: {problem}", Given::new(&name)));
                }
            }
        }
    }

    /// Whether there are more than can be offered.
    pub(super) fn is_full(&self) -> bool {
        self.listed > MCP_TOOLS_MAX
    }

    pub(super) fn end(mut self) -> Offered {
        if self.untold > 0 {
            self.offered.refused.push(format!("and {} others", self.untold));
        }
        self.offered
    }

    fn offer(&mut self, tool: &Tool) -> Result<Offer, String> {
        if self.offered.tools.len() >= MCP_TOOLS_MAX {
            return Err(format!("there are {MCP_TOOLS_MAX} of this server already"));
        }
        let name = format!("{PREFIX}{}__{}", self.server, tool.name);
        if let Some(problem) = unusable(&name, &tool.name) {
            return Err(problem);
        }
        if self.config.hide(&tool.name) != tool.name {
            return Err("its name tells what nobody is shown of its configuration".to_owned());
        }
        if !self.names.insert(name.clone()) {
            return Err("another tool of this server has that name".to_owned());
        }
        define(name, tool, self.config)
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

fn define(name: String, tool: &Tool, config: &McpServer) -> Result<Offer, String> {
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
    let mut parameters = Value::Object(schema);
    if description.len() + parameters.to_string().len() > MCP_TOOL_BYTES_MAX {
        return Err(format!("its description has more than {MCP_TOOL_BYTES_MAX} bytes"));
    }
    config.hide_in(&mut parameters);
    let definition = ToolDefinition {
        name: name.into(),
        description: config.hide(description).into(),
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

    fn offered(server: &str, listed: &[Tool]) -> Offered {
        let form = json!({"command": "x", "env": {"KEY": "hunter22"}});
        let config = McpServer::of(serde_json::from_value(form).unwrap(), None).unwrap();
        let mut listing = Listing::new(server, &config);
        listing.add(listed);
        listing.end()
    }

    #[test]
    fn what_models_could_not_call_is_left_out_and_told() {
        let long = "x".repeat(60);
        let listed =
            ["read", "read", "a.b", "", &long].map(|name| tool(name, json!({"type": "object"})));
        let Offered { tools, refused } = offered("files", &listed);
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
        let listed = [tool("t", json!({}))];
        let offered = offered("s", &listed);
        let parameters = &offered.tools[0].definition.parameters;
        assert_eq!(parameters["type"], "object");
        assert_eq!(parameters["properties"][PARALLEL_ARGUMENT]["type"], "boolean");
    }

    #[test]
    fn only_so_many_are_offered_and_only_some_of_the_others_are_told_by_name() {
        let listed: Vec<Tool> = (0..5000).map(|n| tool(&format!("t{n}"), json!({}))).collect();
        let Offered { tools, refused } = offered("s", &listed);
        assert_eq!(tools.len(), MCP_TOOLS_MAX);
        assert_eq!(refused.len(), MCP_REFUSED_TOLD_MAX + 1);
        let untold = listed.len() - MCP_TOOLS_MAX - MCP_REFUSED_TOLD_MAX;
        assert_eq!(refused.last(), Some(&format!("and {untold} others")));
    }

    #[test]
    fn no_secret_of_a_server_is_in_what_it_offers() {
        let schema = json!({"properties": {"a": {"default": "hunter22"}}});
        let mut listed = vec![tool("t", schema), tool("hunter22", json!({}))];
        listed[0].description = Some("It knows hunter22.".into());
        let offered = offered("s", &listed);
        let told = format!("{offered:?}");
        assert!(told.contains("It knows [redacted].") && !told.contains("hunter22"), "{told}");
        assert_eq!((offered.tools.len(), offered.refused.len()), (1, 1));
    }
}
