//! `[config]`: the configuration that the server of a scenario reads, with its providers led to the
//! scenario's models, and the check that the server will take it.

use nexus3::config::{self, ConfigError, Source};
use serde_json::{Map, Value, json};

use super::Wire;
use super::place::{Place, Problems};

const AGENT_HEADER: &str = "x-nexus-agent";

/// The keys of config.json. `models` is where the models are: the URL of the model host's root or,
/// with [`Wire::Script`], the path of the scenario on the server's disk.
pub(super) fn filled(config: &Map<String, Value>, wire: Wire, models: &str) -> Map<String, Value> {
    let mut config = config.clone();
    // The model host has an address of a private network, as every simulated host.
    let network = config.entry("network").or_insert_with(|| json!({}));
    if let Some(network) = network.as_object_mut() {
        network.entry("allow_private").or_insert(true.into());
    }
    let providers =
        config.entry("providers").or_insert_with(|| json!({ "sim": sim(wire, models) }));
    for provider in providers.as_object_mut().into_iter().flatten() {
        if let Some(provider) = provider.1.as_object_mut() {
            lead(provider, models);
        }
    }
    config
}

/// The provider of a scenario that names none.
fn sim(wire: Wire, models: &str) -> Value {
    let offered = json!({ "default": { "id": "default" } });
    match wire {
        Wire::Openai => json!({ "type": "openai", "auth_method": "none", "models": offered }),
        Wire::Anthropic => json!({ "type": "anthropic", "auth_method": "none", "models": offered }),
        Wire::Script => json!({ "type": "script", "script": models, "models": offered }),
    }
}

/// Leads a provider that asks over HTTP to the model host, which tells agents apart by a header.
fn lead(provider: &mut Map<String, Value>, models: &str) {
    // Where a wire's paths begin differs as it does with the real ones.
    let base_url = match provider.get("type").and_then(Value::as_str) {
        Some("demo" | "script") => return,
        Some("anthropic") => models.to_owned(),
        Some(_) | None => format!("{models}/v1"),
    };
    provider.insert("base_url".to_owned(), base_url.into());
    provider.insert("allow_insecure_http".to_owned(), true.into());
    let headers = provider.entry("headers").or_insert_with(|| json!({}));
    if let Some(headers) = headers.as_object_mut() {
        headers.insert(AGENT_HEADER.to_owned(), "${agent_id}".into());
    }
}

/// Adds what the server will refuse, at its place in the table.
pub(super) fn check(file: &Place<'_>, problems: &Problems<'_>, given: &Map<String, Value>) {
    let table = file.get("config");
    let at = table.as_ref().map_or(0, Place::offset);
    // The other wires' providers are checked by the server; here their models' names matter.
    let config = Value::Object(filled(given, Wire::Openai, "http://model"));
    let mut lines = Lines::default();
    lines.write(&config, table.as_ref(), at);
    let source = Source { name: String::new(), text: lines.text };
    match config::load(&source) {
        Ok(_) => (),
        Err(ConfigError::Invalid { problems: found, untold: _ }) => {
            for problem in found {
                let message = format!("in [config]: {}", problem.message);
                let at = problem.position.expect("a file has places");
                problems.add(lines.offsets[at.line - 1], message, problem.hint);
            }
        }
        Err(
            ConfigError::Missing { .. }
            | ConfigError::Read { .. }
            | ConfigError::TooLarge { .. }
            | ConfigError::NotText { .. },
        ) => unreachable!("the text is here already"),
    }
}

/// JSON with every key and value on a line of its own, and where each line comes from.
#[derive(Debug, Default)]
struct Lines {
    text: String,
    offsets: Vec<usize>,
}

impl Lines {
    fn line(&mut self, text: &str, at: usize) {
        self.text.push_str(text);
        self.text.push('\n');
        self.offsets.push(at);
    }

    /// What was filled in stands at the nearest place that the file has.
    fn write(&mut self, value: &Value, place: Option<&Place<'_>>, at: usize) {
        let at = place.map_or(at, Place::offset);
        match value {
            Value::Object(members) => {
                self.line("{", at);
                for (index, (key, value)) in members.iter().enumerate() {
                    let member = place.and_then(|place| place.get(key));
                    let separator = if index == 0 { "" } else { "," };
                    let key = format!("{separator}{}:", Value::from(key.as_str()));
                    self.line(&key, member.as_ref().map_or(at, Place::key_offset));
                    self.write(value, member.as_ref(), at);
                }
                self.line("}", at);
            }
            Value::Array(values) => {
                self.line("[", at);
                let items = place.map(Place::items).unwrap_or_default();
                for (index, value) in values.iter().enumerate() {
                    if index > 0 {
                        self.line(",", at);
                    }
                    self.write(value, items.get(index), at);
                }
                self.line("]", at);
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                self.line(&value.to_string(), at);
            }
        }
    }
}
