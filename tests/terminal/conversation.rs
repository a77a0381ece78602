//! A conversation with the demo model, at a wide terminal and at a narrow one.

use super::person::at_server;
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
