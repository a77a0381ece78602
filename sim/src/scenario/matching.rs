//! Whether what was found contains what was expected. Pure.

use std::fmt;

use nexus3::config::words::shorten;
use regex::Regex;
use serde_json::{Number, Value};

/// A string that starts so is a regular expression over the found text, number or flag.
pub const REGEX_PREFIX: &str = "re:";

/// The first place where what was found is not what was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// A JSON pointer into what was found.
    pub pointer: String,
    pub expected: String,
    pub found: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pointer, expected, found } = self;
        let at = if pointer.is_empty() { "" } else { ": " };
        write!(f, "{pointer}{at}expected {expected}, found {found}")
    }
}

/// Objects may have further keys; lists have the same length; everything else is equal.
pub fn matches(expected: &Value, actual: &Value) -> Result<(), Mismatch> {
    matches_at(&mut String::new(), expected, actual)
}

fn matches_at(pointer: &mut String, expected: &Value, actual: &Value) -> Result<(), Mismatch> {
    let fits = match (expected, actual) {
        (Value::Object(expected), Value::Object(actual)) => {
            for (key, expected) in expected {
                let Some(actual) = actual.get(key) else {
                    let pointer = format!("{pointer}/{}", escaped(key));
                    let found = "nothing".to_owned();
                    return Err(Mismatch { pointer, expected: shown(expected), found });
                };
                below(pointer, &escaped(key), expected, actual)?;
            }
            true
        }
        (Value::Array(expected), Value::Array(actual)) if expected.len() == actual.len() => {
            for (index, (expected, actual)) in expected.iter().zip(actual).enumerate() {
                below(pointer, &index.to_string(), expected, actual)?;
            }
            true
        }
        (Value::Array(expected), Value::Array(actual)) => {
            let list = |length| format!("a list of {length}");
            return Err(Mismatch {
                pointer: pointer.clone(),
                expected: list(expected.len()),
                found: list(actual.len()),
            });
        }
        (Value::String(expected), actual) => text_matches(expected, actual),
        (Value::Number(expected), Value::Number(actual)) => same_number(expected, actual),
        (expected, actual) => expected == actual,
    };
    if fits {
        return Ok(());
    }
    let (expected, found) = (shown(expected), shown(actual));
    Err(Mismatch { pointer: pointer.clone(), expected, found })
}

fn below(
    pointer: &mut String,
    segment: &str,
    expected: &Value,
    actual: &Value,
) -> Result<(), Mismatch> {
    let length = pointer.len();
    pointer.push('/');
    pointer.push_str(segment);
    matches_at(pointer, expected, actual)?;
    pointer.truncate(length);
    Ok(())
}

fn text_matches(expected: &str, actual: &Value) -> bool {
    let Some(pattern) = expected.strip_prefix(REGEX_PREFIX) else {
        return actual == expected;
    };
    let text = match actual {
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) => actual.to_string(),
        Value::Array(_) | Value::Object(_) => return false,
    };
    // The pattern was compiled when the file was read; only a name replaced in it can break it.
    Regex::new(pattern).is_ok_and(|regex| regex.is_match(&text))
}

/// TOML and JSON write `1` and `1.0` each in their own way.
fn same_number(expected: &Number, actual: &Number) -> bool {
    expected == actual
        || ((expected.is_f64() || actual.is_f64()) && expected.as_f64() == actual.as_f64())
}

fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

fn shown(value: &Value) -> String {
    shorten(&value.to_string())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn told(expected: &Value, actual: &Value) -> String {
        matches(expected, actual).map_or_else(|mismatch| mismatch.to_string(), |()| "fits".into())
    }

    #[test]
    fn an_object_may_have_more_and_a_list_may_not() {
        let actual = json!({ "a": { "b": [1, { "c": true, "d": null }] }, "e/~": "x" });
        assert_eq!(told(&json!({ "a": { "b": [1.0, { "c": true }] } }), &actual), "fits");
        assert_eq!(
            told(&json!({ "a": { "b": [1] } }), &actual),
            "/a/b: expected a list of 1, found a list of 2"
        );
        assert_eq!(
            told(&json!({ "a": { "b": [1, { "d": 0 }] } }), &actual),
            "/a/b/1/d: expected 0, found null"
        );
        assert_eq!(told(&json!({ "e/~": "y" }), &actual), r#"/e~1~0: expected "y", found "x""#);
        assert_eq!(told(&json!({ "f": [] }), &actual), "/f: expected [], found nothing");
        assert_eq!(told(&json!("x"), &json!(1)), r#"expected "x", found 1"#);
    }

    #[test]
    fn a_regular_expression_reads_the_found_scalar_as_text() {
        let pattern = json!("re:^(completed|12|true)$");
        for actual in [json!("completed"), json!(12), json!(true)] {
            assert_eq!(told(&pattern, &actual), "fits");
        }
        assert_eq!(
            told(&pattern, &json!("failed")),
            r#"expected "re:^(completed|12|true)$", found "failed""#
        );
        assert_eq!(told(&json!("re:"), &json!([])), r#"expected "re:", found []"#);
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            // A text that starts so is not compared but searched for.
            ".*".prop_filter("a pattern", |text| !text.starts_with(REGEX_PREFIX))
                .prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 64, 8, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
                prop::collection::btree_map(".*", inner, 0..8)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn every_value_matches_itself(value in values()) {
            prop_assert_eq!(matches(&value, &value), Ok(()));
        }
    }
}
