//! Agents of an earlier server: a recording has them as they were when it began.

use nexus3::rpc::method::SendParams;
use rustix::process::Signal;

use super::live::Live;
use super::replay::{replay, same_again};

const BEFORE: &str = r#"
schema = 1
about = "A lead and its clerk, over two servers."
[files]
"/project/notes.txt" = "three apples"
[[model]]
agent = "lead"
asks = [{ tool = "read_file", args = { path = "notes.txt" } }]
[[model]]
agent = "lead"
says = "There are three."
[[model]]
agent = "clerk"
says = "I am the clerk."
[[model]]
agent = "lead"
says = "Three, as I said."
[[model]]
agent = "lead"
asks = [{ tool = "nexus_send", args = { agent_id = "clerk", content = "Who are you?" } }]
[[model]]
agent = "clerk"
says = "Still the clerk."
[[model]]
agent = "lead"
says = "Still the clerk, it says."
[[step]]
call = "list_agents"
"#;

fn asks(content: &str) -> SendParams {
    SendParams { content: content.to_owned(), ..SendParams::default() }
}

/// A server that has talked with two agents, and another after it, which records.
async fn talked(arguments: &[&str]) -> Live {
    let live = Live::start(BEFORE).await;
    let lead = live.create("lead", "trusted", None).await;
    let clerk = live.create("clerk", "worker", Some(&lead)).await;
    live.create("bystander", "worker", None).await;
    live.client.send(&lead, &asks("How many?")).await.unwrap();
    live.client.send(&clerk, &asks("Who?")).await.unwrap();
    let live = live.restart(arguments);
    live.client.send(&lead, &asks("How many was it?")).await.unwrap();
    live.client.send(&lead, &asks("And who is the clerk?")).await.unwrap();
    live
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_that_come_back_when_they_are_asked_go_on_in_the_replay() {
    let text = talked(&[]).await.end(Signal::TERM).text;
    let played = replay(&text);
    assert_eq!(played.failures, [""; 0], "{text}\n{}", played.transcript);
    assert_eq!(played.conversations["lead"].len(), 10, "{text}");
    assert_eq!(played.conversations["clerk"].len(), 4, "{text}");
    assert!(!text.contains("bystander"), "who was not asked for is nobody's business: {text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_that_come_back_at_the_start_do_so_in_the_replay() {
    let text = talked(&["--resume"]).await.end(Signal::TERM).text;
    let played = replay(&text);
    assert_eq!(played.failures, [""; 0], "{text}\n{}", played.transcript);
    assert_eq!(played.conversations["lead"].len(), 10, "{text}");
    assert!(text.contains("bystander"), "{text}");
}

const SUMMED_UP: &str = r#"
schema = 1
about = "An agent that was summed up, has limits and a tool that its preset has not, over two servers."
[config.providers.p]
type = "openai"
auth_method = "none"
models = { small = { id = "small-1", context_window = 6000, max_output = 500 } }
[config.permissions.presets.reader]
extends = "trusted"
tools = { exec = { enabled = false } }
[[program]]
run = ["ls"]
stdout = "fruits"
[[model]]
agent = "lead"
when = "^Count"
says = "LONG"
times = 4
[[model]]
agent = "lead"
when = "^List"
asks = [{ tool = "exec", args = { program = "ls", args = [] } }]
[[model]]
agent = "lead"
when = "fruits"
says = "Five fruits."
[[model]]
agent = "lead"
says = "Apples were counted, four times."
[[step]]
call = "create_agent"
params = { agent_id = "lead", preset = "reader", limits = { max_turns = 5, deadline_s = 600 } }
[[step]]
call = "set_permissions"
agent = "lead"
params = { preset = "reader", enable_tools = ["exec"] }
[[step]]
call = "send"
agent = "lead"
repeat = 4
params = { content = "Count", request_id = "r${n}" }
[[step]]
call = "compact"
agent = "lead"
expect = { compacted = true }
[[step]]
stop = "SIGTERM"
[[step]]
start = true
[[step]]
call = "send"
agent = "lead"
params = { content = "Count", request_id = "r1" }
expect = { finish_reason = "stop" }
[[step]]
client = "alice"
watch = { agent = "lead" }
[[step]]
name = "list"
call = "send"
agent = "lead"
params = { content = "List" }
background = true
[[step]]
client = "alice"
confirm = { tool = "exec", decision = "allow_once" }
[[step]]
after = "list"
call = "send"
agent = "lead"
params = { content = "Count" }
expect_error = { code = -32003, data = { reason = "limit" } }
[[step]]
stop = "SIGTERM"
"#;

#[test]
fn a_summary_limits_and_enabled_tools_of_an_earlier_server_are_in_the_replay() {
    let text = same_again("summed_up.toml", &SUMMED_UP.replace("LONG", &"apple ".repeat(500)));
    let part = |key: &str| text.lines().any(|line| line.starts_with(&format!("{key} = ")));
    assert!(part("summary") && part("limits") && part("used") && part("enabled_tools"), "{text}");
    assert!(!text.contains("load_session"), "they come back as they did: {text}");
    let changed = text.replacen("max_turns = 5", "max_turns = 4", 1);
    assert_ne!(changed, text);
    assert_ne!(replay(&changed).failures, [""; 0], "limits count in a replay");
}
