//! From a method's name and members to the method and its typed params, or to an error that says
//! what would have been right.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::code::Code;
use super::method::{Method, Scope};
use super::openrpc;
use super::wire::{ErrorObject, Params};
use crate::limits::NAME_CHARS_SHOWN_MAX;

/// How alike a name must be to be suggested.
const NEAR_MISS: f64 = 0.8;

pub fn find(name: &str, scope: Scope) -> Result<Method, ErrorObject> {
    let here = || Method::ALL.iter().filter(move |method| method.scope() == scope);
    if let Some(method) = here().find(|method| method.name() == name) {
        return Ok(*method);
    }
    let shown = shorten(name);
    let error = ErrorObject::new(Code::MethodNotFound, format!("Method not found: {shown}"));
    if Method::ALL.iter().any(|method| method.name() == name) {
        let hint = match scope {
            Scope::Global => "this is a method of agents: POST it to /agent/{agent_id}",
            Scope::Agent => "this is a global method: POST it to /rpc",
        };
        return Err(error.with(json!({"hint": hint})));
    }
    // What was shortened is like nothing, and comparing it would take its time.
    let likeness = |method: &Method| strsim::jaro_winkler(method.name(), &shown);
    let nearest = here().copied().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    match nearest.filter(|method| likeness(method) >= NEAR_MISS) {
        Some(method) => Err(error.with(json!({"suggestion": method.name()}))),
        None => Err(error),
    }
}

pub fn read<T: DeserializeOwned>(method: Method, params: Params) -> Result<T, ErrorObject> {
    let names = openrpc::param_names(method);
    let Params::Named(members) = params else {
        let message = format!("Params must be an object: {}", list(&names.known));
        return Err(invalid(message));
    };
    if let Some(unknown) = members.keys().find(|key| !names.known.contains(key)) {
        let unknown = shorten(unknown);
        return Err(invalid(format!("Unknown parameter: {unknown}. {}", list(&names.known))));
    }
    if let Some(missing) = names.required.iter().find(|name| !members.contains_key(*name)) {
        return Err(invalid(format!("Missing parameter: {missing}. {}", list(&names.known))));
    }
    deserialize(members)
}

fn deserialize<T: DeserializeOwned>(members: Map<String, Value>) -> Result<T, ErrorObject> {
    serde_path_to_error::deserialize(Value::Object(members)).map_err(|error| {
        let path = error.path().to_string();
        invalid(format!("Invalid parameter {path}: {}", error.inner()))
    })
}

/// As much of a name as a message needs.
fn shorten(name: &str) -> String {
    match name.char_indices().nth(NAME_CHARS_SHOWN_MAX) {
        Some((cut, _)) => format!("{}…", &name[..cut]),
        None => name.to_owned(),
    }
}

fn list(known: &[String]) -> String {
    if known.is_empty() {
        "This method takes no parameters".to_owned()
    } else {
        format!("Known parameters: {}", known.join(", "))
    }
}

pub fn invalid(message: impl Into<String>) -> ErrorObject {
    ErrorObject::new(Code::InvalidParams, message)
}

#[cfg(test)]
mod tests {
    use super::super::method::{CreateAgentParams, NoParams, SendParams};
    use super::*;

    fn named(value: Value) -> Params {
        let Value::Object(members) = value else { panic!("an object") };
        Params::Named(members)
    }

    fn refused<T: DeserializeOwned + std::fmt::Debug>(method: Method, params: Value) -> String {
        read::<T>(method, named(params)).expect_err("the params are refused").message
    }

    #[test]
    fn wrong_params_are_named_together_with_the_known_ones() {
        assert_eq!(
            refused::<SendParams>(Method::Send, json!({"content": "x", "contant": "y"})),
            "Unknown parameter: contant. Known parameters: content, request_id, source, \
             source_agent_id, wait, timeout"
        );
        assert_eq!(
            refused::<NoParams>(Method::ListAgents, json!({"a": 1})),
            "Unknown parameter: a. This method takes no parameters"
        );
        assert!(
            refused::<SendParams>(Method::Send, json!({}))
                .starts_with("Missing parameter: content.")
        );
        assert_eq!(
            refused::<SendParams>(Method::Send, json!({"content": 3})),
            "Invalid parameter content: invalid type: integer `3`, expected a string"
        );
        let read = read::<CreateAgentParams>(Method::CreateAgent, Params::Positional);
        assert_eq!(read.expect_err("positional params are refused").code, -32602);
    }

    #[test]
    fn optional_params_may_be_null() {
        let params = named(json!({"content": "x", "wait": null, "timeout": null}));
        assert!(read::<SendParams>(Method::Send, params).is_ok());
    }

    #[test]
    fn near_misses_are_suggested_and_misplaced_methods_explained() {
        let data = |name: &str, scope| find(name, scope).expect_err("no such method").data;
        assert_eq!(data("list_agent", Scope::Global), Some(json!({"suggestion": "list_agents"})));
        assert_eq!(data("xyzzy", Scope::Global), None);
        let hint = json!({"hint": "this is a method of agents: POST it to /agent/{agent_id}"});
        assert_eq!(data("send", Scope::Global), Some(hint));
        assert_eq!(find("send", Scope::Agent), Ok(Method::Send));
    }
}
