//! How a terminal ends, and where there is none.

use std::ffi::OsString;
use std::path::Path;

use rustix::process::Signal;

use super::person::{Person, alone, at_server, scripted};
use super::support::{Serving, private_home, ran, run, signal};

/// An answer that never ends.
const ENDLESS: &str = "[[model]]\nsays = [\"One, \", \"two.\"]\npause = \"1h\"\n";

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

/// A terminal with a server of its own, in the middle of an answer that never ends.
fn in_an_answer(home: &Path) -> Person {
    let mut person = alone(home, &["--fresh"], (80, 24));
    person.sees_text("sandboxed ·");
    person.types("Count\r");
    person.sees_text("One,");
    person
}

#[test]
fn a_terminal_that_goes_away_leaves_nothing_of_its_server() {
    let home = private_home();
    let person = alone(home.path(), &["--fresh"], (80, 24));
    person.sees_text("sandboxed ·");
    let files = || std::fs::read_dir(home.path()).unwrap().map(|file| file.unwrap().file_name());
    let is_token = |name: &OsString| Path::new(name).extension() == Some("token".as_ref());
    assert_eq!(files().filter(is_token).count(), 1);
    signal(person.child(), Signal::HUP);
    assert_eq!(person.leaves().0.code(), Some(130));
    assert_eq!(files().filter(is_token).count(), 0, "it was stopped, not killed");
}

#[test]
fn whoever_leaves_in_the_middle_of_an_answer_is_told_what_is_waited_for() {
    let home = scripted(ENDLESS);
    let mut person = in_an_answer(home.path());
    person.types("\x04");
    let left = person.sees_text("the server ends what still runs; Ctrl-C leaves at once");
    assert!(left.contains("› Count\nOne,\n"), "what was said stays:\n{left}");
    signal(person.child(), Signal::INT);
    assert!(person.leaves().0.success());
}

#[test]
fn a_window_of_another_size_is_drawn_again() {
    let server = Serving::start(&[]);
    server.rpc(&["create", "scout", "--cwd", "/"]);
    let mut person = at_server(&server, &["--agent", "scout"], 80, 24);
    person.sees_text("sandboxed ·");
    person.types("a text that is wider than half of a window and");
    person.sees_text("window and");
    person.resizes(40, 12);
    person.types(" more");
    let is_narrow =
        |screen: &str| screen.contains(" · sandboxed · /") && !screen.contains("tokens");
    let narrow = person.sees(|screen| is_narrow(screen) && screen.contains("more\n"));
    assert!(narrow.contains("scout › a text that is wider than half\n"), "{narrow}");
    assert_eq!(narrow.matches("scout ›").count(), 1, "{narrow}");
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
