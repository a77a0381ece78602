//! Values with less to read than the one at hand, the simplest first. Each is strictly simpler by a
//! measure that ends, so that nobody goes round in circles.

use nexus3::provider::script::Time;
use toml::Value;

use super::place::Place;

/// Times that are easy to read, the simplest first.
const TIMES: [&str; 7] = ["1ms", "10ms", "100ms", "1s", "10s", "1m", "10m"];
/// Keys with words for people and models: any other text would do.
const WORDS: [&str; 7] = ["content", "says", "thinks", "stdout", "stderr", "text", "system_prompt"];
/// Tables of files: a name and what the file has.
const FILES: [&str; 2] = ["files", "writes"];

pub fn than(value: &Value, place: &Place) -> Vec<Value> {
    match value {
        Value::String(text) if has_words(place) => shorter(text),
        Value::String(text) => rounder(text),
        Value::Integer(number) => smaller(*number),
        Value::Array(_)
        | Value::Table(_)
        | Value::Float(_)
        | Value::Boolean(_)
        | Value::Datetime(_) => Vec::new(),
    }
}

fn has_words(place: &Place) -> bool {
    let mut keys = place.keys().rev();
    keys.next().is_some_and(|key| WORDS.contains(&key))
        || keys.next().is_some_and(|outer| FILES.contains(&outer))
}

fn shorter(text: &str) -> Vec<Value> {
    let chars = text.chars().count();
    let first = |count: usize| text.chars().take(count).collect::<String>();
    let mut found = Vec::new();
    if chars > 0 {
        found.push(Value::String(String::new()));
    }
    for count in [1, chars / 2] {
        if (1..chars).contains(&count) {
            found.push(Value::String(first(count)));
        }
    }
    found
}

/// Simpler times than one that is not as simple already; nothing for what is no time.
fn rounder(text: &str) -> Vec<Value> {
    if text.parse::<Time>().is_err() {
        return Vec::new();
    }
    let rank = TIMES.iter().position(|time| *time == text).unwrap_or(TIMES.len());
    TIMES[..rank].iter().map(|time| Value::String((*time).to_owned())).collect()
}

fn smaller(number: i64) -> Vec<Value> {
    let mut found = Vec::new();
    for candidate in [1, number / 2] {
        if (1..number).contains(&candidate) {
            found.push(Value::Integer(candidate));
        }
    }
    found
}
