//! How a terminal ends, and where there is none.

use rustix::process::Signal;

use super::person::at_server;
use super::support::{Serving, private_home, ran, run, signal};

#[test]
fn whoever_has_no_terminal_is_told_what_to_use() {
    let home = private_home();
    let told = "error: this is for a terminal, and there is none\n  \
        hint: from a script use `nexus3 run PROMPT` or `nexus3 rpc send ID TEXT`\n";
    for arguments in [&[][..], &["--fresh"], &["connect"], &["--connect"]] {
        assert_eq!(run(home.path(), arguments), ran(1, "", told), "{arguments:?}");
    }
}

#[test]
fn a_signal_ends_it_and_the_terminal_is_as_it_was() {
    let server = Serving::start(&[]);
    server.rpc(&["create", "scout", "--cwd", "/"]);
    let person = at_server(&server, &["--agent", "scout"], 80, 24);
    person.sees_text("sandboxed ·");
    signal(person.child(), Signal::TERM);
    assert_eq!(person.leaves().0.code(), Some(130));
}

#[test]
fn the_second_interrupt_leaves_and_the_first_clears() {
    let server = Serving::start(&[]);
    server.rpc(&["create", "scout", "--cwd", "/"]);
    let mut person = at_server(&server, &["--agent", "scout"], 80, 24);
    person.sees_text("sandboxed ·");
    person.types("half a thought");
    person.sees_text("› half a thought");
    person.types("\x03");
    let cleared = person.sees_text("Ctrl-C again leaves");
    assert!(!cleared.contains("half a thought"), "{cleared}");
    person.types("\x03");
    assert!(person.leaves().0.success());
}

#[test]
fn a_paste_of_many_lines_is_one_message() {
    let server = Serving::start(&[]);
    server.rpc(&["create", "scout", "--cwd", "/"]);
    let mut person = at_server(&server, &["--agent", "scout"], 80, 24);
    person.sees_text("sandboxed ·");
    // Lines end as terminals paste them, as files have them, and as other files have them.
    person.types("\x1b[200~one\rtwo \x1b[31mred\nthree\r\nfour\x1b[201~");
    person.sees(|screen| screen.contains("scout › one\n") && screen.contains("[31mred"));
    person.types("\r");
    person.sees(|screen| screen.contains("\n› one\n  two"));
    let messages = server.rpc(&["messages", "scout", "--json"]).json();
    assert_eq!(messages["messages"][0]["content"], "one\ntwo \u{fffd}[31mred\nthree\nfour");
}
