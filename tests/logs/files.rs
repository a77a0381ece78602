//! What is where, on a real disk.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use nexus3::event::{Audience, Ended, What};
use nexus3::logs::{Detail, Logs};
use nexus3::provider::{Carried, Fault, Passed, Traffic};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{LOGS, committed, entries, id, log_on, real_world, said, simulated};

const ALL: Detail = Detail { verbose: true, raw: true };

fn passed(message: &str) -> Passed {
    Passed {
        provider: "p".to_owned(),
        model: "m".to_owned(),
        exchange: 1,
        carried: Carried::Error { fault: Fault::Eof, message: message.to_owned() },
    }
}

fn read(dir: &Path, name: &str) -> String {
    fs::read_to_string(dir.join(name)).expect("the log is there")
}

fn started(content: &str) -> What {
    What::TurnStarted { content: content.into(), source: "rpc".into(), source_agent_id: None }
}

fn temp_dir() -> TempDir {
    tempfile::tempdir().expect("a temporary directory is made")
}

#[tokio::test]
async fn each_agent_has_its_own_lines_in_its_own_files() {
    let temp = temp_dir();
    let dir = temp.path().join("some/where");
    let logs = Logs::start(&real_world(), dir.clone(), ALL);
    for (agent, secret) in [("w1", "red"), (".1", "blue")] {
        logs.message(&id(agent), &said(secret));
        logs.publish(&[committed(agent, Some("r1"), started(secret))]);
        logs.traffic().expect("it was asked for").passed(&id(agent), passed(secret));
    }
    logs.close().await;
    for (agent, own, other) in [("w1", "red", "blue"), (".1", "blue", "red")] {
        for name in ["context.md", "verbose.md", "raw.jsonl"] {
            let text = read(&dir, &format!("{agent}/{name}"));
            assert!(text.contains(own) && !text.contains(other), "{agent}/{name}: {text}");
            let mode = fs::metadata(dir.join(agent).join(name)).expect("it is there").permissions();
            assert_eq!(mode.mode() & 0o777, 0o600);
        }
        let mode = fs::metadata(dir.join(agent)).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }
    assert_eq!(entries(&read(&dir, "w1/context.md")), ["user: red"]);
}

#[tokio::test]
async fn a_transcript_is_all_there_is_unless_more_is_asked_for() {
    let temp = temp_dir();
    let logs = Logs::start(&real_world(), temp.path().to_owned(), Detail::default());
    assert!(logs.traffic().is_none());
    logs.message(&id("w1"), &said("hi"));
    logs.publish(&[committed("w1", Some("r1"), started("hi"))]);
    logs.close().await;
    let files: Vec<_> = fs::read_dir(temp.path().join("w1")).expect("it is there").collect();
    assert_eq!(files.len(), 1);
}

#[tokio::test]
async fn a_second_life_goes_on_in_the_same_file_and_says_so() {
    let temp = temp_dir();
    let alone = |what: fn(_) -> What| committed("w1", None, what(None));
    let created = || alone(|parent_agent_id| What::AgentCreated { parent_agent_id });
    let destroyed = || alone(|parent_agent_id| What::AgentDestroyed { parent_agent_id });
    for words in ["first", "second"] {
        let logs = Logs::start(&real_world(), temp.path().to_owned(), Detail::default());
        logs.publish(&[created()]);
        logs.message(&id("w1"), &said(words));
        let ended = Ended { reason: "destroyed".into(), error: None, partial: String::new() };
        logs.publish(&[committed("w1", Some("r1"), What::TurnCancelled(ended)), destroyed()]);
        logs.close().await;
    }
    let life = |words: &str| {
        [
            "agent created".to_owned(),
            format!("user: {words}"),
            "turn `r1` cancelled (destroyed)".to_owned(),
            "agent destroyed".to_owned(),
        ]
    };
    assert_eq!(
        entries(&read(temp.path(), "w1/context.md")),
        [life("first"), life("second")].concat()
    );
}

#[tokio::test]
async fn traffic_names_the_request_it_belongs_to() {
    let temp = temp_dir();
    let logs = Logs::start(&real_world(), temp.path().to_owned(), ALL);
    let completed = What::TurnCompleted {
        content: "".into(),
        halted: false,
        finish_reason: "stop".into(),
        usage: nexus3::message::Usage::default(),
    };
    logs.publish(&[committed("w1", Some("r1"), started("hi"))]);
    logs.passed(&id("w1"), passed("a"));
    logs.passed(&id("w2"), passed("b"));
    logs.publish(&[committed("w1", Some("r1"), completed)]);
    logs.passed(&id("w1"), passed("c"));
    logs.close().await;
    let lines = |agent: &str| -> Vec<Value> {
        let text = read(temp.path(), &format!("{agent}/raw.jsonl"));
        text.lines().map(|line| serde_json::from_str(line).expect("it is JSON")).collect()
    };
    let first = lines("w1").remove(0);
    let at = first["at"].clone();
    assert_eq!(
        first,
        json!({
            "at": at, "direction": "error", "provider": "p", "model": "m", "request_id": "r1",
            "exchange": 1, "fault": "eof", "message": "a",
        })
    );
    assert_eq!(lines("w1")[1].get("request_id"), None, "the turn has ended");
    assert_eq!(lines("w2")[0].get("request_id"), None, "it is another agent");
}

#[tokio::test]
async fn an_entry_begins_on_its_own_line_after_half_of_one() {
    let temp = temp_dir();
    fs::create_dir(temp.path().join("w1")).expect("it is new");
    fs::write(temp.path().join("w1/context.md"), "## 2026 us").expect("it is new");
    let logs = Logs::start(&real_world(), temp.path().to_owned(), Detail::default());
    logs.message(&id("w1"), &said("hi"));
    logs.close().await;
    let text = read(temp.path(), "w1/context.md");
    assert!(text.starts_with("## 2026 us\n## "), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_file_that_was_removed_is_made_again() {
    let (world, disk) = simulated();
    let logs = Logs::start(&world, LOGS.into(), Detail::default());
    for words in ["first", "second"] {
        logs.message(&id("w1"), &said(words));
        // In virtual time: longer than the writer needs.
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(entries(&log_on(&disk, "w1/context.md")), [format!("user: {words}")]);
        disk.remove(Path::new("/home/logs/w1")).expect("it is there");
        assert_eq!(disk.handles(), 0, "nothing is held open");
    }
}
