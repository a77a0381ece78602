//! Of the invariant `window`: no recording names a secret, whoever said it and in how many pieces. Who tells
//! a model a secret cannot blame the server for what it then says, so that a file may ignore that; a
//! recording is promised to be without any, so that nobody may ignore this.

use std::path::Path;

use toml::Value;

use super::window::{self, held};
use super::{Check, End, Invariant, Seen, Standing};
use crate::machine::HOME;
use crate::scenario::Scenario;

/// Keys whose lists are one text in pieces.
const PIECES: [&str; 2] = ["says", "thinks"];
/// What stands in the place of a secret.
const HIDDEN: &str = "[redacted]";
/// A shorter rest stands beside a secret by accident.
const REST_BYTES_MIN: usize = 4;

#[derive(Debug)]
pub struct Recorded {
    /// Keys and canaries of the scenario.
    secrets: Vec<String>,
}

impl Recorded {
    pub fn new(scenario: &Scenario) -> Self {
        Self { secrets: window::given(scenario) }
    }
}

impl Check for Recorded {
    fn invariant(&self) -> Invariant {
        Invariant::Window
    }

    fn standing(&self) -> Standing {
        Standing::Always
    }

    fn at_end(&mut self, seen: &Seen<'_>, _: &End<'_>) -> Vec<String> {
        let mut found = Vec::new();
        seen.disk.look_into_files(|path, bytes| {
            if is_recording(path) && names_any(bytes, &self.secrets) {
                found.push(format!("a secret stands in the recording {}", path.display()));
            }
        });
        found.sort();
        found
    }
}

fn is_recording(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.parent() == Some(Path::new(HOME))
        && name.starts_with("recording")
        && name.ends_with(".toml")
}

/// Whether a secret stands there as it is, or in pieces.
fn names_any(bytes: &[u8], secrets: &[String]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let recording: Option<toml::Table> = text.parse().ok();
    let texts = recording.map(|recording| texts("", &Value::Table(recording))).unwrap_or_default();
    let is_named = |text: &str| {
        let is_left = |secret: &String| remains(secret).iter().any(|rest| text.contains(rest));
        !held(text.as_bytes(), secrets).is_empty() || secrets.iter().any(is_left)
    };
    is_named(&text) || texts.iter().any(|text| is_named(text))
}

/// What is left of a secret of which only a piece was hidden.
fn remains(secret: &str) -> Vec<String> {
    let places = secret.char_indices().map(|(place, _)| place);
    let split = places.map(|place| secret.split_at(place));
    let split = split.flat_map(|(head, tail)| [(head, ""), ("", tail)]);
    let long = split.filter(|(head, tail)| head.len() + tail.len() >= REST_BYTES_MIN);
    long.map(|(head, tail)| format!("{head}{HIDDEN}{tail}")).collect()
}

/// All texts below a key, those in pieces as one.
fn texts(key: &str, value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(pieces) if PIECES.contains(&key) => {
            vec![pieces.iter().filter_map(Value::as_str).collect()]
        }
        Value::Array(items) => items.iter().flat_map(|item| texts(key, item)).collect(),
        Value::Table(members) => {
            members.iter().flat_map(|(key, member)| texts(key, member)).collect()
        }
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) | Value::Datetime(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_in_pieces_is_found() {
        let secrets = ["canary-5b1d".to_owned()];
        let names = |text: &str| names_any(text.as_bytes(), &secrets);
        assert!(names("[[model]]\nsays = [\"It is can\", \"ary-5b1d.\"]"));
        assert!(names("[[step]]\nparams = { content = \"canary\\u002d5b1d\" }"));
        assert!(names("half a file with canary-5b1d"));
        assert!(names("[[model]]\nsays = [\"It is [redacted]\", \"-5b1d.\"]"), "half of it");
        assert!(!names("[[model]]\nsays = [\"It is \", \"[redacted].\"]"));
        assert!(!names("[[step]]\nserve = [\"can\", \"ary-5b1d\"]"), "two texts are two");
    }
}
