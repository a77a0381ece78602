//! What real machines do and simulated ones do not by themselves: programs that say more than anybody keeps,
//! or end by a signal, people who work on the same files, keys that nobody told the server of.

use nexus3::id::AgentId;
use nexus3::rpc::method::SendParams;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::live::Live;
use super::replay::replay;

/// A scenario in which an agent is told once for each of these to make these calls.
fn asking(turns: &[Value]) -> String {
    let call = |call: &Value| {
        let (tool, args) = (&call[0], Value::String(call[1].to_string()));
        format!("{{ tool = {tool}, args_json = {args} }}")
    };
    let turn = |calls: &Value| {
        let calls: Vec<String> = calls.as_array().unwrap().iter().map(call).collect();
        let asks = calls.join(", ");
        format!(
            "[[model]]\nagent = \"a\"\nasks = [{asks}]\n[[model]]\nagent = \"a\"\nsays = \"Done.\"\n"
        )
    };
    let models: Vec<String> = turns.iter().map(turn).collect();
    let head = "schema = 1\nabout = \"An agent does what it is told.\"\n";
    [head, &models.concat(), "[[step]]\ncall = \"list_agents\"\n"].concat()
}

fn shell(script: &str) -> Value {
    json!(["exec", { "program": "sh", "args": ["-c", script] }])
}

fn read(path: &str) -> Value {
    json!(["read_file", { "path": path }])
}

async fn go(live: &Live, agent: &AgentId) {
    let params = SendParams { content: "Go".to_owned(), ..SendParams::default() };
    live.client.send(agent, &params).await.unwrap();
}

/// A session with an agent that may do anything, as the recording that it left, which replays the same.
/// Between its turns somebody does something to the project.
async fn session(turns: &[Value], between: impl Fn(usize, &Live)) -> String {
    let live = Live::start_with(&["--allow-yolo"], &asking(turns)).await;
    let a = live.create("a", "yolo", None).await;
    for turn in 0..turns.len() {
        between(turn, &live);
        go(&live, &a).await;
    }
    let text = live.end(Signal::TERM).text;
    let played = replay(&text);
    assert_eq!(played.failures, [""; 0], "{text}\n{}", played.transcript);
    text
}

/// The lines at the top of a recording, but for the first.
fn first_lines(text: &str) -> Vec<&str> {
    text.lines().skip(1).take_while(|line| line.starts_with('#')).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_replays_however_much_it_says_and_however_it_ends() {
    let turns = [
        json!([shell("seq 1 400000")]),
        json!([shell("seq 1 300000 >&2; for i in $(seq 1 3000); do echo $i; done")]),
        json!([shell("kill -9 $$"), shell("exit 255")]),
        json!([shell(r"printf 'a\377\n'; printf '\303' >&2")]),
    ];
    let text = session(&turns, |_, _| {}).await;
    assert!(text.contains("repeat = ") && text.contains("signal = 9"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_somebody_removes_between_two_turns_is_gone_in_the_replay() {
    let turns = [
        json!([shell("echo a > a.txt; echo b > b.txt")]),
        json!([read("a.txt"), read("b.txt")]),
        json!([read("a.txt")]),
        json!([["list_directory", { "path": "." }]]),
    ];
    let text = session(&turns, |turn, live| match turn {
        2 => std::fs::remove_file(live.place.path().join("a.txt")).unwrap(),
        3 => std::fs::remove_file(live.place.path().join("b.txt")).unwrap(),
        _ => {}
    });
    let text = text.await;
    assert_eq!(text.matches("= { remove = true }").count(), 2, "{text}");
    assert!(!text.contains("writes = { \"/project/a.txt\" = { remove"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_program_moves_is_no_longer_where_it_was() {
    let turns = [
        json!([shell("echo a > a.txt; mkdir d; echo b > d/b.txt")]),
        json!([read("a.txt"), read("d/b.txt")]),
        json!([shell("mv a.txt c.txt; mv d e")]),
        json!([["list_directory", { "path": "." }], ["glob", { "pattern": "**" }], read("e/b.txt")]),
    ];
    session(&turns, |_, _| {}).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_agent_asks_about_elsewhere_is_there_in_the_replay() {
    let turns = [json!([["file_info", { "path": "/etc/passwd" }]])];
    let text = session(&turns, |_, _| {}).await;
    assert!(text.contains("\"/etc/passwd\" = { text = \" \""), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_read_as_often_as_one_likes() {
    let again = json!([["tail", { "path": "large.txt", "lines": 1 }]]);
    let turns: Vec<Value> = std::iter::repeat_n(again, 20).collect();
    let text = session(&turns, |turn, live| {
        if turn == 0 {
            let line = "a line of a long file\n";
            std::fs::write(live.place.path().join("large.txt"), line.repeat(45_000)).unwrap();
        }
    });
    assert_eq!(first_lines(&text.await), [""; 0], "it is kept once");
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_that_nobody_told_the_server_of_are_nowhere() {
    const ENV: &str = "DB_PASSWORD=hunter2hunter2\nSERVICE=sk-proj-0123456789abcdefABCD\n";
    let turns = [
        json!([shell("cat .env; echo again: hunter2hunter2")]),
        json!([read(".env"), ["echo", { "message": "hunter2hunter2 ghp_0123456789abcdefghij" }]]),
    ];
    let text = session(&turns, |turn, live| {
        if turn == 0 {
            std::fs::write(live.place.path().join(".env"), ENV).unwrap();
        }
    });
    let text = text.await;
    for key in ["hunter2", "sk-proj", "ghp_"] {
        assert!(!text.contains(key), "{text}");
    }
    assert!(text.contains("again: [redacted]"), "{text}");
    let told = "# Files in which a key or a place of the machine stood, and which are of another size \
                here: /project/.env.";
    assert_eq!(first_lines(&text), [told]);
}
