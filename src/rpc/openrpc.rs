//! The API as an OpenRPC document, made from the types of `method` and `event`, and what the server itself
//! needs of those schemas: which params a method knows and which it must have.
//! Made once, at the first use; the same in every run.

use std::sync::LazyLock;

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::method::{Method, OpenRpc, Scope};
use crate::event::Event;

/// What a method's params are called.
#[derive(Debug)]
pub struct ParamNames {
    pub known: Vec<String>,
    pub required: Vec<String>,
}

static DOCUMENT: LazyLock<OpenRpc> = LazyLock::new(build);

static PARAM_NAMES: LazyLock<Vec<ParamNames>> = LazyLock::new(|| {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    Method::ALL.iter().map(|method| names(method.schemas(&mut generator).0.as_value())).collect()
});

pub fn document() -> &'static OpenRpc {
    &DOCUMENT
}

pub fn param_names(method: Method) -> &'static ParamNames {
    let index = Method::ALL.iter().position(|other| *other == method);
    &PARAM_NAMES[index.expect("the table lists every method")]
}

fn names(schema: &Value) -> ParamNames {
    let known = schema["properties"].as_object().into_iter().flat_map(Map::keys).cloned().collect();
    let required = schema["required"].as_array().into_iter().flatten();
    let required = required.filter_map(Value::as_str).map(str::to_owned).collect();
    ParamNames { known, required }
}

fn build() -> OpenRpc {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut generator = settings.into_generator();
    let methods: Vec<Value> = Method::ALL
        .iter()
        .map(|method| {
            let (params, result) = method.schemas(&mut generator);
            describe(*method, params.as_value(), result.as_value())
        })
        .collect();
    let events = generator.subschema_for::<Event>();
    let schemas = generator.take_definitions(true);
    let document = json!({
        "openrpc": "1.3.2",
        "info": {
            "title": "NEXUS3",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "A local server that runs teams of LLM agents.",
        },
        "methods": methods,
        "x-events": {
            "summary": "What a stream carries: each `data` is one of these, and `event` is its type.",
            "routes": ["/agent/{agent_id}/events", "/events"],
            "schema": events,
        },
        "components": { "schemas": schemas },
    });
    match document {
        Value::Object(members) => OpenRpc(members),
        _ => unreachable!("the literal above is an object"),
    }
}

fn describe(method: Method, params: &Value, result: &Value) -> Value {
    let names = names(params);
    let described: Vec<Value> = names
        .known
        .iter()
        .map(|name| {
            let schema = &params["properties"][name];
            json!({"name": name, "required": names.required.contains(name), "schema": schema})
        })
        .collect();
    json!({
        "name": method.name(),
        "summary": method.about(),
        "paramStructure": "by-name",
        "params": described,
        "result": { "name": "result", "schema": result },
        "x-route": match method.scope() {
            Scope::Global => "/rpc",
            Scope::Agent => "/agent/{agent_id}",
        },
    })
}
