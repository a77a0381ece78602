//! How long a model request is, read from what stands on the wire, against what its model takes. Pure.
//! Texts are counted as the server must, with the same for what a wire puts around them.

use std::collections::BTreeMap;

use nexus3::agent::Encoding;
use nexus3::limits::{CONTEXT_WINDOW_TOKENS, OUTPUT_TOKENS_RESERVED};
use nexus3::message::Message;
use serde::Deserialize;
use serde_json::Value;

use super::conversation;

/// What each model of a scenario takes, by its provider's name for it.
#[derive(Debug, Default)]
pub struct Budgets(BTreeMap<String, u64>);

impl Budgets {
    pub fn new(config: &Value) -> Self {
        let mut budgets: BTreeMap<String, u64> = BTreeMap::new();
        for provider in members(&config["providers"]) {
            for model in members(&provider["models"]) {
                let number = |key: &str, default| model[key].as_u64().unwrap_or(default);
                let window = number("context_window", CONTEXT_WINDOW_TOKENS);
                let takes = window.saturating_sub(number("max_output", OUTPUT_TOKENS_RESERVED));
                // Two aliases may differ, and a request does not say which it was.
                let known = budgets.entry(text(&model["id"]).to_owned()).or_default();
                *known = (*known).max(takes);
            }
        }
        Self(budgets)
    }

    /// What a request has too much, if it has.
    pub fn exceeded(&self, body: &[u8]) -> Option<String> {
        let named: Named = serde_json::from_slice(body).ok()?;
        let model = named.model.as_str();
        let takes = CONTEXT_WINDOW_TOKENS - OUTPUT_TOKENS_RESERVED;
        let takes = self.0.get(model).copied().unwrap_or(takes);
        // A token has at least one byte, and counting takes its time.
        if body.len() as u64 <= takes {
            return None;
        }
        let request: Value = serde_json::from_slice(body).ok()?;
        let tokens = tokens(Encoding::of(model), &request, body);
        (tokens > takes).then(|| format!("{tokens} tokens, and {model} takes {takes}"))
    }
}

/// What most requests are read for: the rest of one that is short does not matter.
#[derive(Deserialize)]
struct Named {
    #[serde(default)]
    model: String,
}

fn tokens(encoding: Encoding, request: &Value, body: &[u8]) -> u64 {
    let messages = request["messages"].as_array().into_iter().flatten();
    let system = messages.filter(|message| message["role"] == "system");
    let system = system.map(|message| &message["content"]).chain([&request["system"]]);
    let system = system.map(|content| encoding.text(&prompt(content)));
    let tools = request["tools"].as_array().into_iter().flatten().map(|tool| {
        let tool = tool.get("function").unwrap_or(tool);
        let schema = tool.get("parameters").unwrap_or(&tool["input_schema"]);
        encoding.text(text(&tool["name"]))
            + encoding.text(text(&tool["description"]))
            + encoding.text(&schema.to_string())
    });
    let messages = conversation::read(body).unwrap_or_default();
    let messages = messages.into_iter().map(|message| of_message(encoding, message));
    system.sum::<u64>() + tools.sum::<u64>() + messages.sum::<u64>()
}

fn of_message(encoding: Encoding, mut message: Message) -> u64 {
    if let Message::Assistant { tool_calls, .. } = &mut message {
        for call in tool_calls {
            // One wire has the object as a text.
            if let Value::String(text) = &call.arguments
                && let Ok(object) = serde_json::from_str(text)
            {
                call.arguments = object;
            }
        }
    }
    encoding.message(&message)
}

/// A system prompt, as one text or as blocks.
fn prompt(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().map(|block| text(&block["text"])).collect(),
        _ => String::new(),
    }
}

fn members(object: &Value) -> impl Iterator<Item = &Value> {
    object.as_object().into_iter().flatten().map(|(_, value)| value)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn budgets() -> Budgets {
        let small = json!({"id": "small-1", "context_window": 160, "max_output": 20});
        Budgets::new(&json!({"providers": {"p": {"models": {"small": small}}}}))
    }

    fn exceeded(request: &Value) -> Option<String> {
        budgets().exceeded(request.to_string().as_bytes())
    }

    #[test]
    fn a_request_over_its_window_is_found_in_both_wires() {
        let words = |count| " word".repeat(count);
        let call = json!({"id": "a", "type": "function",
            "function": {"name": "echo", "arguments": format!("{{\"m\":\"{}\"}}", words(40))}});
        let chat = |count| {
            json!({"model": "small-1", "messages": [
                {"role": "system", "content": words(10)},
                {"role": "assistant", "content": null, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "a", "content": words(count)},
            ]})
        };
        assert_eq!(exceeded(&chat(40)), None);
        let found = exceeded(&chat(80)).expect("it is too long");
        assert!(found.ends_with(" tokens, and small-1 takes 140"), "{found}");
        let messages = |count| {
            json!({"model": "small-1", "system": [{"type": "text", "text": words(50)}],
                "tools": [{"name": "echo", "input_schema": {}}],
                "messages": [{"role": "user", "content": words(count)}]})
        };
        assert_eq!(exceeded(&messages(40)), None);
        assert!(exceeded(&messages(100)).is_some());
    }

    #[test]
    fn a_model_without_numbers_has_the_default_window() {
        let request = |count: usize| {
            let content = " word".repeat(count);
            json!({"model": "other", "messages": [{"role": "user", "content": content}]})
        };
        assert_eq!(exceeded(&request(126_000)), None);
        let found = exceeded(&request(127_000)).expect("it is too long");
        assert!(found.ends_with(" tokens, and other takes 126976"), "{found}");
    }
}
