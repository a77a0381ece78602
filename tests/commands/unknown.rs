//! What does not exist: one line, what was probably meant, and the right exit code.

use super::support::{Serving, finished, private_home, ran, run};

#[test]
fn a_word_that_is_no_command_is_told_with_what_was_meant() {
    let home = private_home();
    for (words, told) in [
        (&["rcp"][..], "error: unknown command `rcp`; did you mean `rpc`?\n"),
        (&["rpc", "lsit"], "error: unknown command `lsit`; did you mean `list`?\n"),
        (&["rpc", "crate"], "error: unknown command `crate`; did you mean `create`?\n"),
        (&["rpc", "zzzzzz"], "error: unknown command `zzzzzz`; see --help\n"),
        (&["rpc", "list", "--prot"], "error: unknown argument `--prot`; did you mean `--port`?\n"),
        (&["serve", "--zzz"], "error: unknown argument `--zzz`; see --help\n"),
        (&["man", "fly"], "error: unknown command `fly`; see --help\n"),
        (&["man", "rpc", "snd"], "error: unknown command `snd`; did you mean `send`?\n"),
    ] {
        assert_eq!(run(home.path(), words), ran(2, "", told), "{words:?}");
    }
}

#[test]
fn what_a_server_does_not_have_is_told_with_what_was_meant() {
    let server = Serving::start(&[]);
    server.rpc(&["create", "scout"]);
    let near = "error: Agent not found: scot; did you mean `scout`?\n";
    for words in [
        &["send", "scot", "hi"][..],
        &["status", "scot"],
        &["destroy", "scot"],
        &["messages", "scot"],
        &["call", "get_context", "--agent", "scot"],
    ] {
        let told = server.rpc(words);
        assert_eq!((told.code, told.stderr.as_str()), (1, near), "{words:?}");
    }
    let method = "error: Method not found: list_agent; did you mean `list_agents`?\n";
    assert_eq!(server.rpc(&["call", "list_agent"]), ran(1, "", method));
    let misplaced = server.rpc(&["call", "get_context"]);
    assert_eq!(misplaced.code, 1);
    assert!(misplaced.stderr.contains("\n  hint: this is a method of agents"), "{misplaced:?}");
    // One that is only on disk is there as well.
    server.rpc(&["create", "dreamer"]);
    server.rpc(&["save", "dreamer", "dreamers"]);
    let near = "error: Agent not found: draemers; did you mean `dreamers`?\n";
    assert_eq!(server.rpc(&["status", "draemers"]), ran(1, "", near));
    let explained = finished(&mut server.command(&["perm", "explain", "scot", "exec"]));
    let near = "error: Agent not found: scot; did you mean `scout`?\n";
    assert_eq!(explained, ran(1, "", near));
}
