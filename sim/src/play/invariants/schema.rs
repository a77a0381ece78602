//! The invariant `schema`: every answer and every event fits the published document.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use jsonschema::Validator;
use nexus3::rpc::openrpc;
use serde_json::{Value, json};

use super::{Check, End, Invariant, Observation, Seen};
use crate::play::kept::Kept;
use crate::play::observed::Answer;

/// What the document says of results, by method, and of events. Each is compiled when it is first
/// needed and then kept for all runs of the process: compiling them all takes longer than most runs.
struct Published {
    results: BTreeMap<String, LazyLock<Validator, Compile>>,
    event: LazyLock<Validator, Compile>,
}

type Compile = Box<dyn FnOnce() -> Validator + Send>;

static PUBLISHED: LazyLock<Published> = LazyLock::new(|| {
    let document = openrpc::document();
    let methods = document.0["methods"].as_array().into_iter().flatten();
    let results = methods.map(|method| {
        let name = method["name"].as_str().expect("a method has a name").to_owned();
        (name, later(&method["result"]["schema"]))
    });
    Published { results: results.collect(), event: later(&document.0["x-events"]["schema"]) }
});

#[derive(Debug)]
pub struct Schema;

impl Schema {
    fn event(event: &Value) -> Vec<String> {
        let told = |error: jsonschema::ValidationError<'_>| {
            format!(
                "an event {} at {:?} does not fit",
                event["type"],
                error.instance_path().as_str()
            )
        };
        PUBLISHED.event.iter_errors(event).take(1).map(told).collect()
    }
}

fn later(schema: &'static Value) -> LazyLock<Validator, Compile> {
    LazyLock::new(Box::new(|| validator(schema)))
}

/// References lead to where they lead in the whole document.
fn validator(schema: &Value) -> Validator {
    let mut schema = if schema.is_boolean() { json!({}) } else { schema.clone() };
    schema["components"] = openrpc::document().0["components"].clone();
    jsonschema::validator_for(&schema).expect("the document's schemas are schemas")
}

impl Check for Schema {
    fn invariant(&self) -> Invariant {
        Invariant::Schema
    }

    fn on(&mut self, observation: &Observation, _: &Seen<'_>) -> Vec<String> {
        let (method, result) = match observation {
            Observation::Answered(Answer { method, result: Ok(result), .. }) => (method, result),
            Observation::Event { event, .. } => {
                let event = serde_json::to_value(event).expect("an event has only string keys");
                return Self::event(&event);
            }
            _ => return Vec::new(),
        };
        let validator = PUBLISHED.results.get(method);
        let errors = validator.into_iter().flat_map(|validator| validator.iter_errors(result));
        let told = |error: jsonschema::ValidationError<'_>| {
            format!("the result of {method} at {} does not fit", error.instance_path())
        };
        errors.take(1).map(told).collect()
    }

    fn at_rest(&mut self, kept: &Kept, _: &Seen<'_>, _: &End<'_>) -> Vec<String> {
        // As they were written, which is how they are told.
        kept.events.iter().flat_map(|kept| Self::event(&kept.json)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::seen_tests::{Run, answered};
    use super::*;
    use crate::play::kept::KeptEvent;

    #[test]
    fn an_answer_that_is_not_as_published_is_seen() {
        let (run, mut schema) = (Run::default(), Schema);
        let mut check = |result| schema.on(&answered("list_agents", None, result), &run.seen());
        assert_eq!(check(json!({"agents": []})), Vec::<String>::new());
        assert_eq!(
            check(json!({"agents": 3})),
            ["the result of list_agents at /agents does not fit"]
        );
    }

    #[test]
    fn an_event_that_is_not_as_published_is_seen() {
        let (run, mut schema) = (Run::default(), Schema);
        let mut check = |json: Value| {
            let kept = KeptEvent { seq: 1, json, ..KeptEvent::default() };
            let kept = Kept { events: vec![kept], ..Kept::default() };
            schema.at_rest(&kept, &run.seen(), &End { survey: None, left_behind: None })
        };
        let mut event = json!({
            "type": "turn_queued", "position": 0, "request_id": "r1",
            "agent_id": "scout", "at": "2025-01-01T00:00:00.000Z", "seq": 1,
        });
        assert_eq!(check(event.clone()), Vec::<String>::new());
        event.as_object_mut().expect("it is one").remove("position");
        assert_eq!(check(event), [r#"an event "turn_queued" at "" does not fit"#]);
        assert_eq!(check(Value::Null), [r#"an event null at "" does not fit"#]);
    }
}
