//! A recording in the simulation, and both sides in words that can be compared.

use std::path::Path;
use std::sync::Mutex;

use nexus3::provider::script::View;
use nexus3_sim::play::{self, Played};
use nexus3_sim::scenario::Scenario;
use serde_json::Value;

/// Held while a simulation runs: there is one at a time in a process.
static ALONE: Mutex<()> = Mutex::new(());

/// Plays a recording, which must be a scenario.
pub fn replay(text: &str) -> Played {
    let scenario = Scenario::parse("recording.toml", text);
    let scenario = scenario.unwrap_or_else(|problems| panic!("{problems:#?}\n{text}"));
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    // It makes a runtime of its own.
    std::thread::scope(|scope| scope.spawn(|| play::play(&scenario, scenario.seed)).join().unwrap())
}

/// What is another in every run: times and ids.
const DIFFERS: [&str; 8] =
    ["at", "request_id", "confirm_id", "tool_id", "tool_call_id", "id", "resolved_at", "after_ms"];

/// A message or an event as it is in every run; the project of the live server is that of the scenario.
pub fn steady(value: &Value, place: &Path) -> Value {
    match value {
        Value::String(text) => {
            let text = text.replace(place.to_str().unwrap(), "/project");
            View::masked(&text.replace(super::live::KEY, "[redacted]")).into()
        }
        Value::Array(items) => items.iter().map(|item| steady(item, place)).collect(),
        Value::Object(members) => {
            let kept = members.iter().filter(|(key, _)| !DIFFERS.contains(&key.as_str()));
            Value::Object(kept.map(|(key, item)| (key.clone(), steady(item, place))).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}
