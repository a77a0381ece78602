//! A configuration as it is in force, value by value, each with where it comes from. No value is a
//! secret: keys are only named, and those of headers are hidden by their type.

use serde_json::Value as Json;

use super::layer::{Form, Layer};
use super::tree::{At, Tree};
use super::words::shown_key;
use super::{Config, Source, position};

const BUILT_IN: &str = "built in";

/// One value in force.
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    /// The path of its key, with dots.
    pub key: String,
    pub value: Json,
    /// The file and line, the variable or the flag that says so.
    pub source: String,
}

/// The layers that a configuration was made of, laid over each other.
#[derive(Clone, Debug)]
pub(super) struct Origins {
    pub(super) layers: Vec<Layer>,
    pub(super) merged: Tree,
}

impl Origins {
    /// Every value in the order of the keys; an object without members is one itself.
    pub(super) fn values(&self, config: &Config) -> Vec<Shown> {
        let config = serde_json::to_value(config).expect("a configuration is JSON");
        let mut values = Vec::new();
        self.add(String::new(), &config, Some(&self.merged), &mut values);
        values
    }

    fn add(&self, key: String, value: &Json, tree: Option<&Tree>, values: &mut Vec<Shown>) {
        match value {
            Json::Object(members) if !members.is_empty() => {
                for (name, value) in members {
                    let dot = if key.is_empty() { "" } else { "." };
                    let key = format!("{key}{dot}{}", shown_key(name));
                    self.add(key, value, tree.and_then(|tree| tree.member(name)), values);
                }
            }
            Json::Object(_)
            | Json::Array(_)
            | Json::String(_)
            | Json::Number(_)
            | Json::Bool(_)
            | Json::Null => {
                let source = tree.map_or_else(|| BUILT_IN.to_owned(), |tree| self.source(tree.at));
                values.push(Shown { key, value: value.clone(), source });
            }
        }
    }

    fn source(&self, at: At) -> String {
        let Layer { source: Source { name, text }, form } = &self.layers[at.source];
        match form {
            Form::File | Form::Project { .. } => {
                format!("{name}:{}", position(text, at.offset).line)
            }
            Form::Value { .. } => name.clone(),
        }
    }
}
