//! Every problem as it is told, word for word.

use std::fmt::Write as _;

use super::tests::told;

#[test]
fn syntax_errors_are_told_in_our_words() {
    let files = [
        "",
        "[]",
        "{",
        "{\n  \"server\": {},\n  oops: 1\n}",
        "{\"a\": 1 \"b\": 2}",
        "{\"a\": }",
        "{\"a\" 1}",
        "{\"é\": 'x'}",
        "{\"a\": \"x}",
        "{\"a\": \"\\q\"}",
        "{\"a\": NaN}",
        "{\"a\": 0x10}",
        "{\"a\": .5}",
        "{} {}",
        "{} }",
        "/* never",
    ];
    let mut report = String::new();
    for file in files {
        writeln!(report, "{file:?}\n{}", told(file)).unwrap();
    }
    assert_eq!(report, SYNTAX_REPORT);
}

#[test]
fn deep_nesting_is_refused() {
    for bracket in ["[", "{\"a\":"] {
        let told = told(&bracket.repeat(100_000));
        let (_, told) = told.split_once(": ").unwrap();
        assert_eq!(
            told,
            "the brackets are nested too deeply\n  hint: no key of a configuration lies this deep"
        );
    }
}

#[test]
fn all_problems_of_a_file_are_told_in_its_order() {
    assert_eq!(told(MODELS), MODELS_REPORT);
}

#[test]
fn problems_of_server_and_permissions_are_told() {
    assert_eq!(told(SERVER), SERVER_REPORT);
}

#[test]
fn problems_of_the_ways_to_a_provider_are_told() {
    assert_eq!(told(WAYS), WAYS_REPORT);
}

const SYNTAX_REPORT: &str = r#"""
config.json:1:1: the file holds no value
  hint: write {} for a configuration that changes nothing
"[]"
config.json:1:1: the configuration: expected an object, found a list
  hint: write the keys between { and }
"{"
config.json:1:1: this `{` is never closed
  hint: add the missing }
"{\n  \"server\": {},\n  oops: 1\n}"
config.json:3:3: expected a key or `}`
  hint: write keys in double quotes, and a comma between members
"{\"a\": 1 \"b\": 2}"
config.json:1:8: expected a comma
  hint: put a comma between this value and the next
"{\"a\": }"
config.json:1:7: expected a value, found a closing bracket
  hint: write the value, and check that every { has its } and every [ its ]
"{\"a\" 1}"
config.json:1:6: expected `:` after the key
  hint: write "key": value, with the key in double quotes
"{\"é\": 'x'}"
config.json:1:7: strings have double quotes
  hint: write "text" instead of 'text'
"{\"a\": \"x}"
config.json:1:7: this string is never closed
  hint: add the missing double quote
"{\"a\": \"\\q\"}"
config.json:1:8: this escape is unknown
  hint: after a backslash stands one of " \ / b f n r t, or u and four hex digits; for a backslash itself write \\
"{\"a\": NaN}"
config.json:1:7: this is no JSON value
  hint: write text in double quotes; only true, false and null stand without
"{\"a\": 0x10}"
config.json:1:7: this is no JSON number
  hint: write a decimal number such as 5, 0.5 or -1
"{\"a\": .5}"
config.json:1:7: a number needs digits on both sides of its point
  hint: write 0.5 for .5, and 5.0 or 5 for 5.
"{} {}"
config.json:1:4: expected the end of the file
  hint: a configuration is one object; remove what follows it
"{} }"
config.json:1:4: expected the end of the file
  hint: a configuration is one object; remove what follows it
"/* never"
config.json:1:1: this comment is never closed
  hint: add the missing */
"#;

const MODELS: &str = r#"{
    "default_model": "fats",
    "sever": {},
    "zzz": 1,
    "confirmation_timeout": 0,
    "max_tool_iterations": 0,
    "skill_timeout": 0,
    "turn_timeout": 1e999,
    "skill_timeout": 1,
    "providers": {
        "a/b": {"type": "opnai", "models": {}},
        "one": {
            "type": "openai",
            "api_key_env": "sk-123",
            "api_key_file": "key",
            "auth_method": "basic",
            "base_url": "ftp://x",
            "headers": {"x y": "1", "X-A": "\u0007", "x-a": "${HOME}", "x-b": 5},
            "max_retries": 21,
            "models": {"fast": {"id": "f", "context_window": 4096, "reasoning": 1}, "m": {}},
        },
        "two": {"type": "anthropic", "models": {"fast": {"id": "f", "max_output": 0}}},
        "three": {"type": "vllm", "base_url": "http://10.0.0.1/v1"},
        "four": {"type": "demo", "base_url": "https://x", "models": {"d": {"id": "d"}}},
        "five": [],
        "six": {"type": "script", "headers": {}, "request_timeout": 1, "models": {"s": {"id": "s"}}},
        "seven": {"type": "script", "script": "s.toml", "models": {"t": {"id": "t"}}},
        "eight": {"type": "vllm", "script": "/s.toml", "models": {"u": {"id": "u"}}},
    },
}"#;

const MODELS_REPORT: &str = r#"config.json:2:22: default_model: there is no model "fats"
  hint: did you mean `fast`?
config.json:3:5: sever: unknown key
  hint: did you mean `server`?
config.json:4:5: zzz: unknown key
  hint: known keys here: compaction, confirmation_timeout, default_model, events, max_concurrent_tools, max_messages, max_tool_iterations, network, permissions, providers, server, skill_timeout, storage, turn_timeout
config.json:5:29: confirmation_timeout: expected a number of seconds above 0, at most 2592000, found 0
  hint: leave `confirmation_timeout` out for the default, 120
config.json:6:28: max_tool_iterations: expected a whole number from 1 to 100000, found 0
  hint: leave `max_tool_iterations` out for the default, 100
config.json:7:22: skill_timeout: expected a number of seconds above 0, at most 2592000, found 0
  hint: leave `skill_timeout` out for the default, 300
config.json:8:21: turn_timeout: expected a number of seconds above 0, at most 2592000, found 1e999
  hint: leave `turn_timeout` out for the default, 3600
config.json:9:5: skill_timeout: this key stands here twice
  hint: remove one of the two
config.json:11:9: providers."a/b": a provider's name cannot contain `/`
  hint: choose another name: `provider/model-id` is read up to the first `/`
config.json:11:25: providers."a/b".type: expected one of openai, openrouter, ollama, vllm, azure, anthropic, demo, script, found a string "opnai"
  hint: did you mean "openai"?
config.json:11:44: providers."a/b".models: expected at least one model
  hint: write "models": {"alias": {"id": "the-model"}}
config.json:14:28: providers.one.api_key_env: expected the name of an environment variable
  hint: name the variable that holds the key, such as "OPENAI_API_KEY"; the key itself does not belong here
config.json:15:13: providers.one.api_key_file: `api_key_env` and `api_key_file` are both given
  hint: keep one of them
config.json:15:29: providers.one.api_key_file: expected an absolute path
  hint: write the whole path, starting with /; `~` is not expanded
config.json:16:28: providers.one.auth_method: expected one of bearer, api-key, x-api-key, none, found a string "basic"
  hint: leave it out for the usual one
config.json:17:25: providers.one.base_url: expected an http or https URL with nothing but host, port and path
  hint: write it like "https://api.openai.com/v1"
config.json:18:25: providers.one.headers."x y": this is no header name
  hint: use letters, digits and `-`, such as "x-title"
config.json:18:44: providers.one.headers.X-A: this is no header value
  hint: use visible ASCII characters and spaces only
config.json:18:54: providers.one.headers.x-a: this header stands here twice
  hint: remove one of the two
config.json:18:61: providers.one.headers.x-a: only ${agent_id} is replaced in a header
  hint: for a key use `api_key_env` or `api_key_file`
config.json:18:79: providers.one.headers.x-b: expected a string, found 5
  hint: write a string
config.json:19:28: providers.one.max_retries: expected a whole number from 0 to 20, found 21
  hint: leave `max_retries` out for the default, 3
config.json:20:62: providers.one.models.fast.context_window: the context window of 4096 tokens has no room beside an answer of 4096
  hint: let `context_window` be larger than `max_output`
config.json:20:81: providers.one.models.fast.reasoning: expected true or false, found 1
  hint: leave `reasoning` out for the default, false
config.json:20:90: providers.one.models.m: `id` is missing
  hint: name the model as its provider does
config.json:22:49: providers.two.models.fast: the provider "one" has a model of this name
  hint: give one of them another alias
config.json:22:83: providers.two.models.fast.max_output: expected a whole number from 1 to 1000000000, found 0
  hint: leave `max_output` out for the default, 4096
config.json:23:18: providers.three: `models` is missing
  hint: write "models": {"alias": {"id": "the-model"}}
config.json:23:47: providers.three.base_url: plain http to another machine shows the key and every message to the network
  hint: use https, or set `allow_insecure_http` to true
config.json:23:47: providers.three.base_url: the address 10.0.0.1 is private
  hint: set `network.allow_private` to true if models may be asked there
config.json:24:34: providers.four.base_url: does nothing for the type `demo`
  hint: remove it
config.json:25:17: providers.five: expected an object, found a list
  hint: write "name": {"type": "openai", "models": {"alias": {"id": "the-model"}}}
config.json:26:16: providers.six: `script` is missing
  hint: name a scenario file, as in "script": "/a/scenario.toml"
config.json:26:35: providers.six.headers: does nothing for the type `script`
  hint: remove it
config.json:27:47: providers.seven.script: expected an absolute path
  hint: write the whole path, starting with /; `~` is not expanded
config.json:28:35: providers.eight.script: does nothing for this type
  hint: remove it, or let the type be `script`"#;

const SERVER: &str = r#"{
    "server": {
        "host": "0.0.0.0",
        "port": "x",
        "prot": 1,
        "max_connections": 0,
        "max_concurrent": 1.5,
        "shutdown_grace": -1,
        "idle_timeout": 5,
        "log_level": "inof",
    },
    "permissions": {
        "default_preset": "sandbox",
        "blocked_paths": ["~/x", 1, ""],
        "presets": {
            "a": {"extends": "b"},
            "b": {"extends": "a"},
            "c": {"extends": "trustd", "allowed_paths": ["src"]},
            "d": {"extends": "c"},
            "e": {"tools": {"echo": {"enabled": 1, "timeout": 0, "allowed_paths": {}}}},
            "yolo": {"extends": "worker"},
            "": {"extends": "worker"},
        },
    },
}"#;

const SERVER_REPORT: &str = r#"config.json:3:17: server.host: the server listens on this machine only
  hint: use "127.0.0.1", "localhost" or "::1"; for others, put a proxy or an SSH tunnel in front
config.json:4:17: server.port: expected a whole number from 0 to 65535, found a string "x"
  hint: leave `port` out for the default, 8765
config.json:5:9: server.prot: unknown key
  hint: did you mean `port`?
config.json:6:28: server.max_connections: expected a whole number from 1 to 65536, found 0
  hint: leave `max_connections` out for the default, 1024
config.json:7:27: server.max_concurrent: expected a whole number from 1 to 65536, found 1.5
  hint: leave `max_concurrent` out for the default, 32
config.json:8:27: server.shutdown_grace: expected a number of seconds from 0, at most 2592000, found -1
  hint: leave `shutdown_grace` out for the default, 10
config.json:10:22: server.log_level: expected one of error, warn, info, debug, trace, found a string "inof"
  hint: did you mean "info"?
config.json:13:27: permissions.default_preset: there is no preset "sandbox"
  hint: did you mean `sandboxed`?
config.json:14:27: permissions.blocked_paths[0]: expected an absolute path
  hint: write the whole path, starting with /; `~` is not expanded
config.json:14:34: permissions.blocked_paths[1]: expected a string, found 1
  hint: write "blocked_paths": ["/a/directory"]
config.json:14:37: permissions.blocked_paths[2]: expected a string that is not empty, found a string ""
  hint: write "blocked_paths": ["/a/directory"]
config.json:16:30: permissions.presets.a.extends: the preset extends itself, or stands on more than 16 others
  hint: let one of them extend a built-in preset
config.json:17:30: permissions.presets.b.extends: the preset extends itself, or stands on more than 16 others
  hint: let one of them extend a built-in preset
config.json:18:30: permissions.presets.c.extends: there is no preset "trustd"
  hint: did you mean `trusted`?
config.json:18:58: permissions.presets.c.allowed_paths[0]: expected an absolute path
  hint: write the whole path, starting with /; `~` is not expanded
config.json:20:18: permissions.presets.e: `extends` is missing
  hint: name the preset it starts from
config.json:20:49: permissions.presets.e.tools.echo.enabled: expected true or false, found 1
  hint: leave it out to change nothing
config.json:20:63: permissions.presets.e.tools.echo.timeout: expected a number of seconds above 0, at most 2592000, found 0
  hint: leave it out for `skill_timeout`
config.json:20:83: permissions.presets.e.tools.echo.allowed_paths: expected a list, found an object
  hint: write "allowed_paths": ["/a/directory"]; [] allows nothing
config.json:21:13: permissions.presets.yolo: this preset is built in
  hint: choose another name
config.json:22:13: permissions.presets."": a name cannot be empty
  hint: choose a name"#;

const WAYS: &str = r#"{
    "network": {"allow_privat": true},
    "providers": {
        "a": {"type": "azure", "api_version": "1&x", "deployment": "..", "models": {"a": {"id": "a"}}},
        "b": {"type": "openai", "api_version": "1", "deployment": "d", "models": {"b": {"id": "b"}}},
        "c": {"type": "anthropic", "api_verson": "1", "ca_file": "ca.pem", "models": {"c": {"id": "c"}}},
        "d": {"type": "demo", "max_retries": 1, "prompt_caching": true, "models": {"d": {"id": "d"}}},
        "e": {"type": "script", "script": "/s", "ca_file": "/c", "models": {"e": {"id": "e"}}},
        "f": {"type": "vllm", "base_url": "https://[fd00:ec2::254]/v1", "models": {"f": {"id": "f"}}},
        "g": {"type": "vllm", "base_url": "https://224.0.0.1", "models": {"g": {"id": "g"}}},
        "h": {"type": "azur", "prompt_caching": 1, "models": {"h": {"id": "h", "reasonning": true}}},
    },
}"#;

const WAYS_REPORT: &str = r#"config.json:2:17: network.allow_privat: unknown key
  hint: did you mean `allow_private`?
config.json:4:14: providers.a: `base_url` is missing
  hint: name your resource, as in "base_url": "https://my-resource.openai.azure.com"
config.json:4:47: providers.a.api_version: this cannot stand in a URL
  hint: use letters, digits, `.`, `_` and `-`
config.json:4:68: providers.a.deployment: this cannot stand in a URL
  hint: use letters, digits, `.`, `_` and `-`
config.json:5:33: providers.b.api_version: does nothing for the type `openai`
  hint: remove it
config.json:5:53: providers.b.deployment: does nothing for the type `openai`
  hint: remove it
config.json:6:36: providers.c.api_verson: unknown key
  hint: did you mean `api_version`?
config.json:6:66: providers.c.ca_file: expected an absolute path
  hint: write the whole path, starting with /; `~` is not expanded
config.json:7:31: providers.d.max_retries: does nothing for the type `demo`
  hint: remove it
config.json:7:49: providers.d.prompt_caching: does nothing for the type `demo`
  hint: remove it
config.json:8:49: providers.e.ca_file: does nothing for the type `script`
  hint: remove it
config.json:9:43: providers.f.base_url: the address fd00:ec2::254 gives credentials of the machine to everybody who asks
  hint: name another host: no setting allows this one
config.json:10:43: providers.g.base_url: the address 224.0.0.1 is no single machine's
  hint: name the machine that is to be asked
config.json:11:23: providers.h.type: expected one of openai, openrouter, ollama, vllm, azure, anthropic, demo, script, found a string "azur"
  hint: did you mean "azure"?
config.json:11:49: providers.h.prompt_caching: expected true or false, found 1
  hint: leave `prompt_caching` out for the default, true
config.json:11:80: providers.h.models.h.reasonning: unknown key
  hint: did you mean `reasoning`?"#;
