//! The invariants are held against whole runs, while these go on: a secret that an agent is named
//! after is found everywhere it gets to. And so is what the file expects of their end.

use std::time::Duration;

use nexus3_sim::play::{self, Sought};
use nexus3_sim::scenario::{Invariant, Scenario};
use nexus3_sim::verdict::Kind;

const LEAK: &str = r#"
schema = 1
about  = "An agent is called like a secret."
[env]
PLANTED_CANARY = "canary-0123456789"
[[model]]
says = "Hello."
[[step]]
call   = "create_agent"
params = { agent_id = "canary-0123456789" }
[[step]]
watch  = {}
[[step]]
call   = "send"
agent  = "canary-0123456789"
params = { content = "Hello, canary-0123456789" }
"#;

const IGNORED: &str = r#"
[expect]
ignore = [{ invariant = "window", reason = "the agent is called like that" }]
"#;

#[test]
fn a_secret_is_found_wherever_it_gets_to() {
    let failures = |text: &str| play::play(&Scenario::parse("x.toml", text).unwrap(), 0).failures;
    let found = [
        "invariant window: a secret stands in the transcript",
        "invariant window: a secret stands in the log: DEBUG nexus3::pool::create: created \
         agent=[secret] preset=\"sandboxed\"",
        "invariant window: a secret stands in the file /home/nexus/.nexus3/nexus3.db-wal",
        "invariant window: a secret stands in an event turn_queued",
        "invariant window: a secret stands in an event turn_started",
        "invariant window: a secret stands in a model request of canary-0123456789",
        "invariant window: a secret stands in a header of a request of canary-0123456789",
        "invariant window: a secret stands in an event content_chunk",
        "invariant window: a secret stands in the file \
         /home/nexus/.nexus3/logs/canary-0123456789/context.md",
        "invariant window: a secret stands in an event turn_completed",
        "invariant window: a secret stands in the file /home/nexus/.nexus3/nexus3.db",
    ];
    assert_eq!(failures(LEAK), found);
    assert_eq!(failures(&format!("{LEAK}{IGNORED}")), Vec::<String>::new());
}

#[test]
fn a_run_ends_with_what_is_sought_and_where_it_is_not_to_be_found() {
    let text = format!("{LEAK}[[step]]\nsleep = \"1m\"\n");
    let scenario = Scenario::parse("x.toml", &text).unwrap();
    let seeking = |invariant, within| {
        let sought = Sought { kind: Kind::Invariant(invariant), within };
        let played = play::play_seeking(&scenario, 0, sought);
        (played.kinds.contains(&sought.kind), played.virtual_time)
    };
    let (is_found, after) = seeking(Invariant::Window, Duration::from_mins(10));
    assert!(is_found && after < Duration::from_secs(1), "{after:?}");
    let within = Duration::from_secs(10);
    let (is_found, after) = seeking(Invariant::Pairs, within);
    assert!(!is_found && after > within && after < 2 * within, "{after:?}");
}

const RESTARTED: &str = r#"
schema = 1
about  = "An agent sleeps on the disk."
[[step]]
call   = "create_agent"
params = { agent_id = "scout" }
[[step]]
stop   = "SIGTERM"
[[step]]
start  = true
[expect]
agents = []
"#;

#[test]
fn an_agent_that_only_is_on_the_disk_counts() {
    let scenario = Scenario::parse("x.toml", RESTARTED).unwrap();
    assert_eq!(play::play(&scenario, 0).failures, [r#"expected the agents [], found ["scout"]"#]);
}
