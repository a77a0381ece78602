//! What answers a replay must give: those parts of a result that are the same in every run. Times, drawn
//! ids and what depends on the moment are left out.

use serde_json::{Map, Value, json};

use crate::provider::script::View;
use crate::record::form::Step;
use crate::record::hidden::Hidden;
use crate::record::note::Number;

/// Has a step expect the result that it got. What the server drew becomes what the replay asks for.
pub(super) fn of_result(step: &mut Step, result: &Value, hidden: &Hidden) {
    let Some(method) = step.call.clone() else {
        if step.confirm.is_some() {
            step.expect = Some(only(result, &["accepted"]));
        }
        return;
    };
    let keys: &[&str] = match method.as_str() {
        "send" => &["content", "finish_reason", "halted_at_iteration_limit", "cancelled"],
        "destroy_agent" => &["success", "destroyed"],
        "get_messages" => &["total", "messages"],
        "confirm" => &["accepted", "decision"],
        "mcp_connect" => &["connected", "tools"],
        _ => &[],
    };
    let is_unnamed = |id: &Value| id.as_str().is_some_and(|id| id.starts_with(UNNAMED));
    if step.params.get("request_id").is_some_and(is_unnamed) {
        step.params.remove("request_id");
    }
    for key in drawn(&method) {
        if let Some(id) = result.get(*key)
            && !is_temporary(id)
        {
            step.params.entry((*key).to_owned()).or_insert_with(|| id.clone());
        }
    }
    let kept = steady(&hidden.value(&only(result, keys)));
    step.expect = kept.filter(|kept| kept.as_object().is_some_and(|kept| !kept.is_empty()));
}

/// Names a request that its client left without a name: one that the server of a replay draws may be
/// that of another request of the recording. The name is another once it is known.
pub(super) fn name_request(step: &mut Step, number: Number) {
    if step.call.as_deref() == Some("send") {
        step.params.entry("request_id").or_insert_with(|| format!("{UNNAMED}{number}").into());
    }
}

/// How requests are called whose names nobody was told.
const UNNAMED: &str = "unnamed-";

/// The params that a server fills in by chance where they are left out.
fn drawn(method: &str) -> &'static [&'static str] {
    match method {
        "send" => &["request_id"],
        "create_agent" => &["agent_id"],
        _ => &[],
    }
}

/// Temporary ids are counted, not drawn.
fn is_temporary(id: &Value) -> bool {
    id.as_str().is_some_and(|id| id.starts_with('.'))
}

/// Ids that are other ones in every run.
const IDS: [&str; 5] = ["id", "tool_call_id", "tool_id", "confirm_id", "meta"];

/// A value as an expectation: without what differs in every run, and with its texts meant literally.
/// None where nothing is left.
fn steady(value: &Value) -> Option<Value> {
    match value {
        Value::String(text) if View::masked(text) != *text => None,
        Value::String(text) => Some(literal(text).into()),
        // A list that lacks an item would not fit any more.
        Value::Array(items) => items.iter().map(steady).collect::<Option<Vec<_>>>().map(Into::into),
        Value::Object(members) => {
            let kept = members.iter().filter(|(key, _)| !IDS.contains(&key.as_str()));
            let kept = kept.filter_map(|(key, value)| Some((key.clone(), steady(value)?)));
            Some(Value::Object(kept.collect()))
        }
        Value::Null => None,
        Value::Bool(_) | Value::Number(_) => Some(value.clone()),
    }
}

/// A text that is not taken for a regular expression.
fn literal(text: &str) -> String {
    match text.strip_prefix("re:") {
        Some(_) => format!("re:^{}$", regex::escape(&plain(text))),
        None => plain(text),
    }
}

/// A text of a step, in which no name is meant.
pub(super) fn plain(text: &str) -> String {
    text.replace("${", "$${")
}

pub(super) fn plain_members(members: &Map<String, Value>) -> Map<String, Value> {
    members.iter().map(|(name, value)| (name.clone(), plain_value(value))).collect()
}

fn plain_value(value: &Value) -> Value {
    match value {
        Value::String(text) => plain(text).into(),
        Value::Array(items) => items.iter().map(plain_value).collect(),
        Value::Object(members) => Value::Object(plain_members(members)),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// The parts of a result that say the same in every run.
fn only(result: &Value, keys: &[&str]) -> Value {
    let kept = keys.iter().filter_map(|key| Some(((*key).to_owned(), result.get(*key)?.clone())));
    let kept: Map<String, Value> = kept.collect();
    json!(kept)
}
