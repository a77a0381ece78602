//! Layers over each other: who wins, what merges, and what is told about whom.

use std::path::PathBuf;

use super::*;
use crate::config::{ModelConfig, ProviderConfig, ProviderKind, SyncMode};
use crate::world::Environment;

/// A process that was started with these variables.
struct Vars(Vec<(&'static str, &'static str)>);

impl Environment for Vars {
    fn var(&self, name: &str) -> Option<String> {
        self.vars().into_iter().find(|(other, _)| other == name).map(|(_, value)| value)
    }
    fn vars(&self) -> Vec<(String, String)> {
        self.0.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }
    fn current_dir(&self) -> std::io::Result<PathBuf> {
        Ok("/".into())
    }
    fn home_dir(&self) -> Option<PathBuf> {
        None
    }
    fn os(&self) -> &'static str {
        "linux"
    }
    fn process_id(&self) -> u32 {
        1
    }
}

fn file(name: &str, text: &str) -> Layer {
    Layer { source: Source { name: name.to_owned(), text: text.to_owned() }, form: Form::File }
}

fn loaded(layers: &[Layer]) -> Config {
    load::read(layers).unwrap_or_else(|error| panic!("{error}")).config
}

fn told(layers: &[Layer]) -> String {
    load::read(layers).unwrap_err().to_string()
}

/// The layers of variables, which come sorted, and what is told about them.
fn variables(vars: &[(&'static str, &'static str)]) -> (Vec<Layer>, Vec<String>) {
    let mut notices = Vec::new();
    let layers = environment::layers(&Vars(vars.to_vec()), &mut notices);
    (layers, notices.iter().map(ToString::to_string).collect())
}

#[test]
fn objects_merge_and_everything_else_is_replaced() {
    let config = loaded(&[
        file(
            "home",
            r#"{"server": {"port": 1, "max_connections": 7}, "skill_timeout": 5,
                "permissions": {"blocked_paths": ["/a", "/b"], "presets": {"p": {"extends": "worker",
                "description": "old"}}}}"#,
        ),
        file(
            "project",
            r#"{"server": {"port": 2}, "permissions": {"blocked_paths": ["/c"],
                "presets": {"p": {"extends": "yolo"}}}}"#,
        ),
    ]);
    assert_eq!((config.server.port, config.server.max_connections), (2, 7));
    assert_eq!(config.skill_timeout.to_string(), "5");
    assert_eq!(config.permissions.blocked_paths, [PathBuf::from("/c")]);
    let preset = &config.permissions.presets["p"];
    assert_eq!((preset.extends.as_str(), preset.description.as_deref()), ("yolo", Some("old")));
}

#[test]
fn null_takes_back_what_an_earlier_layer_named() {
    let providers = r#"{"p": {"type": "demo", "models": {"a": {"id": "x"}}}}"#;
    let home = format!(r#"{{"default_model": "a", "providers": {providers}}}"#);
    let layers = [file("home", &home), file("project", r#"{"default_model": null}"#)];
    assert_eq!(loaded(&layers).default_model, None);
}

#[test]
fn a_layer_names_what_an_earlier_one_defines_and_the_first_provider_stays_the_first() {
    let home = r#"{"providers": {"own": {"type": "demo", "models": {"a": {"id": "x"}}}}}"#;
    let project = r#"{"default_model": "a", "compaction": {"model": "b"}, "providers": {
        "more": {"type": "demo", "models": {"b": {"id": "y"}}}, "own": {"models": {"c": {"id": "z"}}}}}"#;
    let config = loaded(&[file("home", home), file("project", project)]);
    assert_eq!(config.default_model.as_deref(), Some("a"));
    let providers: Vec<_> =
        config.providers.iter().map(|(name, p)| (name, p.models.len())).collect();
    assert_eq!(providers, [(&"own".to_owned(), 2), (&"more".to_owned(), 1)]);
}

#[test]
fn variables_win_over_files_and_are_json_or_else_text() {
    let (variables, notices) = variables(&[
        ("NEXUS3_API_KEY", "nxk_x"),
        ("NEXUS3_DEFAULT_MODEL", "small-one"),
        ("NEXUS3_HOME", "/home"),
        ("NEXUS3_PERMISSIONS__BLOCKED_PATHS", r#"["/x"]"#),
        ("NEXUS3_PROVIDERS__LOCAL", r#"{"type": "vllm", "models": {}}"#),
        ("NEXUS3_PROVIDERS__LOCAL__MODELS", r#"{"small-one": {"id": "s"}}"#),
        ("NEXUS3_PROVIDERS__LOCAL__TYPE", "ollama"),
        ("NEXUS3_SERVER__PORT", "9000"),
        ("NEXUS3_STORAGE__SYNC", "normal"),
        ("NEXUS3_TURN_TIMEOUT", ""),
        ("PATH", "/bin"),
    ]);
    assert_eq!(notices, [""; 0]);
    let home = file("home", r#"{"server": {"port": 1}, "turn_timeout": 60}"#);
    let config = loaded(&[&[home][..], &variables].concat());
    let local = ProviderConfig {
        models: [("small-one".to_owned(), ModelConfig::of("s"))].into(),
        ..ProviderConfig::of(ProviderKind::Ollama)
    };
    let mut expected = Config {
        default_model: Some("small-one".to_owned()),
        providers: [("local".to_owned(), local)].into(),
        turn_timeout: 60.0,
        ..Config::default()
    };
    expected.permissions.blocked_paths = vec!["/x".into()];
    expected.server.port = 9000;
    expected.storage.sync = SyncMode::Normal;
    assert_eq!(config, expected);
}

#[test]
fn a_variable_that_is_no_key_is_told_without_its_value() {
    let (layers, notices) = variables(&[
        ("NEXUS3_", "secret"),
        ("NEXUS3_OPENAI_API_KEY", "secret"),
        ("NEXUS3_SERVER__PORT__X", "secret"),
        ("NEXUS3_SERVER__PROT", "secret"),
        ("NEXUS3_SERVER___PORT", "secret"),
        ("NEXUS3_server__port", "secret"),
    ]);
    assert_eq!(layers.len(), 0);
    let all = "known keys here: default_model, providers, max_tool_iterations, \
        max_concurrent_tools, skill_timeout, turn_timeout, confirmation_timeout, max_messages, \
        compaction, permissions, network, server, storage, events";
    let told = |name: &str, key: &str, hint: &str| {
        format!("ignored the environment variable {name}: there is no key `{key}` ({hint})")
    };
    assert_eq!(
        notices,
        [
            told("NEXUS3_", "\"\"", all),
            told("NEXUS3_OPENAI_API_KEY", "openai_api_key", all),
            told("NEXUS3_SERVER__PORT__X", "x", "what stands before it has no parts"),
            told("NEXUS3_SERVER__PROT", "prot", "did you mean `port`?"),
            told("NEXUS3_SERVER___PORT", "_port", "did you mean `port`?"),
            told("NEXUS3_server__port", "server__port", "known keys here: SERVER__PORT"),
        ]
    );
}

#[test]
fn every_problem_is_told_where_it_stands() {
    let (variables, _) = variables(&[("NEXUS3_SERVER__PORT", "ninety")]);
    let home = file("/home/config.json", "{\n  \"serwer\": {},\n  \"skill_timeout\": 5\n}");
    let project = file("/p/.nexus3/config.json", "{\"skill_timeout\": -1,\n \"max_messages\": 0}");
    assert_eq!(
        told(&[&[home, project][..], &variables].concat()),
        "/home/config.json:2:3: serwer: unknown key\n  hint: did you mean `server`?\n\
         /p/.nexus3/config.json:1:19: skill_timeout: expected a number of seconds above 0, at most \
         2592000, found -1\n  hint: leave `skill_timeout` out for the default, 300\n\
         /p/.nexus3/config.json:2:18: max_messages: expected a whole number from 1 to 100000, \
         found 0\n  hint: leave `max_messages` out for the default, 1000\n\
         NEXUS3_SERVER__PORT: server.port: expected a whole number from 0 to 65535, found a \
         string \"ninety\"\n  hint: leave `port` out for the default, 8765"
    );
}

#[test]
fn a_file_that_is_no_object_is_told_whatever_lies_over_it() {
    assert_eq!(
        told(&[file("home", "[]"), file("project", "{}")]),
        "home:1:1: the configuration: expected an object, found a list\n  \
         hint: write the keys between { and }"
    );
}
