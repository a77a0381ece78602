//! A conversation with the demo model, at a wide terminal and at a narrow one.

use super::person::{Person, at_server, scripted};
use super::support::Serving;

const CALL: &str = r#"call echo {"message":"hi"}"#;

fn talks(columns: u16, rows: u16) -> String {
    let server = Serving::start(&[]);
    server.rpc(&["create", "scout", "--cwd", "/"]);
    let mut person = at_server(&server, &["--agent", "scout"], columns, rows);
    person.sees_text("scout · demo");
    person.types("Hello\r");
    person.sees(|screen| screen.contains("› Hello") && !screen.contains("working"));
    person.types(CALL);
    person.types("\r");
    person.sees_text("✓ echo");
    let seen = person.sees(|screen| screen.contains("answered") && !screen.contains("Esc"));
    person.types("\x04");
    let (status, _) = person.leaves();
    assert!(status.success());
    seen
}

#[test]
fn an_answer_and_a_call_are_seen_at_a_wide_terminal() {
    insta::assert_snapshot!(talks(80, 24));
}

#[test]
fn an_answer_and_a_call_are_seen_at_a_narrow_terminal() {
    insta::assert_snapshot!(talks(40, 12));
}

#[test]
fn whoever_wants_no_colours_sees_none() {
    let server = Serving::start(&[]);
    server.rpc(&["create", "scout", "--cwd", "/"]);
    for (wanted, seen) in [("", true), ("1", false)] {
        let mut command = server.command(&["connect", "--agent", "scout"]);
        let person = Person::at(command.env("NO_COLOR", wanted), 80, 24);
        person.sees_text("sandboxed ·");
        assert_eq!(person.sees_colours(), seen, "NO_COLOR={wanted}");
    }
}

/// What a model says, and what it reads, would clear the screen, colour it and name the window.
const EVIL: &str = "[[model]]\nwhen = \"Go\"\nsays = \"\\u001b[2Jsaid \\u009b31m\\u001b]0;x\\u0007 \"\n\
    asks = [{ tool = \"read_file\", args = { path = \"evil.txt\" } }]\n\
    [[model]]\nsays = \"Done.\"\n";

#[test]
fn nothing_that_is_said_or_read_controls_the_terminal() {
    let server = Serving::start_in(scripted(EVIL), &[]);
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("evil.txt"), "\x1b[2J\x1b[31mread\x07 \x1b[0m").unwrap();
    server.rpc(&["create", "scout", "--cwd", place.path().to_str().unwrap()]);
    let mut person = at_server(&server, &["--agent", "scout", "--feed", "full"], 80, 24);
    person.sees_text("sandboxed ·");
    person.types("Go\r");
    let seen = person.sees(|screen| screen.contains("Done.") && !screen.contains("Esc"));
    // The terminal of these tests leaves out what stands in place of a character that is not shown.
    for text in ["\n› Go\n", "\n[2Jsaid 31m]0;x\n", " [2J[31mread [0m\n"] {
        assert!(seen.contains(text), "{text}:\n{seen}");
    }
}
