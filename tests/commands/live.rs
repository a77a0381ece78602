//! What agents do, as a person watches it: `rpc watch`, `trace`.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use regex::Regex;

use super::support::{Serving, finished, ran};

/// Durations, drawn ids and the tokens that these have are others with every run.
fn without_chance(text: &str) -> String {
    let replaced = [
        (r"in \d+\.\d s", "in N s"),
        (r#""request_id":"[0-9a-f]{16}""#, r#""request_id":"N""#),
        (r"\d+ tokens in, \d+ out", "N tokens in, N out"),
    ];
    replaced.into_iter().fold(text.to_owned(), |text, (pattern, by)| {
        Regex::new(pattern).unwrap().replace_all(&text, by).into_owned()
    })
}

#[test]
fn a_trace_tells_what_a_family_did() {
    let server = Serving::start(&[]);
    server.rpc(&["create", "lead", "--preset", "trusted"]);
    server.rpc(&["create", "stranger"]);
    server.rpc(&["send", "lead", r#"call nexus_create {"agent_id": "hand"}"#]);
    let hand_off =
        r#"call nexus_send {"agent_id": "hand", "content": "call echo {\"message\":\"x\"}"}"#;
    server.rpc(&["send", "lead", hand_off]);
    server.rpc(&["send", "stranger", "Hello"]);
    server.rpc(&["destroy", "lead"]);
    let traced = finished(&mut server.command(&["trace", "lead"]));
    assert_eq!((traced.code, traced.stderr.as_str()), (0, ""));
    insta::assert_snapshot!("trace", without_chance(&traced.stdout));
    let narrow = finished(server.command(&["trace", "hand"]).env("NO_COLOR", "1"));
    assert!(narrow.stdout.starts_with("hand: created by lead\n"), "{narrow:?}");
    assert!(!narrow.stdout.contains('\x1b'));
}

#[test]
fn a_watch_ends_with_its_reader() {
    let server = Serving::start(&[]);
    server.rpc(&["create", "scout"]);
    let mut command = server.command(&["rpc", "watch", "scout", "--after", "0", "--json"]);
    let mut watching = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdout = BufReader::new(watching.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    let event: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!((event["type"].as_str(), event["seq"].as_u64()), (Some("agent_created"), Some(1)));
    // It notices without having anything to tell.
    drop(stdout);
    let mut told = String::new();
    watching.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    assert_eq!((watching.wait().unwrap().code(), told.as_str()), (Some(0), ""));
}

#[test]
fn a_trace_ends_with_its_reader() {
    let server = Serving::start(&[]);
    server.rpc(&["create", "scout"]);
    let mut command = server.command(&["trace", "scout", "--follow"]);
    let mut tracing = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut stdout = BufReader::new(tracing.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    assert_eq!(line, "scout: created\n");
    drop(stdout);
    assert_eq!(tracing.wait().unwrap().code(), Some(0));
}

#[test]
fn a_trace_follows_an_agent_over_its_names() {
    let server = Serving::start(&[]);
    // Somebody else had the first name before.
    server.rpc(&["create", "."]);
    server.rpc(&["destroy", ".1"]);
    assert_eq!(server.rpc(&["create", "."]), ran(0, ".1\n", ""));
    let mut command = server.command(&["trace", ".1", "--follow"]);
    let mut following = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut stdout = BufReader::new(following.stdout.take().unwrap());
    for expected in [".1: created\n", ".1: destroyed\n", ".1: created\n"] {
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        assert_eq!(line, expected);
    }
    server.rpc(&["save", ".1", "scout"]);
    // The name is free again, for a stranger.
    assert_eq!(server.rpc(&["create", "."]), ran(0, ".1\n", ""));
    server.rpc(&["rename", "scout", "lead"]);
    server.rpc(&["send", "lead", "Hello"]);
    let traced = finished(&mut server.command(&["trace", "lead"]));
    let lines: Vec<&str> = traced.stdout.lines().collect();
    let names = [".1: created", "scout: was .1 until now", "lead: was scout until now"];
    assert_eq!(lines[..4], [&names[..], &["lead: ← cli: Hello"]].concat(), "{traced:?}");
    server.rpc(&["shutdown"]);
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    assert!(rest.starts_with(&format!("{}\n{}\n", names[1], names[2])), "{rest}");
    assert!(rest.ends_with("the server stops\n"), "{rest}");
    assert_eq!(following.wait().unwrap().code(), Some(0));
}

#[test]
fn a_watch_ends_with_its_server() {
    let server = Serving::start(&[]);
    server.rpc(&["create", "scout"]);
    let mut command = server.command(&["rpc", "watch", "--after", "0"]);
    let mut watching = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut stdout = BufReader::new(watching.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    assert_eq!(line, "scout: created\n");
    assert_eq!(server.rpc(&["shutdown"]).code, 0);
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    assert_eq!((watching.wait().unwrap().code(), rest.as_str()), (Some(0), "the server stops\n"));
}

#[test]
fn a_watch_outlives_its_server() {
    let mut server = Serving::start(&[]);
    server.rpc(&["create", "scout"]);
    let mut command = server.command(&["rpc", "watch", "--after", "0"]);
    let mut watching = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdout = BufReader::new(watching.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    // The next one has another token.
    server.child = server.command(&["serve"]).stderr(Stdio::null()).spawn().unwrap();
    while server.rpc(&["detect"]).code != 0 {}
    server.rpc(&["create", "second"]);
    server.rpc(&["status", "scout"]);
    for expected in ["second: created\n", "scout: is back\n"] {
        line.clear();
        stdout.read_line(&mut line).unwrap();
        assert_eq!(line, expected);
    }
    server.rpc(&["shutdown"]);
    let mut told = String::new();
    watching.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    assert!(told.starts_with("lost the server (") && told.ends_with("; trying again\n"), "{told}");
    assert_eq!(watching.wait().unwrap().code(), Some(0));
}

#[test]
fn an_agent_that_never_was_has_no_trace() {
    let server = Serving::start(&[]);
    let nobody = "error: Agent not found: scout\n";
    assert_eq!(finished(&mut server.command(&["trace", "scout"])), ran(1, "", nobody));
    server.rpc(&["create", "scouts"]);
    let near = "error: Agent not found: scout; did you mean `scouts`?\n";
    assert_eq!(finished(&mut server.command(&["trace", "scout"])), ran(1, "", near));
    assert_eq!(server.rpc(&["watch", "scout"]), ran(1, "", near));
}
