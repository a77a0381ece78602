//! The invariant `schema`: every answer fits the published document.

use std::collections::BTreeMap;

use jsonschema::Validator;
use nexus3::rpc::openrpc;
use serde_json::{Value, json};

use super::{Check, Invariant, Observation, Seen};
use crate::play::observed::Answer;

pub struct Schema {
    results: BTreeMap<String, Validator>,
}

impl std::fmt::Debug for Schema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.results.keys()).finish()
    }
}

impl Schema {
    pub fn new() -> Self {
        let document = Value::Object(openrpc::document().0.clone());
        let methods = document["methods"].as_array().into_iter().flatten();
        let results = methods.map(|method| {
            let name = method["name"].as_str().expect("a method has a name").to_owned();
            let mut schema = method["result"]["schema"].clone();
            if schema.is_boolean() {
                schema = json!({});
            }
            // References lead to where they lead in the whole document.
            schema["components"] = document["components"].clone();
            let validator = jsonschema::validator_for(&schema);
            (name, validator.expect("the document's schemas are schemas"))
        });
        Self { results: results.collect() }
    }
}

impl Check for Schema {
    fn invariant(&self) -> Invariant {
        Invariant::Schema
    }

    fn on(&mut self, observation: &Observation, _: &Seen<'_>) -> Vec<String> {
        let Observation::Answered(Answer { method, result: Ok(result), .. }) = observation else {
            return Vec::new();
        };
        let validator = self.results.get(method);
        let errors = validator.into_iter().flat_map(|validator| validator.iter_errors(result));
        let told = |error: jsonschema::ValidationError<'_>| {
            format!("the result of {method} at {} does not fit", error.instance_path())
        };
        errors.take(1).map(told).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::seen_tests::{Run, answered};
    use super::*;

    #[test]
    fn an_answer_that_is_not_as_published_is_seen() {
        let (run, mut schema) = (Run::default(), Schema::new());
        let mut check = |result| schema.on(&answered("list_agents", None, result), &run.seen());
        assert_eq!(check(json!({"agents": []})), Vec::<String>::new());
        assert_eq!(
            check(json!({"agents": 3})),
            ["the result of list_agents at /agents does not fit"]
        );
    }
}
