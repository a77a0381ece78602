//! Whether the arguments of a call fit a schema that others wrote. Says what is wrong in words that help a
//! model to do better; what it does not know of a schema is for its server to judge, and no schema makes it
//! work without end. Pure.

use std::collections::BTreeSet;

use regex::RegexBuilder;
use serde_json::{Map, Value};

use crate::config::words;
use crate::limits::{
    ARGUMENT_PROBLEMS_MAX, MCP_CHOICES_TOLD_MAX, MCP_PATTERN_BYTES_MAX, MCP_SCHEMA_DEPTH_MAX,
    MCP_SCHEMA_STEPS_MAX,
};
use crate::tool::PARALLEL_ARGUMENT;
use crate::tool::schema::shown;

/// The arguments of a call as its server gets them: nulls may mean something there.
pub(super) fn fitting(
    tool: &str,
    schema: &Map<String, Value>,
    given: &Value,
) -> Result<Value, String> {
    let Value::Object(given) = given else {
        return Err(format!("The arguments of {tool} must be one JSON object."));
    };
    let mut given = given.clone();
    given.shift_remove(PARALLEL_ARGUMENT);
    let mut check = Check { root: schema, problems: Vec::new(), steps: 0 };
    let given = Value::Object(given);
    check.object_schema("", schema, &given, 0);
    if check.problems.is_empty() {
        return Ok(given);
    }
    // Several parts of a schema may ask for the same.
    let mut known = BTreeSet::new();
    check.problems.retain(|problem| known.insert(problem.clone()));
    check.problems.truncate(ARGUMENT_PROBLEMS_MAX);
    let told = check.problems.join("; ");
    let end = if told.ends_with('?') { "" } else { "." };
    Err(format!("Invalid arguments for {tool}: {told}{end}"))
}

struct Check<'a> {
    /// What references start from.
    root: &'a Map<String, Value>,
    problems: Vec<String>,
    steps: usize,
}

impl<'a> Check<'a> {
    /// `at` is how the value is called; nothing for the arguments as a whole.
    fn value(&mut self, at: &str, schema: &'a Value, value: &Value, depth: usize) {
        match schema {
            Value::Bool(false) => self.add(format!("{} must not be there", name(at))),
            Value::Object(schema) => self.object_schema(at, schema, value, depth),
            Value::Bool(true)
            | Value::Null
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => {}
        }
    }

    fn object_schema(
        &mut self,
        at: &str,
        schema: &'a Map<String, Value>,
        value: &Value,
        depth: usize,
    ) {
        self.steps += 1;
        if depth > MCP_SCHEMA_DEPTH_MAX || self.steps > MCP_SCHEMA_STEPS_MAX {
            return;
        }
        // The whole is an object, whatever a schema says of it.
        let is_right = at.is_empty() || is_of_type(schema, value);
        if !is_right || !is_among(schema, value) || !is_in_range(schema, value) {
            let not = shown(value);
            return self.add(match wanted(schema) {
                Some(wanted) => format!("{} must be {wanted}, not {not}", name(at)),
                None => format!("{} cannot be {not}", name(at)),
            });
        }
        if !has_form(schema, value) {
            let form = words::quoted(schema["pattern"].as_str().unwrap_or_default());
            return self.add(format!("{} must match {form}, not {}", name(at), shown(value)));
        }
        match schema.get("$ref").and_then(Value::as_str) {
            Some("#") => self.object_schema(at, self.root, value, depth + 1),
            Some(reference) => {
                if let Some(meant) = self.meant(reference) {
                    self.value(at, meant, value, depth + 1);
                }
            }
            None => {}
        }
        for part in list(schema, "allOf") {
            self.value(at, part, value, depth + 1);
        }
        for choice in ["anyOf", "oneOf"] {
            self.choice(at, list(schema, choice), value, depth);
        }
        match value {
            Value::Object(object) => self.members(at, schema, object, depth),
            Value::Array(items) => self.items(at, schema, items, depth),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// One of several schemas has to fit. What is wrong with a value is told where only one could.
    fn choice(&mut self, at: &str, choices: &'a [Value], value: &Value, depth: usize) {
        let before = self.problems.len();
        let mut told = Vec::new();
        for choice in choices {
            self.value(at, choice, value, depth + 1);
            let problems = self.problems.split_off(before);
            if problems.is_empty() {
                return;
            }
            told.push(problems);
        }
        // The first of those that come nearest.
        let Some(nearest) = told.iter().min_by_key(|problems| problems.len()) else { return };
        let kinds: Option<Vec<_>> =
            choices.iter().map(|choice| wanted(choice.as_object()?)).collect();
        match (kinds, value) {
            _ if told.len() == 1 => self.problems.extend_from_slice(nearest),
            (Some(kinds), Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
                let wanted = kinds.join(" or ");
                self.add(format!("{} must be {wanted}, not {}", name(at), shown(value)));
            }
            (_, _) => {
                let (count, why) = (choices.len(), nearest.join(", "));
                self.add(format!("{} fits none of the {count} kinds there are ({why})", name(at)));
            }
        }
    }

    fn members(
        &mut self,
        at: &str,
        schema: &'a Map<String, Value>,
        given: &Map<String, Value>,
        depth: usize,
    ) {
        let properties = schema.get("properties").and_then(Value::as_object);
        for (key, value) in given {
            let known = properties.and_then(|properties| properties.get(key));
            let other = schema.get("additionalProperties");
            match (known, other) {
                (Some(property), _) => self.value(&below(at, key), property, value, depth + 1),
                // Which of them a pattern names, nobody looks up.
                (None, _) if schema.contains_key("patternProperties") => {}
                (None, Some(Value::Bool(false))) => self.stranger(key, properties),
                (None, Some(other)) => self.value(&below(at, key), other, value, depth + 1),
                (None, None) => {}
            }
        }
        let required = list(schema, "required").iter().filter_map(Value::as_str);
        for key in required.filter(|key| *key != PARALLEL_ARGUMENT && !given.contains_key(*key)) {
            let property = properties.and_then(|properties| properties.get(key));
            let wanted = property.and_then(Value::as_object).and_then(wanted);
            let wanted = wanted.map_or_else(String::new, |wanted| format!(", it must be {wanted}"));
            self.add(format!("{} is missing{wanted}", name(&below(at, key))));
        }
    }

    fn stranger(&mut self, key: &str, properties: Option<&Map<String, Value>>) {
        let known = properties.into_iter().flat_map(Map::keys).map(String::as_str);
        let known: Vec<&str> = known.filter(|key| *key != PARALLEL_ARGUMENT).collect();
        let hint = if known.is_empty() {
            "there are none".to_owned()
        } else {
            words::nearest(key, &known, "there are")
        };
        self.add(format!("there is no argument `{}`, {hint}", words::shorten(key)));
    }

    fn items(&mut self, at: &str, schema: &'a Map<String, Value>, items: &[Value], depth: usize) {
        // The older revisions of JSON Schema have the first ones where the newer have the others.
        let (first, others) = match (schema.get("prefixItems"), schema.get("items")) {
            (Some(Value::Array(first)), others) => (first.as_slice(), others),
            (_, Some(Value::Array(first))) => (first.as_slice(), schema.get("additionalItems")),
            (_, others) => (&[][..], others),
        };
        for (index, item) in items.iter().enumerate() {
            if let Some(schema) = first.get(index).or(others) {
                self.value(&format!("{at}[{index}]"), schema, item, depth + 1);
            }
        }
    }

    /// What a reference within the schema leads to. Others are not followed.
    fn meant(&self, reference: &str) -> Option<&'a Value> {
        let steps = reference.strip_prefix("#/")?;
        let (first, rest) = match steps.split_once('/') {
            Some((first, rest)) => (first, format!("/{rest}")),
            None => (steps, String::new()),
        };
        self.root.get(first)?.pointer(&rest)
    }

    fn add(&mut self, problem: String) {
        self.problems.push(problem);
    }
}

fn name(at: &str) -> String {
    if at.is_empty() { "what is given".to_owned() } else { format!("`{}`", words::shorten(at)) }
}

fn below(at: &str, key: &str) -> String {
    if at.is_empty() { key.to_owned() } else { format!("{at}.{key}") }
}

fn list<'a>(schema: &'a Map<String, Value>, key: &str) -> &'a [Value] {
    schema.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// The types that a schema names; none where it names none.
fn types(schema: &Map<String, Value>) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(only)) => vec![only],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        Some(_) | None => Vec::new(),
    }
}

fn is_of_type(schema: &Map<String, Value>, value: &Value) -> bool {
    let types = types(schema);
    let is = |kind: &str| match kind {
        "string" => value.is_string(),
        // A whole number may be written with a point.
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        _ => true,
    };
    types.is_empty() || types.into_iter().any(is)
}

/// Whether a value is one of those that a schema names, if it names some.
fn is_among(schema: &Map<String, Value>, value: &Value) -> bool {
    let same =
        |known: &Value| known == value || (known.is_number() && known.as_f64() == value.as_f64());
    let is_constant = schema.get("const").is_none_or(same);
    let choices = schema.get("enum").and_then(Value::as_array);
    is_constant && choices.is_none_or(|choices| choices.iter().any(same))
}

fn is_in_range(schema: &Map<String, Value>, value: &Value) -> bool {
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    let counted = |count: usize, least: &str, most: &str| {
        let count = serde_json::Number::from(count).as_f64().unwrap_or_default();
        bound(least).is_none_or(|least| least <= count)
            && bound(most).is_none_or(|most| count <= most)
    };
    match value {
        Value::String(text) => counted(text.chars().count(), "minLength", "maxLength"),
        Value::Array(items) => counted(items.len(), "minItems", "maxItems"),
        Value::Number(number) => number.as_f64().is_none_or(|number| {
            bound("minimum").is_none_or(|least| least <= number)
                && bound("maximum").is_none_or(|most| number <= most)
                && bound("exclusiveMinimum").is_none_or(|below| below < number)
                && bound("exclusiveMaximum").is_none_or(|above| number < above)
        }),
        Value::Null | Value::Bool(_) | Value::Object(_) => true,
    }
}

/// Whether a text has the form that a schema asks for, where that is one we can look for.
fn has_form(schema: &Map<String, Value>, value: &Value) -> bool {
    let (Some(pattern), Some(text)) =
        (schema.get("pattern").and_then(Value::as_str), value.as_str())
    else {
        return true;
    };
    let form = RegexBuilder::new(pattern).size_limit(MCP_PATTERN_BYTES_MAX).build();
    form.map_or(true, |form| form.is_match(text))
}

/// What a schema asks for, in words, where it says so plainly.
fn wanted(schema: &Map<String, Value>) -> Option<String> {
    if let Some(constant) = schema.get("const") {
        return Some(told(constant));
    }
    if let Some(choices) = schema.get("enum").and_then(Value::as_array) {
        let mut told: Vec<_> = choices.iter().take(MCP_CHOICES_TOLD_MAX).map(told).collect();
        if choices.len() > MCP_CHOICES_TOLD_MAX {
            told.push(format!("{} others", choices.len() - MCP_CHOICES_TOLD_MAX));
        }
        return Some(format!("one of {}", told.join(", ")));
    }
    let kinds: Vec<String> = types(schema).into_iter().map(|kind| of_kind(kind, schema)).collect();
    (!kinds.is_empty()).then(|| kinds.join(" or "))
}

fn told(value: &Value) -> String {
    match value {
        Value::String(text) => words::quoted(text),
        Value::Array(_) | Value::Object(_) => shown(value),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

fn of_kind(kind: &str, schema: &Map<String, Value>) -> String {
    let (kind, least, most) = match kind {
        "string" => ("a string", "minLength", "maxLength"),
        "integer" => ("a whole number", "minimum", "maximum"),
        "number" => ("a number", "minimum", "maximum"),
        "array" => ("a list", "minItems", "maxItems"),
        "boolean" => return "true or false".to_owned(),
        "object" => return "an object".to_owned(),
        kind => return words::shorten(kind),
    };
    let unit = if least == "minLength" { " characters" } else { "" };
    let kind = match (schema.get(least), schema.get(most)) {
        (Some(least), Some(most)) => format!("{kind} from {least} to {most}{unit}"),
        (Some(least), None) => format!("{kind} of at least {least}{unit}"),
        (None, Some(most)) => format!("{kind} of at most {most}{unit}"),
        (None, None) => kind.to_owned(),
    };
    let bounds = [("exclusiveMinimum", "above"), ("exclusiveMaximum", "below")];
    bounds.iter().fold(kind, |kind, (key, word)| match schema.get(*key) {
        Some(Value::Number(bound)) => format!("{kind} {word} {bound}"),
        Some(_) | None => kind,
    })
}

#[cfg(test)]
#[path = "arguments_tests.rs"]
mod tests;
