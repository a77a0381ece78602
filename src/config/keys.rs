//! Which keys there are, for those that are named elsewhere than in a file. Taken from the schema, so
//! that there is one list.

use serde_json::Value;

use super::schema;

/// No key has this path.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct UnknownKey {
    /// The part that nothing is called.
    pub(super) part: String,
    /// What is there instead; nothing where the key before it holds a value.
    pub(super) known: Vec<String>,
}

/// Checks a path from the outermost key on. Names that people choose are all known.
pub(super) fn check(path: &[String]) -> Result<(), UnknownKey> {
    let root = schema();
    let mut here = &root;
    for part in path {
        here = inside(&root, here, part).ok_or_else(|| UnknownKey {
            part: part.clone(),
            known: properties(resolved(&root, here)).map(|(key, _)| key.clone()).collect(),
        })?;
    }
    Ok(())
}

fn inside<'a>(root: &'a Value, schema: &'a Value, key: &str) -> Option<&'a Value> {
    let schema = resolved(root, schema);
    let named = properties(schema).find(|(name, _)| *name == key).map(|(_, schema)| schema);
    let chosen = || schema.get("additionalProperties").filter(|schema| schema.is_object());
    if key.is_empty() { None } else { named.or_else(chosen) }
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema.get("properties").and_then(Value::as_object).into_iter().flatten()
}

fn resolved<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    let target = schema.get("$ref").and_then(Value::as_str);
    let target = target.and_then(|path| root.pointer(path.trim_start_matches('#')));
    target.unwrap_or(schema)
}
