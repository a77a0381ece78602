//! Agents of an earlier server: a recording has them as they were when it began.

use nexus3::rpc::method::SendParams;
use rustix::process::Signal;

use super::live::Live;
use super::replay::replay;

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
