//! Saved conversations, from the command line.

use serde_json::json;

use super::once::silent;
use super::support::{Serving, finished, ran, run};

#[test]
fn a_conversation_is_saved_and_loaded() {
    let server = Serving::start(&[]);
    assert_eq!(server.rpc(&["sessions"]), ran(0, "no sessions\n", ""));
    server.rpc(&["create", "scout"]);
    server.rpc(&["send", "scout", "Hello"]);
    assert_eq!(server.rpc(&["save", "scout"]), ran(0, "scout\n", ""));
    assert_eq!(server.rpc(&["save", "scout", "copy"]), ran(0, "copy\n", ""));
    let listed = server.rpc(&["sessions", "--json"]).json();
    assert_eq!(listed["total"], 2, "{listed}");
    assert_eq!(server.rpc(&["load", "copy", "second"]), ran(0, "second\n", ""));
    assert_eq!(server.rpc(&["messages", "second", "--json"]).json()["total"], 2);
    let shown = finished(&mut server.command(&["sessions", "show", "scout"])).stdout;
    assert!(shown.contains("\n\n#0 user (cli): Hello\n#1 assistant: "), "{shown}");
    assert_eq!(server.rpc(&["clone", "copy", "third"]), ran(0, "third\n", ""));
    assert_eq!(server.rpc(&["rename", "third", "fourth"]), ran(0, "fourth\n", ""));
    assert_eq!(server.rpc(&["delete", "fourth"]), ran(0, "fourth\n", ""));
    assert_eq!(server.rpc(&["delete", "fourth"]).code, 1);
    assert_eq!(server.rpc(&["create", "."]), ran(0, ".1\n", ""));
    assert_eq!(server.rpc(&["save", ".1", "promoted"]), ran(0, "promoted\n", ""));
    assert_eq!(server.rpc(&["status", "promoted"]).code, 0);
    let near = server.rpc(&["load", "scot"]);
    assert_eq!((near.code, near.stdout.as_str()), (1, ""));
    assert_eq!(near.stderr.lines().count(), 1, "{near:?}");
    assert!(
        near.stderr.starts_with("error: Session not found: scot") && near.stderr.contains("scout")
    );
}

#[test]
fn what_is_stored_can_be_looked_at_without_a_server() {
    let server = Serving::start(&[]);
    server.rpc(&["create", "scout"]);
    server.rpc(&["send", "scout", "Hello"]);
    server.rpc(&["save", "scout"]);
    server.rpc(&["shutdown"]);
    let (_silent, port) = silent();
    let home = server.home.path().to_owned();
    let sessions =
        |words: &[&str]| run(&home, &[&["sessions"], words, &["--port", &port]].concat());
    let token = home.join(format!("rpc-{}.token", server.port));
    while token.exists() {}
    let listed = sessions(&["list", "--json"]).json();
    assert_eq!(listed["sessions"][0]["name"], "scout", "{listed}");
    let shown = sessions(&["show", "scout", "--json"]).json();
    assert_eq!((&shown["schema_version"], &shown["agent_id"]), (&json!(1), &json!("scout")));
    let file = home.join("scout.json");
    let export = ["export", "scout", "--output", file.to_str().unwrap()];
    assert_eq!(sessions(&export), ran(0, "", ""));
    let exported: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(exported, shown);
    assert_eq!(sessions(&export).code, 1, "it writes over nothing");
    assert_eq!(sessions(&["export", "scout"]).json(), shown);
    // What a later program wrote there goes along.
    let mut later = exported;
    later["agent_id"] = json!("later");
    later["mood"] = json!({"now": "curious"});
    std::fs::write(home.join("sessions/later.json"), later.to_string()).unwrap();
    assert_eq!(sessions(&["export", "later"]).json()["mood"], later["mood"]);
    let pruned = sessions(&["prune", "--older-than", "30d", "--dry-run"]);
    assert_eq!(pruned, ran(0, "0 would be removed, 0 bytes\n", ""));
    assert_eq!(sessions(&["prune", "--older-than", "soon"]).code, 2);
}
