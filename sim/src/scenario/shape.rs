//! Checks a file against the schema: keys that nobody knows, keys that are missing, values of the
//! wrong type, in our own words and at their place. It reads just the keywords that the schema of
//! `form` has, and knows no key of its own.

use nexus3::config::words::{meant, nearest};
use nexus3::provider::script::Time;
use serde_json::{Map, Value};
use toml::de::DeValue;

use super::Shift;
use super::place::Place;

type Schema<'a> = &'a Map<String, Value>;

pub(super) struct Shape<'a> {
    root: &'a Value,
}

impl<'a> Shape<'a> {
    pub(super) fn new(root: &'a Value) -> Self {
        Self { root }
    }

    /// Adds a problem for everything in the file that the schema does not allow. The table `config`
    /// has a reader of its own.
    pub(super) fn check_file(&self, file: &Place<'_>) {
        let root = self.root.as_object().expect("the schema of a struct is an object");
        self.table(file, root, &["config"]);
    }

    fn check(&self, place: &Place<'_>, schema: &'a Value) {
        let alternatives = self.alternatives(schema);
        if alternatives.is_empty() || alternatives.iter().any(|schema| kind(schema).is_none()) {
            return;
        }
        let of_its_type: Vec<_> =
            alternatives.iter().copied().filter(|schema| fits(place.value(), schema)).collect();
        match of_its_type.as_slice() {
            [schema] if !is_word(schema) => self.content(place, schema),
            [] => refuse(place, &alternatives, None),
            words => match place.text() {
                Some(text) if words.iter().any(|schema| takes_text(schema, text)) => (),
                Some(text) => refuse(place, &alternatives, Some(text)),
                None => unreachable!("two alternatives of one type are texts"),
            },
        }
    }

    fn content(&self, place: &Place<'_>, schema: Schema<'a>) {
        match place.value() {
            DeValue::Table(_) => self.table(place, schema, &[]),
            DeValue::Array(_) => {
                let items = place.items();
                let least = count(schema, "minItems").unwrap_or(0);
                let most = count(schema, "maxItems").unwrap_or(usize::MAX);
                if !(least..=most).contains(&items.len()) {
                    refuse(place, &[schema], None);
                }
                if let Some(schema) = schema.get("items") {
                    for item in &items {
                        self.check(item, schema);
                    }
                }
            }
            DeValue::String(text) => {
                if !takes_text(schema, text) {
                    refuse(place, &[schema], None);
                }
            }
            DeValue::Integer(_) | DeValue::Float(_) | DeValue::Boolean(_) => {
                if !takes_scalar(schema, &place.json()) {
                    refuse(place, &[schema], None);
                }
            }
            DeValue::Datetime(_) => unreachable!("no schema has dates"),
        }
    }

    fn table(&self, place: &Place<'_>, schema: Schema<'a>, skipped: &[&str]) {
        let properties = schema.get("properties").and_then(Value::as_object);
        let rest = schema.get("additionalProperties");
        for (key, member) in place.members() {
            match (properties.and_then(|properties| properties.get(key)), rest) {
                (Some(_), _) if skipped.contains(&key) => {
                    if !matches!(member.value(), DeValue::Table(_)) {
                        let found = member.shown();
                        member.refuse(&format!("expected a table, found {found}"), TABLE_HINT);
                    }
                }
                (None, Some(Value::Bool(false))) => {
                    let known = properties.into_iter().flat_map(Map::keys).map(String::as_str);
                    let known: Vec<_> = known.collect();
                    member.refuse_key("unknown key", &nearest(key, &known, "known keys here"));
                }
                (Some(schema), _) | (None, Some(schema)) => self.check(&member, schema),
                (None, None) => (),
            }
        }
        for key in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
            let key = key.as_str().expect("required keys are strings");
            if place.get(key).is_none() {
                let property = properties.and_then(|properties| properties.get(key));
                let about = property.and_then(|schema| schema.get("description")?.as_str());
                let about = about.unwrap_or("it has no default");
                place.refuse(&format!("`{key}` is missing"), &format!("add `{key}`: {about}"));
            }
        }
    }

    /// What a schema allows, with references followed and choices spread out. Nothing where it
    /// allows everything.
    fn alternatives(&self, schema: &'a Value) -> Vec<Schema<'a>> {
        let Some(schema) = schema.as_object() else {
            return Vec::new();
        };
        if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
            let pointer = name.strip_prefix('#').expect("references stay in the schema");
            let target = self.root.pointer(pointer).expect("references lead somewhere");
            return self.alternatives(target);
        }
        let choices = schema.get("anyOf").or_else(|| schema.get("oneOf"));
        match choices.and_then(Value::as_array) {
            Some(choices) => choices.iter().flat_map(|choice| self.alternatives(choice)).collect(),
            None => vec![schema],
        }
    }
}

fn kind(schema: Schema<'_>) -> Option<&str> {
    schema.get("type").and_then(Value::as_str)
}

/// Whether the schema is for values of this type.
fn fits(value: &DeValue<'_>, schema: Schema<'_>) -> bool {
    let kinds: &[&str] = match value {
        DeValue::String(_) => &["string"],
        DeValue::Integer(_) => &["integer", "number"],
        DeValue::Float(_) => &["number"],
        DeValue::Boolean(_) => &["boolean"],
        DeValue::Datetime(_) => &[],
        DeValue::Array(_) => &["array"],
        DeValue::Table(_) => &["object"],
    };
    kind(schema).is_some_and(|kind| kinds.contains(&kind))
}

/// The words that a schema lists.
fn words(schema: Schema<'_>) -> impl Iterator<Item = &str> {
    let listed = schema.get("enum").and_then(Value::as_array).into_iter().flatten();
    listed.chain(schema.get("const")).filter_map(Value::as_str)
}

fn is_word(schema: Schema<'_>) -> bool {
    words(schema).next().is_some()
}

fn takes_text(schema: Schema<'_>, text: &str) -> bool {
    let listed = !is_word(schema) || words(schema).any(|word| word == text);
    let long_enough = count(schema, "minLength").is_none_or(|least| text.chars().count() >= least);
    let well_formed = match format(schema) {
        Some(Time::FORMAT) => text.parse::<Time>().is_ok(),
        Some(Shift::FORMAT) => text.parse::<Shift>().is_ok(),
        Some(_) | None => true,
    };
    listed && long_enough && well_formed
}

fn takes_scalar(schema: Schema<'_>, value: &Value) -> bool {
    let number = value.as_f64();
    let within = |key, holds: fn(f64, f64) -> bool| match (number, bound(schema, key)) {
        (Some(number), Some(bound)) => holds(number, bound),
        (None, _) | (_, None) => true,
    };
    let listed = schema.get("enum").and_then(Value::as_array);
    schema.get("const").is_none_or(|only| only == value)
        && listed.is_none_or(|listed| listed.contains(value))
        && within("minimum", |number, least| number >= least)
        && within("maximum", |number, most| number <= most)
        && within("exclusiveMinimum", |number, least| number > least)
}

fn bound(schema: Schema<'_>, key: &str) -> Option<f64> {
    schema.get(key).and_then(Value::as_f64)
}

fn format(schema: Schema<'_>) -> Option<&str> {
    schema.get("format").and_then(Value::as_str)
}

fn count(schema: Schema<'_>, key: &str) -> Option<usize> {
    schema.get(key).and_then(Value::as_u64).and_then(|count| usize::try_from(count).ok())
}

/// Tells what was expected instead, and how it is written.
fn refuse(place: &Place<'_>, alternatives: &[Schema<'_>], text: Option<&str>) {
    let all_words: Vec<_> = alternatives.iter().flat_map(|schema| words(schema)).collect();
    let mut expected = Vec::new();
    if !all_words.is_empty() {
        let quoted: Vec<_> = all_words.iter().map(|word| format!("\"{word}\"")).collect();
        let one_of = if quoted.len() > 2 { "one of " } else { "" };
        let separator = if quoted.len() > 2 { ", " } else { " or " };
        expected.push(format!("{one_of}{}", quoted.join(separator)));
    }
    let others: Vec<_> = alternatives.iter().filter(|schema| !is_word(schema)).collect();
    expected.extend(others.iter().map(|schema| words_for(schema)));
    let word = text.and_then(|text| meant(text, &all_words));
    let hint = match (word, others.first()) {
        (Some(word), _) => format!("did you mean \"{word}\"?"),
        (None, Some(schema)) => hint_for(schema, place.value()).to_owned(),
        (None, None) => "write one of these words between quotes".to_owned(),
    };
    let found = place.shown();
    place.refuse(&format!("expected {}, found {found}", expected.join(" or ")), &hint);
}

fn words_for(schema: Schema<'_>) -> String {
    if let Some(only) = only(schema) {
        return only.to_string();
    }
    match kind(schema).unwrap_or_default() {
        "string" if format(schema) == Some(Time::FORMAT) => "a time".to_owned(),
        "string" if format(schema) == Some(Shift::FORMAT) => "a time, maybe negative".to_owned(),
        "string" if schema.contains_key("minLength") => "a string that is not empty".to_owned(),
        "string" => "a string".to_owned(),
        "integer" => format!("a whole number{}", range(schema)),
        "number" => format!("a number{}", range(schema)),
        "boolean" => "true or false".to_owned(),
        "array" => match (count(schema, "minItems"), count(schema, "maxItems")) {
            (Some(least), Some(most)) if least == most => format!("a list of {least}"),
            (Some(_), _) => "a list that is not empty".to_owned(),
            (None, _) => "a list".to_owned(),
        },
        _ => "a table".to_owned(),
    }
}

/// The one value that a schema has.
fn only(schema: Schema<'_>) -> Option<&Value> {
    let listed = schema.get("enum").and_then(Value::as_array);
    schema.get("const").or_else(|| listed?.first())
}

fn range(schema: Schema<'_>) -> String {
    let above = bound(schema, "exclusiveMinimum").map(|least| format!(" above {least},"));
    let from = bound(schema, "minimum").map(|least| format!(" from {least}"));
    let most = if above.is_some() { " at most" } else { " to" };
    let to = bound(schema, "maximum").map(|bound| format!("{most} {bound}"));
    [above, from, to].into_iter().flatten().collect()
}

const TABLE_HINT: &str = "write it like { key = \"value\" }";

fn hint_for(schema: Schema<'_>, value: &DeValue<'_>) -> &'static str {
    if only(schema).is_some() {
        return "nothing else is meant here";
    }
    let right_type = fits(value, schema);
    match kind(schema).unwrap_or_default() {
        "string" if format(schema).is_some() => {
            "write a number and one of ms, s, m, h, such as \"20ms\" or \"1.5s\", at most a year"
        }
        "string" if right_type => "write something between the quotes",
        "string" => "write it between quotes",
        "integer" | "number" if right_type => "choose a number in this range",
        "integer" | "number" => "write digits, without quotes",
        "boolean" => "write true or false, without quotes",
        "array" => "write it like [first, second], or one [[table]] for each",
        _ => TABLE_HINT,
    }
}
