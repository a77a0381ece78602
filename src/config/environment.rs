//! The layer of the environment: `NEXUS3_` and a key's path in upper case, with `__` between levels.
//! It never tells a value: people keep keys in variables.

use super::Source;
use super::keys::{self, UnknownKey};
use super::layer::{Form, Layer, Notice};
use super::words::nearest;
use crate::world::Environment;

const PREFIX: &str = "NEXUS3_";
/// What begins like a key and is none: the server's directory and a client's token.
const OTHERS: [&str; 2] = ["NEXUS3_HOME", "NEXUS3_API_KEY"];

/// A layer per variable, in the order of their names: that of an object comes before those of its
/// members. One that is empty counts as unset.
pub(super) fn layers(environment: &dyn Environment, notices: &mut Vec<Notice>) -> Vec<Layer> {
    let mut layers = Vec::new();
    for (name, text) in environment.vars() {
        let Some(path) = name.strip_prefix(PREFIX) else { continue };
        if OTHERS.contains(&name.as_str()) || text.is_empty() {
            continue;
        }
        match keys(path) {
            Ok(keys) => {
                layers.push(Layer { source: Source { name, text }, form: Form::Value { keys } });
            }
            Err(UnknownKey { part, known }) => {
                let known: Vec<&str> = known.iter().map(String::as_str).collect();
                let hint = if known.is_empty() {
                    "what stands before it has no parts".to_owned()
                } else {
                    nearest(&part, &known, "known keys here")
                };
                notices.push(Notice::UnknownVariable { name, part, hint });
            }
        }
    }
    layers
}

fn keys(path: &str) -> Result<Vec<String>, UnknownKey> {
    let keys: Vec<String> = path.split("__").map(str::to_lowercase).collect();
    // `NEXUS3_server__port` would be a second spelling, of which one would silently win.
    if path.chars().any(char::is_lowercase) {
        return Err(UnknownKey { part: path.to_owned(), known: vec![path.to_uppercase()] });
    }
    keys::check(&keys).map(|()| keys)
}
