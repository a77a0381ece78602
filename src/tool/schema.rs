//! The schema of a tool's arguments, from their Rust type, and the check of a call against it.
//! Says what is wrong in words that help a model to do better. It never looks at what an argument
//! means: a path that leads nowhere is the tool's to refuse.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::{Map, Number, Value, json};

use super::PARALLEL_ARGUMENT;
use crate::config::words;
use crate::limits::ARGUMENT_PROBLEMS_MAX;
use crate::message::ToolDefinition;

/// A definition whose schema comes from the argument type, with the `_parallel` that every tool has.
pub(super) fn definition<T: JsonSchema>(
    name: &'static str,
    description: &'static str,
) -> ToolDefinition {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let mut parameters = settings.into_generator().into_root_schema_for::<T>().to_value();
    plain(&mut parameters);
    if let Some(schema) = parameters.as_object_mut() {
        schema.shift_remove("description");
        // A type that is made of others has them in another order, which a cache would tell apart.
        for part in ["additionalProperties", "required"] {
            if let Some(value) = schema.shift_remove(part) {
                schema.insert(part.to_owned(), value);
            }
        }
    }
    parameters["properties"][PARALLEL_ARGUMENT] = json!({
        "type": "boolean",
        "description": "Run all tool calls of this message at the same time."
    });
    ToolDefinition {
        name: name.into(),
        description: description.into(),
        parameters: parameters.into(),
    }
}

/// Leaves out what Rust's types add and a model has no use for. An argument that may be left out
/// may be null as well, but nobody needs to be told.
fn plain(schema: &mut Value) {
    let Some(parts) = schema.as_object_mut() else { return };
    parts.shift_remove("title");
    parts.shift_remove("format");
    if parts.get("default").is_some_and(Value::is_null) {
        parts.shift_remove("default");
    }
    if let Some(Value::Array(types)) = parts.get("type")
        && let Some(only) = types.iter().find(|name| *name != "null")
    {
        let only = only.clone();
        parts.insert("type".to_owned(), only);
    }
    if let Some(items) = parts.get_mut("items") {
        plain(items);
    }
    if let Some(Value::Object(properties)) = parts.get_mut("properties") {
        properties.values_mut().for_each(plain);
    }
}

/// The arguments of a call that fit the tool's schema: without `_parallel`, and without nulls for
/// what could be left out.
pub(super) fn fitting(definition: &ToolDefinition, given: &Value) -> Result<Value, String> {
    let name = &definition.name;
    let Value::Object(given) = given else {
        return Err(format!("The arguments of {name} must be one JSON object."));
    };
    let mut given = given.clone();
    given.shift_remove(PARALLEL_ARGUMENT);
    given.retain(|key, value| !value.is_null() || is_required(&definition.parameters, key));
    let mut problems = Problems::default();
    problems.object("", &definition.parameters, &given);
    problems.settle(name, given)
}

/// Fitting arguments as the tool's own type.
pub(super) fn typed<T: DeserializeOwned>(tool: &str, fitting: Value) -> Result<T, String> {
    serde_json::from_value(fitting)
        .map_err(|error| format!("Invalid arguments for {tool}: {error}."))
}

fn is_required(schema: &Value, key: &str) -> bool {
    required(schema).any(|name| name == key)
}

fn required(schema: &Value) -> impl Iterator<Item = &str> {
    schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

#[derive(Default)]
struct Problems(Vec<String>);

impl Problems {
    fn settle(self, tool: &str, given: Map<String, Value>) -> Result<Value, String> {
        if self.0.is_empty() {
            return Ok(Value::Object(given));
        }
        let told = self.0.join("; ");
        let end = if told.ends_with('?') { "" } else { "." };
        Err(format!("Invalid arguments for {tool}: {told}{end}"))
    }

    fn add(&mut self, problem: String) {
        if self.0.len() < ARGUMENT_PROBLEMS_MAX {
            self.0.push(problem);
        }
    }

    /// `at` is how the object is called, with a dot at its end.
    fn object(&mut self, at: &str, schema: &Value, given: &Map<String, Value>) {
        let none = Map::new();
        let properties = schema["properties"].as_object().unwrap_or(&none);
        for (key, value) in given {
            if let Some(property) = properties.get(key) {
                self.value(&format!("{at}{key}"), property, value);
                continue;
            }
            // A schema that does not say so takes others.
            if schema["additionalProperties"] != false {
                continue;
            }
            let known = properties.keys().map(String::as_str);
            let known: Vec<&str> = known.filter(|key| *key != PARALLEL_ARGUMENT).collect();
            let hint = if known.is_empty() {
                "there are none".to_owned()
            } else {
                words::nearest(key, &known, "there are")
            };
            self.add(format!("there is no argument `{}`, {hint}", words::shorten(key)));
        }
        for key in required(schema).filter(|key| !given.contains_key(*key)) {
            let wanted = wanted(properties.get(key).unwrap_or(&Value::Null));
            self.add(format!("`{at}{key}` is missing, it must be {wanted}"));
        }
    }

    fn value(&mut self, name: &str, schema: &Value, value: &Value) {
        if !is_of_type(schema, value) || !is_in_range(schema, value) {
            self.add(format!("`{name}` must be {}, not {}", wanted(schema), shown(value)));
            return;
        }
        match value {
            Value::Object(object) => self.object(&format!("{name}."), schema, object),
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.value(&format!("{name}[{index}]"), &schema["items"], item);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => (),
        }
    }
}

fn is_of_type(schema: &Value, value: &Value) -> bool {
    match schema["type"].as_str() {
        Some("string") => value.is_string(),
        Some("integer") => value.is_u64() || value.is_i64(),
        Some("number") => value.is_number(),
        Some("boolean") => value.is_boolean(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        Some(_) | None => true,
    }
}

fn is_in_range(schema: &Value, value: &Value) -> bool {
    let size = match value {
        Value::String(text) => {
            (Number::from(text.chars().count()).as_f64(), "minLength", "maxLength")
        }
        Value::Array(items) => (Number::from(items.len()).as_f64(), "minItems", "maxItems"),
        Value::Number(number) => (number.as_f64(), "minimum", "maximum"),
        Value::Null | Value::Bool(_) | Value::Object(_) => return true,
    };
    let (Some(size), least, most) = size else { return true };
    schema[least].as_f64().is_none_or(|least| least <= size)
        && schema[most].as_f64().is_none_or(|most| size <= most)
}

/// What a schema asks for, in words.
fn wanted(schema: &Value) -> String {
    let (kind, least, most) = match schema["type"].as_str() {
        Some("string") if schema["minLength"] == 1 => {
            return "a string with something in it".to_owned();
        }
        Some("string") => return "a string".to_owned(),
        Some("boolean") => return "true or false".to_owned(),
        Some("object") => return "an object".to_owned(),
        Some("integer") => ("a whole number", "minimum", "maximum"),
        Some("number") => ("a number", "minimum", "maximum"),
        Some("array") => ("a list", "minItems", "maxItems"),
        Some(_) | None => return "something else".to_owned(),
    };
    match (&schema[least], &schema[most]) {
        (Value::Number(least), Value::Number(most)) => format!("{kind} from {least} to {most}"),
        (Value::Number(least), _) => format!("{kind} of at least {least}"),
        (_, Value::Number(most)) => format!("{kind} of at most {most}"),
        (_, _) => kind.to_owned(),
    }
}

pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => format!("the string {}", words::quoted(text)),
        Value::Array(items) => format!("a list of {}", items.len()),
        Value::Object(_) => "an object".to_owned(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;
