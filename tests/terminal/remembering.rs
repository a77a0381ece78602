//! What was typed is there at the next terminal, and nobody else reads it.

use std::os::unix::fs::PermissionsExt;

use super::person::at_server;
use super::support::Serving;

#[test]
fn what_was_typed_at_two_terminals_is_there_at_the_third() {
    let server = Serving::start(&[]);
    server.rpc(&["create", "lead", "--preset", "trusted", "--cwd", "/"]);
    let opened = || {
        let person = at_server(&server, &["--agent", "lead"], 80, 24);
        person.sees_text("trusted ·");
        person
    };
    let (mut one, mut other) = (opened(), opened());
    one.types("call exec {\"program\":\"true\"}\r");
    one.sees_text("3 deny it");
    // An answer is no text.
    one.types("3");
    one.sees(|screen| {
        screen.contains("? exec true: denied by terminal") && !screen.contains("3 deny it")
    });
    other.types("/status\r");
    other.sees_text("messages");
    one.types(" nothing to keep\r");
    one.sees_text("\n›  nothing to keep");
    for (person, last) in [(one, "/quit\r"), (other, "\x04")] {
        let mut person = person;
        person.types(last);
        assert!(person.leaves().0.success());
    }
    let file = server.home.path().join("history");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let kept = std::fs::read_to_string(&file).unwrap();
    assert_eq!(
        kept.lines().collect::<Vec<_>>(),
        ["\"call exec {\\\"program\\\":\\\"true\\\"}\"", "\"/status\"", "\"/quit\""]
    );
    let mut third = opened();
    third.types("\x1b[A\x1b[A\x1b[A");
    third.sees_text("lead › call exec");
    third.types("\x1b[B");
    third.sees_text("lead › /status");
}
