//! Tools: what a model may ask an agent to do. One file per tool; this one is the trait and the
//! registry. A tool never decides whether it may run: that is `policy`.

mod echo;
pub mod edit; // what stands behind the tools that change files
mod sleep;

use std::collections::BTreeSet;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::message::{ToolCall, ToolDefinition};
use crate::world::BoxFuture;

/// What a tool gave back. An `Err` is shown to the model as a failed call, in these words.
pub type ToolOutput = Result<String, String>;

trait Tool: Send + Sync {
    fn definition(&self) -> ToolDefinition;
    /// Runs one call. Dropping the future cancels it.
    fn run(&self, arguments: &Value) -> BoxFuture<'static, ToolOutput>;
}

/// All tools there are, in the order models see them.
pub struct Tools {
    tools: Vec<(ToolDefinition, Box<dyn Tool>)>,
}

impl std::fmt::Debug for Tools {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

impl Default for Tools {
    fn default() -> Self {
        let tools: [Box<dyn Tool>; 2] = [Box::new(sleep::Sleep), Box::new(echo::Echo)];
        Self { tools: tools.into_iter().map(|tool| (tool.definition(), tool)).collect() }
    }
}

impl Tools {
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.tools.iter().map(|(definition, _)| definition.name)
    }

    /// The definitions for an agent for which `disabled` tools do not exist.
    pub fn definitions(&self, disabled: &BTreeSet<String>) -> Arc<[ToolDefinition]> {
        let enabled =
            self.tools.iter().filter(|(definition, _)| !disabled.contains(definition.name));
        enabled.map(|(definition, _)| definition.clone()).collect()
    }

    /// Runs a call, or says what is wrong with it in words that help the model to do better.
    pub fn run(
        &self,
        call: &ToolCall,
        disabled: &BTreeSet<String>,
    ) -> BoxFuture<'static, ToolOutput> {
        let found = self.tools.iter().find(|(definition, _)| {
            definition.name == call.name && !disabled.contains(definition.name)
        });
        let Some((_, tool)) = found else {
            let known: Vec<&str> = self.names().filter(|name| !disabled.contains(*name)).collect();
            let problem =
                format!("Unknown tool: {}. Tools you have: {}.", call.name, known.join(", "));
            return Box::pin(async move { Err(problem) });
        };
        tool.run(&call.arguments)
    }
}

/// A definition whose schema comes from the argument type, with the `_parallel` that every tool has.
fn definition<T: JsonSchema>(name: &'static str, description: &'static str) -> ToolDefinition {
    let mut parameters = schemars::schema_for!(T).to_value();
    if let Some(schema) = parameters.as_object_mut() {
        schema.shift_remove("$schema");
        schema.shift_remove("title");
    }
    parameters["properties"]["_parallel"] = json!({
        "type": "boolean",
        "description": "Run all tool calls of this message at the same time."
    });
    ToolDefinition { name, description, parameters }
}

/// The arguments as the tool's own type. The error names the argument and what was expected.
fn arguments<T: DeserializeOwned>(tool: &str, arguments: &Value) -> Result<T, String> {
    if !arguments.is_object() {
        return Err(format!("The arguments of {tool} must be one JSON object."));
    }
    T::deserialize(arguments).map_err(|error| format!("Invalid arguments for {tool}: {error}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &str, arguments: Value) -> ToolCall {
        ToolCall { id: "1".to_owned(), name: name.to_owned(), arguments }
    }

    #[tokio::test]
    async fn wrong_calls_are_answered_with_guidance() {
        let tools = Tools::default();
        let none = BTreeSet::new();
        let unknown = tools.run(&call("fly", json!({})), &none).await;
        assert_eq!(unknown, Err("Unknown tool: fly. Tools you have: sleep, echo.".to_owned()));
        let disabled = BTreeSet::from(["echo".to_owned()]);
        let refused = tools.run(&call("echo", json!({"message": "x"})), &disabled).await;
        assert_eq!(refused, Err("Unknown tool: echo. Tools you have: sleep.".to_owned()));
        let not_an_object = tools.run(&call("echo", json!("x")), &none).await;
        assert_eq!(not_an_object, Err("The arguments of echo must be one JSON object.".to_owned()));
        assert_eq!(
            tools.run(&call("echo", json!({"message": "x"})), &none).await,
            Ok("x".to_owned())
        );
    }

    #[test]
    fn every_schema_is_closed_and_knows_parallel() {
        for definition in Tools::default().definitions(&BTreeSet::new()).iter() {
            assert_eq!(definition.parameters["additionalProperties"], false, "{}", definition.name);
            assert_eq!(definition.parameters["properties"]["_parallel"]["type"], "boolean");
        }
    }
}
