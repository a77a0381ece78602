//! What a server says it has, as definitions for models: under names that no other tool has and that
//! every provider takes. What cannot be offered is left out, with the reason. Pure.

use std::collections::BTreeSet;
use std::sync::Arc;

use rmcp::model::{CustomResult, ServerResult, Tool};
use serde_json::{Map, Value, json};

use super::PREFIX;
use crate::config::McpServer;
use crate::limits::{
    MCP_OFFER_BYTES_MAX, MCP_REFUSED_TOLD_MAX, MCP_TOOL_BYTES_MAX, MCP_TOOL_NAME_CHARS_MAX,
    MCP_TOOLS_MAX,
};
use crate::message::ToolDefinition;
use crate::tool::PARALLEL_ARGUMENT;
use crate::tool::error::Given;

/// One tool of a server.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Offer {
    /// As the server calls it.
    pub(super) tool: String,
    /// What its arguments have to fit, as the server says it.
    pub(super) schema: Arc<Map<String, Value>>,
    pub(super) definition: ToolDefinition,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Offered {
    pub(super) tools: Vec<Offer>,
    /// What is not among them, and why.
    pub(super) refused: Vec<String>,
}

/// One page of a list of tools.
pub(super) struct Page {
    tools: Vec<Result<Tool, Broken>>,
    /// Where the next one begins.
    pub(super) next: Option<String>,
}

/// What stands in a list and is no tool, with its name if it has one.
struct Broken(String);

impl Page {
    /// A page, if an answer is one. What is wrong with one tool takes no other along.
    pub(super) fn of(answer: ServerResult) -> Option<Self> {
        match answer {
            ServerResult::ListToolsResult(page) => {
                let tools = page.tools.into_iter().map(Ok).collect();
                Some(Self { tools, next: page.next_cursor })
            }
            // What the library cannot read whole.
            ServerResult::CustomResult(CustomResult(mut page)) => {
                let Value::Array(tools) = page.get_mut("tools")?.take() else { return None };
                let tool = |tool: Value| {
                    let name = tool["name"].as_str().unwrap_or_default().to_owned();
                    serde_json::from_value(tool).map_err(|_| Broken(name))
                };
                let next = page["nextCursor"].as_str().map(str::to_owned);
                Some(Self { tools: tools.into_iter().map(tool).collect(), next })
            }
            _ => None,
        }
    }
}

/// A list of tools that comes page by page. What is not offered is not kept.
pub(super) struct Listing<'a> {
    server: &'a str,
    config: &'a McpServer,
    offered: Offered,
    names: BTreeSet<String>,
    listed: usize,
    /// Of the definitions that are offered.
    bytes: usize,
    /// Refused, and not told by name.
    untold: usize,
}

impl<'a> Listing<'a> {
    pub(super) fn new(server: &'a str, config: &'a McpServer) -> Self {
        let (offered, names) = (Offered::default(), BTreeSet::new());
        Self { server, config, offered, names, listed: 0, bytes: 0, untold: 0 }
    }

    pub(super) fn add(&mut self, page: &Page) {
        for tool in &page.tools {
            self.listed += 1;
            let (name, offer) = match tool {
                Ok(tool) => (tool.name.as_ref(), self.offer(tool)),
                Err(Broken(name)) => {
                    (name.as_str(), Err("its definition is none, by the protocol".to_owned()))
                }
            };
            match offer {
                Ok(offer) => self.offered.tools.push(offer),
                Err(problem) => {
                    let name = self.config.hide(name);
                    self.refuse(format!("{}: {problem}", Given::new(&name)));
                }
            }
        }
    }

    /// Nobody asks for the pages that are left.
    pub(super) fn break_off(&mut self) {
        self.offered.refused.push("what else it lists: it has no end to its pages".to_owned());
    }

    fn refuse(&mut self, told: String) {
        if self.offered.refused.len() >= MCP_REFUSED_TOLD_MAX {
            self.untold += 1;
        } else {
            self.offered.refused.push(told);
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
        let offer = define(name, tool, self.config)?;
        let bytes = bytes(&offer.definition);
        if self.bytes + bytes > MCP_OFFER_BYTES_MAX {
            return Err(format!(
                "the tools of this server have more than {MCP_OFFER_BYTES_MAX} bytes together"
            ));
        }
        self.bytes += bytes;
        Ok(offer)
    }
}

/// What a definition takes of every request to a model.
fn bytes(definition: &ToolDefinition) -> usize {
    definition.description.len() + definition.parameters.text().len()
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
    let description = match besides(&mut schema) {
        Some(more) => format!("{description}\n\nThe arguments must also fit {more}."),
        None => description.to_owned(),
    };
    let mut parameters = Value::Object(schema);
    config.hide_in(&mut parameters);
    let definition = ToolDefinition {
        name: name.into(),
        description: config.hide(&description).into(),
        parameters: parameters.into(),
    };
    if bytes(&definition) > MCP_TOOL_BYTES_MAX {
        return Err(format!("its description has more than {MCP_TOOL_BYTES_MAX} bytes"));
    }
    let schema = Arc::clone(&tool.input_schema);
    Ok(Offer { tool: tool.name.to_string(), schema, definition })
}

/// What providers refuse beside the properties, and with it every request that has the tool. It is taken out,
/// for the description to say.
fn besides(schema: &mut Map<String, Value>) -> Option<Value> {
    let taken: Map<String, Value> = ["oneOf", "anyOf", "allOf", "not", "enum"]
        .into_iter()
        .filter_map(|key| Some((key.to_owned(), schema.shift_remove(key)?)))
        .collect();
    (!taken.is_empty()).then_some(Value::Object(taken))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, schema: Value) -> Tool {
        let Value::Object(schema) = schema else { panic!("a schema is an object") };
        Tool::new(name.to_owned(), "Does it.", Arc::new(schema))
    }

    fn offered(server: &str, listed: &[Tool]) -> Offered {
        let form = json!({"command": "x", "env": {"KEY": "hunter22"}});
        let config = McpServer::of(serde_json::from_value(form).unwrap(), None).unwrap();
        let mut listing = Listing::new(server, &config);
        listing.add(&Page { tools: listed.iter().cloned().map(Ok).collect(), next: None });
        listing.end()
    }

    fn reasons(refused: &[String]) -> Vec<&str> {
        refused.iter().filter_map(|told| Some(told.split_once(": ")?.1)).collect()
    }

    #[test]
    fn what_models_could_not_call_is_left_out_and_told() {
        let long = "x".repeat(60);
        let listed =
            ["read", "read", "a.b", "", &long].map(|name| tool(name, json!({"type": "object"})));
        let Offered { tools, refused } = offered("files", &listed);
        let names: Vec<_> = tools.iter().map(|offer| offer.definition.name.as_ref()).collect();
        assert_eq!(names, ["mcp__files__read"]);
        assert_eq!(
            reasons(&refused),
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
    fn what_providers_refuse_of_a_schema_stands_in_the_description() {
        let given = json!({"properties": {"a": {}, "b": {}}, "oneOf": [{"required": ["a"]}]});
        let offered = offered("s", &[tool("t", given.clone())]);
        let Offer { schema, definition, .. } = &offered.tools[0];
        assert_eq!(Value::Object(Map::clone(schema)), given);
        let keys: Vec<_> = definition.parameters.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["properties", "type"]);
        let told = r#"Does it.

The arguments must also fit {"oneOf":[{"required":["a"]}]}."#;
        assert_eq!(definition.description.as_ref(), told);
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
    fn a_tool_that_is_none_takes_no_other_along() {
        let page = json!({
            "tools": [
                {"name": "good", "inputSchema": {}},
                {"name": "bare"},
                {"name": "odd", "inputSchema": true},
                {"name": 5, "inputSchema": {}},
                "what?",
            ],
            "nextCursor": "2",
        });
        let page = Page::of(serde_json::from_value(page).unwrap()).unwrap();
        assert_eq!(page.next.as_deref(), Some("2"));
        let config = McpServer::of(serde_json::from_value(json!({"command": "x"})).unwrap(), None);
        let config = config.unwrap();
        let mut listing = Listing::new("s", &config);
        listing.add(&page);
        let Offered { tools, refused } = listing.end();
        assert_eq!(tools.iter().map(|offer| offer.tool.as_str()).collect::<Vec<_>>(), ["good"]);
        let told = ["`bare`", "`odd`", "``", "``"]
            .map(|name| format!("{name}: its definition is none, by the protocol"));
        assert_eq!(refused, told);
        let no_list = serde_json::from_value(json!({"toolz": []})).unwrap();
        assert!(Page::of(no_list).is_none());
    }

    #[test]
    fn the_tools_of_one_server_leave_room_in_what_a_model_is_asked() {
        let long = "word ".repeat(10 * 1024);
        let listed: Vec<Tool> = (0..9)
            .map(|n| Tool::new(format!("t{n}"), long.clone(), Arc::new(Map::new())))
            .collect();
        let Offered { tools, refused } = offered("s", &listed);
        assert_eq!(tools.len(), 5);
        let told = "the tools of this server have more than 262144 bytes together";
        assert_eq!(reasons(&refused), [told; 4]);
    }

    #[test]
    fn no_secret_of_a_server_is_in_what_it_offers() {
        let schema = json!({"properties": {"a": {"default": "hunter22"}}});
        let mut listed = vec![tool("t", schema), tool("hunter22", json!({}))];
        listed[0].description = Some("It knows hunter22.".into());
        let offered = offered("s", &listed);
        let shown: Vec<_> = offered.tools.iter().map(|offer| &offer.definition).collect();
        let told = format!("{shown:?} {:?}", offered.refused);
        assert!(told.contains("It knows [redacted].") && !told.contains("hunter22"), "{told}");
        assert_eq!((offered.tools.len(), offered.refused.len()), (1, 1));
    }
}
