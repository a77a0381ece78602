//! The invariant `schema`: every result fits the published document.

use std::collections::BTreeMap;

use jsonschema::Validator;
use nexus3::rpc::openrpc;
use serde_json::{Value, json};

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

    pub fn check(&self, method: &str, result: &Value) -> Option<String> {
        let validator = self.results.get(method)?;
        let error = validator.iter_errors(result).next()?;
        Some(format!(
            "invariant schema: the result of {method} at {} does not fit",
            error.instance_path()
        ))
    }
}
