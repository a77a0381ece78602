//! Sessions with MCP servers, recorded in the simulation and replayed there: what the servers of the
//! recording are asked and answer is what those were that it was made with.

use std::path::Path;

use nexus3_sim::scenario::{Scenario, ServeFlag};

use super::replay::{Events, parting, played, same_again};

/// In these the way to a server fails, which is nothing that a server says.
const HOST_FAILS: [&str; 2] = [
    "mcp_host_that_crashes_is_reached_again.toml",
    "mcp_host_that_is_cut_off_slow_or_held_up.toml",
];

#[test]
fn a_recording_says_that_a_server_could_not_be_reached() {
    for name in HOST_FAILS {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios").join(name);
        let text = std::fs::read_to_string(path).unwrap();
        let mut scenario = Scenario::parse(name, &text).unwrap();
        scenario.serve.push(ServeFlag::Record);
        let live = played(&scenario);
        assert_eq!(live.failures, [""; 0], "{name}\n{}", live.transcript);
        let recording = live.recordings.last().unwrap();
        let first = recording.lines().take_while(|line| line.starts_with('#'));
        let told = first.filter(|line| line.contains("MCP")).count();
        assert_eq!(told, 1, "{name}\n{recording}");
    }
}

#[test]
fn every_scenario_with_mcp_servers_is_the_same_when_its_recording_is_replayed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    let (mut count, mut parted) = (0, Vec::new());
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if name.starts_with("mcp_") && !HOST_FAILS.contains(&name.as_str()) {
            match parting(&name, &std::fs::read_to_string(&path).unwrap(), Events::InOrder) {
                Ok(recording) => {
                    assert!(!recording.contains("very-secret-value"), "{name}\n{recording}");
                }
                Err(told) => parted.push(told),
            }
            count += 1;
        }
    }
    assert!(parted.is_empty(), "{}", parted.join("\n\n"));
    assert!(count >= 10, "there were {count}");
}

const SECRETS: &str = r#"
schema = 1
about = "A server with a key, connected to by a call, and two that are not there."
serve = ["--allow-yolo"]
[files]
"/home/nexus/.nexus3/mcp.json" = '{"mcpServers": {"gone": {"command": "no-such-program", "args": ["--key=canary-of-args"]}}}'
[[mcp]]
name = "files"
configured = false
[[mcp.tool]]
name = "read"
returns = "The key is canary-of-env."
[[model]]
agent = "a"
asks = [{ tool = "mcp__mine__read" }]
[[model]]
agent = "a"
says = "I know."
[[step]]
call = "mcp_connect"
params = { name = "mine", config = { command = "mcp-files", args = ["--key=canary-of-args"], env = { FILES = "canary-of-env" } } }
expect = { connected = true }
[[step]]
call = "mcp_connect"
params = { name = "nowhere", config = { url = "http://127.0.0.1:9/x?key=canary-of-url", headers = { K = "canary-of-header" } } }
expect = { connected = false }
[[step]]
call = "mcp_connect"
params = { name = "bad", config = { url = "http://h/", command = "x", args = ["canary-of-args"] } }
expect_error = { code = -32602 }
[[step]]
call = "mcp_connect"
params = { name = "gone" }
expect = { connected = false }
[[step]]
call = "create_agent"
params = { agent_id = "a", preset = "yolo" }
[[step]]
call = "send"
agent = "a"
params = { content = "Go" }
[[step]]
stop = "SIGTERM"
"#;

#[test]
fn keys_of_servers_are_nowhere_and_those_that_are_not_there_are_not_there_again() {
    let recording = same_again("secrets.toml", SECRETS);
    assert!(!recording.contains("canary"), "{recording}");
    assert!(!recording.contains("no-such-program"), "{recording}");
    assert!(recording.contains("returns = \"The key is [redacted].\""), "{recording}");
}
