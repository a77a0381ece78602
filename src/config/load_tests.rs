//! Which files are read, how, and what no text may do to the reader.

use proptest::prelude::*;
use serde_json::Value as Json;

use super::*;
use crate::config::{AuthMethod, ModelConfig, ProviderConfig, ProviderKind, schema};

/// Every key there is.
const FULL: &str = r#"// A file with everything.
{
    "default_model": "fast",
    "providers": {
        "remote": {
            "type": "openai",
            "base_url": "https://api.example.com/v1",
            "api_key_env": "EXAMPLE_KEY",
            "auth_method": "x-api-key",
            "headers": {"X-Agent": "nexus3 ${agent_id}"},
            "request_timeout": 10,
            "stream_idle_timeout": 0.5,
            "allow_insecure_http": false,
            "max_retries": 0,
            "prompt_caching": false,
            "ca_file": "/etc/ca.pem",
            "models": {
                "fast": {"id": "fast-1", "context_window": 8000, "max_output": 1e3, "reasoning": true},
                "able": {"id": "able-1"}, /* trailing commas are fine */
            },
        },
        "local": {"type": "ollama", "api_key_file": "/etc/key", "models": {"small": {"id": "s"}}},
        "cloud": {
            "type": "azure",
            "base_url": "https://10.1.2.3",
            "api_version": "2024-10-21",
            "deployment": "mine",
            "models": {"own": {"id": "o"}},
        },
        "claude": {"type": "anthropic", "models": {"sonnet": {"id": "c"}}},
        "played": {"type": "script", "max_retries": 20, "script": "/srv/s.toml", "models": {"part": {"id": "p"}}},
    },
    "max_tool_iterations": 7,
    "max_concurrent_tools": 2,
    "skill_timeout": 1.5,
    "turn_timeout": 60,
    "confirmation_timeout": 30,
    "max_messages": 50,
    "compaction": {
        "enabled": false,
        "model": "small",
        "trigger_threshold": 0.5,
        "recent_preserve_ratio": 0,
    },
    "permissions": {
        "default_preset": "reader",
        "presets": {
            "reader": {
                "extends": "worker",
                "description": "reads",
                "allowed_paths": ["/srv/docs"],
                "blocked_paths": ["/srv/docs/draft"],
                "tools": {"sleep": {"enabled": false, "timeout": 3, "allowed_paths": []}},
            },
        },
        "blocked_paths": ["/srv/secret"],
    },
    "server": {
        "host": "::1",
        "port": 0,
        "max_connections": 10,
        "max_concurrent": 3,
        "idle_timeout": 90,
        "shutdown_grace": 0,
        "log_level": "debug",
    },
    "network": {"allow_private": true},
    "storage": {"sync": "normal"},
    "events": {"retain": {"per_agent": 5, "days": 2}},
}
"#;

fn load_text(text: &str) -> Result<Config, ConfigError> {
    let name = "config.json".to_owned();
    let text = text.to_owned();
    load(&Source { name, text })
}

/// What is told about the text.
pub(super) fn told(text: &str) -> String {
    match load_text(text) {
        Ok(config) => panic!("this should not load: {config:?}"),
        Err(error) => error.to_string(),
    }
}

fn full_providers() -> [(String, ProviderConfig); 5] {
    let model = |id: &str, context_window, max_output| ModelConfig {
        id: id.to_owned(),
        context_window,
        max_output,
        reasoning: false,
    };
    let remote = ProviderConfig {
        base_url: Some("https://api.example.com/v1".to_owned()),
        api_key_env: Some("EXAMPLE_KEY".to_owned()),
        auth_method: Some(AuthMethod::XApiKey),
        headers: [("X-Agent".to_owned(), "nexus3 ${agent_id}".into())].into(),
        request_timeout: 10.0,
        stream_idle_timeout: 0.5,
        max_retries: 0,
        prompt_caching: false,
        ca_file: Some("/etc/ca.pem".into()),
        models: [
            ("fast".to_owned(), ModelConfig { reasoning: true, ..model("fast-1", 8000, 1000) }),
            ("able".to_owned(), model("able-1", 131_072, 4096)),
        ]
        .into(),
        ..ProviderConfig::of(ProviderKind::Openai)
    };
    let local = ProviderConfig {
        api_key_file: Some("/etc/key".into()),
        models: [("small".to_owned(), model("s", 131_072, 4096))].into(),
        ..ProviderConfig::of(ProviderKind::Ollama)
    };
    let cloud = ProviderConfig {
        base_url: Some("https://10.1.2.3".to_owned()),
        api_version: Some("2024-10-21".to_owned()),
        deployment: Some("mine".to_owned()),
        models: [("own".to_owned(), model("o", 131_072, 4096))].into(),
        ..ProviderConfig::of(ProviderKind::Azure)
    };
    let claude = ProviderConfig {
        models: [("sonnet".to_owned(), model("c", 131_072, 4096))].into(),
        ..ProviderConfig::of(ProviderKind::Anthropic)
    };
    let played = ProviderConfig {
        max_retries: 20,
        script: Some("/srv/s.toml".into()),
        models: [("part".to_owned(), model("p", 131_072, 4096))].into(),
        ..ProviderConfig::of(ProviderKind::Script)
    };
    [
        ("remote".to_owned(), remote),
        ("local".to_owned(), local),
        ("cloud".to_owned(), cloud),
        ("claude".to_owned(), claude),
        ("played".to_owned(), played),
    ]
}

fn full() -> Config {
    let sleep =
        ToolConfig { enabled: Some(false), allowed_paths: Some(Vec::new()), timeout: Some(3.0) };
    let reader = PresetConfig {
        extends: "worker".to_owned(),
        description: Some("reads".to_owned()),
        allowed_paths: Some(vec!["/srv/docs".into()]),
        blocked_paths: vec!["/srv/docs/draft".into()],
        tools: [("sleep".to_owned(), sleep)].into(),
    };
    Config {
        default_model: Some("fast".to_owned()),
        providers: full_providers().into(),
        max_tool_iterations: 7,
        max_concurrent_tools: 2,
        skill_timeout: 1.5,
        turn_timeout: 60.0,
        confirmation_timeout: 30.0,
        max_messages: 50,
        compaction: CompactionConfig {
            enabled: false,
            model: Some("small".to_owned()),
            trigger_threshold: 0.5,
            recent_preserve_ratio: 0.0,
        },
        permissions: PermissionsConfig {
            default_preset: "reader".to_owned(),
            presets: [("reader".to_owned(), reader)].into(),
            blocked_paths: vec!["/srv/secret".into()],
        },
        network: NetworkConfig { allow_private: true },
        server: ServerConfig {
            host: IpAddr::from(Ipv6Addr::LOCALHOST),
            port: 0,
            max_connections: 10,
            max_concurrent: 3,
            idle_timeout: Some(90.0),
            shutdown_grace: 0.0,
            log_level: LogLevel::Debug,
        },
        storage: StorageConfig { sync: SyncMode::Normal },
        events: EventsConfig { retain: RetainConfig { per_agent: 5, days: 2 } },
        mcp_servers: BTreeMap::new(),
    }
}

#[test]
fn a_file_with_every_key_is_read_whole() {
    let config = load_text(FULL).unwrap();
    assert_eq!(config, full());
    let order: Vec<_> = config.providers["remote"].models.keys().collect();
    assert_eq!(order, ["fast", "able"]);
}

#[test]
fn an_empty_object_is_the_default() {
    assert_eq!(load_text("{}").unwrap(), Config::default());
    assert_eq!(load_text(r#"{"default_model": null}"#).unwrap(), Config::default());
}

#[test]
fn a_wrong_port_is_told_with_its_place() {
    assert_eq!(
        told("{\n  \"server\": {\"port\": \"x\"}\n}"),
        "config.json:2:22: server.port: expected a whole number from 0 to 65535, found a string \
         \"x\"\n  hint: leave `port` out for the default, 8765"
    );
    assert_eq!(
        told("{\"server\": {\"port\": 65536}}"),
        "config.json:1:21: server.port: expected a whole number from 0 to 65535, found 65536\n  \
         hint: leave `port` out for the default, 8765"
    );
}

#[test]
fn urls_are_http_and_unencrypted_only_on_this_machine() {
    let accepts = |url: &str, insecure: bool| {
        load_text(&format!(
            r#"{{"providers": {{"p": {{"type": "vllm", "base_url": "{url}",
                "allow_insecure_http": {insecure}, "models": {{"m": {{"id": "m"}}}}}}}}}}"#
        ))
        .is_ok()
    };
    for url in ["https://h/v1", "http://localhost:1/v1", "http://127.0.0.9", "http://[::1]:8000/v1"]
    {
        assert!(accepts(url, false), "{url}");
    }
    for url in ["h/v1", "https://", "file:///x", "http://h:99999", "http://u:p@h", "http://h/?a=b"]
    {
        assert!(!accepts(url, true), "{url}");
    }
    assert!(!accepts("http://8.8.8.8", false));
    assert!(accepts("http://8.8.8.8", true));
}

#[test]
fn urls_lead_to_private_networks_by_leave_and_to_metadata_never() {
    let accepts = |url: &str, private: bool| {
        load_text(&format!(
            r#"{{"providers": {{"p": {{"type": "vllm", "base_url": "{url}", "models": {{"m":
                {{"id": "m"}}}}}}}}, "network": {{"allow_private": {private}}}}}"#
        ))
        .is_ok()
    };
    let urls = [
        "https://127.0.0.1",
        "https://8.8.8.8",
        "https://name",
        "https://10.0.0.1:8000/v1",
        "https://[fd00::1]/v1",
        "https://169.254.169.254",
        "https://[::ffff:a9fe:a9fe]/",
        "https://0.0.0.0",
    ];
    let without = [true, true, true, false, false, false, false, false];
    let with = [true, true, true, true, true, false, false, false];
    assert_eq!(urls.map(|url| accepts(url, false)), without);
    assert_eq!(urls.map(|url| accepts(url, true)), with);
}

#[test]
fn a_model_is_named_by_alias_or_by_provider_and_id() {
    let accepts = |name: &str| {
        let providers = r#"{"p": {"type": "vllm", "models": {"m": {"id": "x"}}}}"#;
        load_text(&format!(r#"{{"default_model": "{name}", "providers": {providers}}}"#)).is_ok()
    };
    let names = ["m", "demo", "p/x", "p/any/thing", "x", "p/", "q/x"];
    assert_eq!(names.map(accepts), [true, true, true, true, false, false, false]);
}

#[test]
fn many_problems_are_told_up_to_a_bound() {
    let keys: Vec<_> = (0..60).map(|n| format!("\"key-{n}\": 0")).collect();
    let keys = keys.join(", ");
    let Err(ConfigError::Invalid { problems, untold }) = load_text(&format!("{{{keys}}}")) else {
        panic!("unknown keys are refused");
    };
    assert_eq!((problems.len(), untold), (limits::CONFIG_PROBLEMS_MAX, 10));
}

/// Every property of the schema, as a path with `*` for names that people choose.
fn schema_keys(root: &Json, schema: &Json, path: &str, keys: &mut Vec<String>) {
    if let Some(Json::String(reference)) = schema.get("$ref") {
        let target = root.pointer(reference.trim_start_matches('#')).unwrap();
        return schema_keys(root, target, path, keys);
    }
    if let Some(Json::Object(properties)) = schema.get("properties") {
        for (key, schema) in properties {
            keys.push(format!("{path}{key}"));
            schema_keys(root, schema, &format!("{path}{key}."), keys);
        }
    }
    if let Some(schema @ Json::Object(_)) = schema.get("additionalProperties") {
        schema_keys(root, schema, &format!("{path}*."), keys);
    }
}

#[test]
fn the_schema_lists_the_keys_that_are_read() {
    let schema = schema();
    let mut keys = Vec::new();
    schema_keys(&schema, &schema, "", &mut keys);
    keys.sort();
    // What the reader knows, told where a key is unknown.
    let probe = told(
        r#"{"_____": 0, "server": {"_____": 0}, "storage": {"_____": 0}, "network": {"_____": 0},
            "compaction": {"_____": 0},
            "events": {"_____": 0, "retain": {"_____": 0}}, "permissions": {"_____": 0, "presets": {"p": {
            "extends": "yolo", "_____": 0, "tools": {"t": {"_____": 0}}}}}, "providers": {"p": {
            "type": "vllm", "_____": 0, "models": {"m": {"id": "m", "_____": 0}}}}}"#,
    );
    let mut read = Vec::new();
    for pair in probe.lines().collect::<Vec<_>>().chunks(2) {
        let (path, _) = pair[0].split_once("_____: unknown key").unwrap();
        let path = path.rsplit(' ').next().unwrap();
        let path = path.replace(".p.", ".*.").replace(".m.", ".*.").replace(".t.", ".*.");
        let known = pair[1].strip_prefix("  hint: known keys here: ").unwrap();
        read.extend(known.split(", ").map(|key| format!("{path}{key}")));
    }
    read.sort();
    assert_eq!(keys, read);
}

#[test]
fn the_schema_and_the_reader_agree() {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    let valid = |text: &str| validator.is_valid(&serde_json::from_str(text).unwrap());
    let plain = serde_json::to_string(&serde_json::json!({
        "providers": {"p": {"type": "demo", "models": {"m": {"id": "m", "max_output": 1}}}},
        "permissions": {"presets": {"x": {"extends": "yolo", "tools": {"t": {"timeout": 1}}}}},
        "server": {"host": "localhost", "port": 65535, "shutdown_grace": 0},
    }))
    .unwrap();
    let files = [
        (plain.as_str(), true),
        (r#"{"zzz": 1}"#, false),
        (r#"{"server": {"port": 65536}}"#, false),
        (r#"{"server": {"host": "0.0.0.0"}}"#, false),
        (r#"{"server": {"max_concurrent": 0}}"#, false),
        (r#"{"server": {"idle_timeout": 0}}"#, false),
        (r#"{"server": {"idle_timeout": null}}"#, true),
        (r#"{"skill_timeout": 0}"#, false),
        (r#"{"skill_timeout": 1e9}"#, false),
        (r#"{"compaction": {"trigger_threshold": 1.0}}"#, true),
        (r#"{"compaction": {"trigger_threshold": 1.1}}"#, false),
        (r#"{"compaction": {"recent_preserve_ratio": "a quarter"}}"#, false),
        (r#"{"compaction": {"model": "demo"}}"#, true),
        (r#"{"max_messages": 0}"#, false),
        (r#"{"max_tool_iterations": 1.5}"#, false),
        (r#"{"max_tool_iterations": 2.0}"#, true),
        (r#"{"providers": {"p": {"type": "demo", "models": {}}}}"#, false),
        (r#"{"providers": {"p": {"type": "azur", "models": {"m": {"id": "m"}}}}}"#, false),
        (
            r#"{"providers": {"p": {"type": "azure", "base_url": "https://x", "max_retries": 20,
                "models": {"m": {"id": "m", "reasoning": true}}}}}"#,
            true,
        ),
        (
            r#"{"providers": {"p": {"type": "vllm", "max_retries": 21, "models": {"m": {"id": "m"}}}}}"#,
            false,
        ),
        (r#"{"network": {"allow_private": 1}}"#, false),
    ];
    for (file, accepted) in files {
        assert_eq!((valid(file), load_text(file).is_ok()), (accepted, accepted), "{file}");
    }
}

/// Fails unless every problem lies in the text.
fn check_places(text: &str) {
    let Err(ConfigError::Invalid { problems, .. }) = load_text(text) else {
        return;
    };
    let lines: Vec<_> = text.split('\n').collect();
    for problem in problems {
        let position = problem.position.expect("a file has places");
        assert!((1..=lines.len()).contains(&position.line), "{problem}");
        let columns = lines[position.line - 1].chars().count();
        assert!((1..=columns + 1).contains(&position.column), "{problem}");
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in any::<String>()) {
        check_places(&text);
    }

    #[test]
    fn any_json_like_text_is_read_or_refused(
        text in r#"([\[\]{}:,"'\\/*. \n]|-?[0-9]{1,3}|true|null|"(server|port|providers|é)"){0,60}"#
    ) {
        check_places(&text);
    }

    #[test]
    fn any_change_of_a_good_file_is_read_or_refused(
        at in 0..FULL.len(),
        len in 0..40_usize,
        piece in r#"[ -~é]{0,3}|[{}\[\],:"]|null|-1|1e400|"x"|\{"type": \{\}\}"#,
    ) {
        let start = FULL.floor_char_boundary(at);
        let end = FULL.floor_char_boundary((at + len).min(FULL.len()));
        check_places(&format!("{}{piece}{}", &FULL[..start], &FULL[end..]));
    }
}
