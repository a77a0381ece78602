//! What the server was configured with, as `[config]`: what differs from the defaults, without keys,
//! headers and addresses. The models of a replay are its own.

use serde_json::{Map, Value, json};

use crate::config::{AuthMethod, Config, ModelConfig, ProviderConfig, ProviderKind};

/// What says where a server listens and writes, and how much it logs.
const OF_A_MACHINE: [&str; 2] = ["storage", "network"];
const OF_A_SERVER: [&str; 5] = ["host", "port", "idle_timeout", "log_level", "max_connections"];

/// The keys as a scenario has them; `found` is a provider that nobody configured.
pub(super) fn written(
    config: &Config,
    found: Option<&(String, ProviderConfig)>,
) -> Map<String, Value> {
    let mut keys = beyond(&json_of(config), &json_of(&Config::default()));
    keys.retain(|key, _| !OF_A_MACHINE.contains(&key.as_str()));
    if let Some(Value::Object(server)) = keys.get_mut("server") {
        server.retain(|key, _| !OF_A_SERVER.contains(&key.as_str()));
        if server.is_empty() {
            keys.remove("server");
        }
    }
    let configured = config.providers.iter();
    let providers = configured.chain(found.map(|(name, provider)| (name, provider)));
    let providers: Map<String, Value> =
        providers.map(|(name, provider)| (name.clone(), written_provider(provider))).collect();
    if providers.is_empty() {
        // A scenario without providers has one of its own.
        keys.entry("default_model").or_insert("demo".into());
    } else {
        keys.insert("providers".to_owned(), providers.into());
    }
    keys
}

fn written_provider(provider: &ProviderConfig) -> Value {
    let models = provider.models.iter().map(|(alias, model)| {
        let mut keys = beyond(&json_of(model), &json_of(&ModelConfig::of(&model.id)));
        keys.shift_insert(0, "id".to_owned(), model.id.clone().into());
        (alias.clone(), Value::Object(keys))
    });
    let models: Map<String, Value> = models.collect();
    if provider.kind == ProviderKind::Demo {
        return json!({ "type": "demo", "models": models });
    }
    let kind = match provider.kind {
        // Its script is what was recorded.
        ProviderKind::Script => ProviderKind::Openai,
        other => other,
    };
    let public = ProviderConfig {
        kind,
        base_url: None,
        api_key_env: None,
        api_key_file: None,
        auth_method: Some(AuthMethod::None),
        headers: [].into(),
        allow_insecure_http: false,
        ca_file: None,
        script: None,
        ..provider.clone()
    };
    let mut keys = beyond(&json_of(&public), &json_of(&ProviderConfig::of(kind)));
    keys.shift_insert(0, "type".to_owned(), kind.name().into());
    keys.insert("models".to_owned(), models.into());
    Value::Object(keys)
}

fn json_of(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).expect("a configuration is JSON")
}

/// The members of an object that another one has not, or not so. What has no value is left out.
fn beyond(value: &Value, usual: &Value) -> Map<String, Value> {
    let mut members = Map::new();
    for (key, value) in value.as_object().into_iter().flatten() {
        let usual = usual.get(key).unwrap_or(&Value::Null);
        match value {
            Value::Null => {}
            value if value == usual => {}
            Value::Object(_) => {
                members.insert(key.clone(), Value::Object(beyond(value, usual)));
            }
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                members.insert(key.clone(), value.clone());
            }
        }
    }
    members
}
