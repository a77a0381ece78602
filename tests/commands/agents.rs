//! One agent, by all the commands there are for it.

use serde_json::json;

use super::support::{Serving, finished, ran, run};

#[test]
fn an_agent_is_looked_at_and_changed() {
    let server = Serving::start(&[]);
    assert_eq!(server.rpc(&["create", "scout"]), ran(0, "scout\n", ""));
    server.rpc(&["send", "scout", r#"call echo {"message": "x"}"#]);

    let status = server.rpc(&["status", "scout", "--json"]).json();
    assert_eq!((&status["agent_id"], &status["status"]), (&json!("scout"), &json!("idle")));
    assert_eq!(status["context"]["message_count"], 4);
    assert!(status["tokens"]["total"].is_u64(), "{status}");
    let shown = server.rpc(&["status", "scout"]).stdout;
    assert!(shown.starts_with("agent     scout\nstatus    idle\nmodel     demo\n"), "{shown}");

    let messages = server.rpc(&["messages", "scout"]);
    let expected = "#0 user (cli): call echo {\"message\": \"x\"}\n\
        #1 assistant: → echo {\"message\":\"x\"}\n\
        #2 tool: x\n\
        #3 assistant: The tool `echo` answered: \"x\"\n";
    assert_eq!(messages, ran(0, expected, ""));
    let page = server.rpc(&["messages", "scout", "--offset", "1", "--limit", "2"]);
    assert_eq!(page.stderr, "1 more: go on with --offset 3\n");

    assert_eq!(server.rpc(&["model", "scout"]), ran(0, "demo (demo)\n", ""));
    assert_eq!(server.rpc(&["prompt", "scout", "Be brief."]), ran(0, "", ""));
    assert_eq!(server.rpc(&["prompt", "scout"]), ran(0, "Be brief.\n", ""));
    let permissions = server.rpc(&["permissions", "scout"]).stdout;
    assert!(permissions.starts_with("preset     sandboxed\n"), "{permissions}");
    let set = server.rpc(&["permissions", "scout", "worker", "--json"]).json();
    assert_eq!((&set["updated"], &set["preset"]), (&json!(true), &json!("worker")));
    let cwd = server.rpc(&["cwd", "scout", "--json"]).json();
    assert!(cwd["cwd"].as_str().unwrap().starts_with('/'), "{cwd}");
    let refused = server.rpc(&["cwd", "scout", "no/such/place"]);
    assert_eq!(refused.code, 1);
    assert!(refused.stderr.starts_with("error: cwd does not exist: "), "{refused:?}");

    let compacted = server.rpc(&["compact", "scout", "--no-force"]);
    assert_eq!(compacted.code, 0, "{compacted:?}");
    let nothing = "nothing to cancel: it is not known, or has ended\n";
    assert_eq!(server.rpc(&["cancel", "scout"]), ran(1, "", nothing));
    assert_eq!(server.rpc(&["cancel", "scout", "r9"]), ran(1, "", nothing));
    let waiting = "nothing waits for a confirmation\n";
    assert_eq!(server.rpc(&["confirmations", "scout"]), ran(0, waiting, ""));

    let explained = finished(&mut server.command(&["perm", "explain", "scout", "exec"]));
    assert!(explained.stdout.starts_with("deny by "), "{explained:?}");
    // The last agent that is ready ends the server.
    assert_eq!(server.rpc(&["shutdown", "scout"]), ran(0, "", ""));
    assert_eq!(server.ended(), (Some(0), String::new()));
}

#[test]
fn an_address_is_as_good_as_a_port() {
    let server = Serving::start(&[]);
    let (_, url) = server.said[0].rsplit_once(' ').expect("it says where it listens");
    let home = server.home.path();
    let listed = run(home, &["rpc", "list", "--url", url]);
    assert_eq!(listed, ran(0, "no agents\n", ""));
    for wrong in ["https://localhost", "http://example.com"] {
        let refused = run(home, &["rpc", "list", "--url", wrong]);
        assert_eq!((refused.code, refused.stdout.as_str()), (2, ""));
    }
    let both = run(home, &["rpc", "list", "--url", url, "--port", "1"]);
    assert_eq!(both.code, 2);
}
