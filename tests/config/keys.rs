//! Every key of the configuration, with what shows that it does something. A key that is added to the
//! schema without such a proof fails here.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use nexus3::config::schema;
use serde_json::Value;

/// What shows a key's effect.
#[derive(Clone, Copy)]
enum Proof {
    /// A scenario whose configuration sets it; its snapshot has the effect.
    Scenario(&'static str),
    /// A test, by its file and its name.
    Test(&'static str, &'static str),
}

use Proof::{Scenario, Test};

const ASKED: &str = "tests/config/asked.rs";
const EFFECTS: &str = "tests/config/effects.rs";

/// `*` stands for a name that people choose.
const PROOFS: &[(&str, Proof)] = &[
    ("default_model", Scenario("environment_wins_over_the_file")),
    ("max_tool_iterations", Scenario("iteration_limit_halts_the_turn")),
    ("max_concurrent_tools", Scenario("tools_run_together_when_asked_to")),
    ("skill_timeout", Scenario("tool_is_stopped_when_its_time_is_over")),
    ("turn_timeout", Scenario("turn_timeout_ends_a_turn")),
    ("confirmation_timeout", Scenario("confirmation_that_nobody_answers_is_denied_in_time")),
    ("max_messages", Scenario("messages_beyond_memory_are_still_paged")),
    ("compaction.enabled", Scenario("window_of_two_thousand_tokens_is_never_exceeded")),
    ("compaction.model", Scenario("compact_sums_up_at_once")),
    ("compaction.trigger_threshold", Scenario("compaction_keeps_to_its_shares")),
    ("compaction.recent_preserve_ratio", Scenario("compaction_keeps_to_its_shares")),
    ("permissions.default_preset", Scenario("preset_gives_a_tool_its_own_time")),
    ("permissions.blocked_paths", Scenario("trusted_agent_reads_outside_and_writes_at_home")),
    ("permissions.presets.*.extends", Scenario("custom_presets_keep_to_their_paths")),
    ("permissions.presets.*.description", Scenario("preset_gives_a_tool_its_own_time")),
    ("permissions.presets.*.allowed_paths", Scenario("custom_presets_keep_to_their_paths")),
    ("permissions.presets.*.blocked_paths", Scenario("custom_presets_keep_to_their_paths")),
    ("permissions.presets.*.tools.*.enabled", Scenario("custom_presets_keep_to_their_paths")),
    ("permissions.presets.*.tools.*.allowed_paths", Scenario("custom_presets_keep_to_their_paths")),
    ("permissions.presets.*.tools.*.timeout", Scenario("preset_gives_a_tool_its_own_time")),
    (
        "network.allow_private",
        Test(EFFECTS, "private_addresses_are_within_reach_only_when_allowed"),
    ),
    ("server.host", Test(EFFECTS, "a_server_on_the_other_loopback_is_found_there")),
    (
        "server.port",
        Test(EFFECTS, "a_server_listens_where_its_host_and_port_say_and_commands_look_there"),
    ),
    ("server.max_connections", Scenario("one_connection_too_many")),
    (
        "server.max_concurrent",
        Test("tests/http/load.rs", "one_request_too_many_is_told_when_to_come_back"),
    ),
    ("server.idle_timeout", Scenario("idle_server_stops")),
    ("server.shutdown_grace", Scenario("stop_cancels_a_turn_after_the_grace")),
    ("server.log_level", Test(EFFECTS, "a_server_logs_as_much_as_its_level_says")),
    ("storage.sync", Scenario("normal_sync_may_lose_the_last_moments")),
    ("events.retain.per_agent", Scenario("forgotten_events_are_told_as_a_gap")),
    ("events.retain.days", Scenario("old_events_are_forgotten")),
    ("providers.*.type", Test(ASKED, "the_type_and_the_base_url_say_where_it_is_asked")),
    ("providers.*.base_url", Test(ASKED, "the_type_and_the_base_url_say_where_it_is_asked")),
    ("providers.*.api_version", Test(ASKED, "the_type_and_the_base_url_say_where_it_is_asked")),
    ("providers.*.deployment", Test(ASKED, "the_type_and_the_base_url_say_where_it_is_asked")),
    ("providers.*.api_key_env", Test(ASKED, "a_key_is_sent_as_it_is_configured")),
    ("providers.*.api_key_file", Test(ASKED, "a_key_is_sent_as_it_is_configured")),
    ("providers.*.auth_method", Test(ASKED, "a_key_is_sent_as_it_is_configured")),
    ("providers.*.headers.*", Test(ASKED, "headers_are_sent_and_name_the_agent")),
    ("providers.*.request_timeout", Scenario("late_model_is_asked_again")),
    ("providers.*.stream_idle_timeout", Scenario("model_that_says_nothing_is_asked_again")),
    (
        "providers.*.max_retries",
        Test(ASKED, "what_fails_in_passing_is_asked_again_as_often_as_configured"),
    ),
    (
        "providers.*.prompt_caching",
        Test(ASKED, "what_stays_the_same_is_marked_only_where_caching_is_on"),
    ),
    (
        "providers.*.allow_insecure_http",
        Test(EFFECTS, "unencrypted_requests_leave_this_machine_only_when_allowed"),
    ),
    ("providers.*.ca_file", Test("tests/tls.rs", "a_provider_is_trusted_by_its_own_authorities")),
    ("providers.*.script", Test("tests/config/script.rs", "a_script_answers_for_a_model")),
    ("providers.*.models.*.id", Test(ASKED, "a_model_is_asked_for_as_it_is_configured")),
    ("providers.*.models.*.max_output", Test(ASKED, "a_model_is_asked_for_as_it_is_configured")),
    ("providers.*.models.*.reasoning", Test(ASKED, "a_model_is_asked_for_as_it_is_configured")),
    ("providers.*.models.*.context_window", Scenario("long_conversation_is_summed_up")),
];

/// The keys below a part of the schema that hold a value.
fn keys(schema: &Value, part: &Value, path: &str, found: &mut BTreeSet<String>) {
    if let Some(name) = part["$ref"].as_str() {
        let name = name.rsplit('/').next().unwrap();
        return keys(schema, &schema["$defs"][name], path, found);
    }
    let below =
        |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    let named = part["properties"].as_object();
    for (name, part) in named.into_iter().flatten() {
        keys(schema, part, &below(name), found);
    }
    if part["additionalProperties"].is_object() {
        keys(schema, &part["additionalProperties"], &below("*"), found);
    } else if named.is_none() {
        found.insert(path.to_owned());
    }
}

fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Whether a configuration sets the key.
fn is_set(config: &toml::Value, key: &str) -> bool {
    let (name, rest) = key.split_once('.').map_or((key, None), |(name, rest)| (name, Some(rest)));
    let Some(table) = config.as_table() else { return false };
    let inside = |value: &toml::Value| rest.is_none_or(|rest| is_set(value, rest));
    match name {
        "*" => table.values().any(inside),
        name => table.get(name).is_some_and(inside),
    }
}

#[test]
fn every_key_has_a_proof_that_it_does_something() {
    let schema = schema();
    let mut known = BTreeSet::new();
    keys(&schema, &schema, "", &mut known);
    let proved: BTreeSet<String> = PROOFS.iter().map(|(key, _)| (*key).to_owned()).collect();
    assert_eq!(known, proved, "each key of the schema stands in the table, and no other");
    assert_eq!(proved.len(), PROOFS.len(), "each stands there once");
}

#[test]
fn every_proof_is_there_and_is_about_its_key() {
    for (key, proof) in PROOFS {
        match proof {
            Scenario(name) => {
                let scenario: toml::Value =
                    toml::from_str(&read(&format!("scenarios/{name}.toml"))).unwrap();
                let set = scenario.get("config").is_some_and(|config| is_set(config, key));
                assert!(set, "the configuration of {name} sets {key}");
                assert!(root(&format!("snapshots/{name}.snap")).is_file(), "{name}");
            }
            Test(file, name) => {
                let text = read(file);
                assert!(text.contains(&format!("fn {name}(")), "{file} has {name}");
                let own = key.rsplit('.').find(|part| *part != "*").unwrap();
                assert!(text.contains(own), "{file} is about {key}");
            }
        }
    }
}
