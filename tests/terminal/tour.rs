//! From an empty home to a conversation that is resumed, on a server of the terminal's own.

use super::person::alone;
use super::support::private_home;

fn tour(size: (u16, u16)) -> Vec<(&'static str, String)> {
    let home = private_home();
    let mut person = alone(home.path(), &[], size);
    let mut seen = vec![("1 start", person.sees_text("demo ·"))];
    person.types("Hello\r");
    person.sees(|screen| screen.contains("that tool.") && !screen.contains("Esc"));
    person.types("call echo {\"message\":\"hi\"}\r");
    let answered = |screen: &str| screen.contains("answered: \"hi\"") && !screen.contains("Esc");
    seen.push(("2 talked", person.sees(answered)));
    person.types("/create lead --preset trusted\r");
    person.sees_text("\nlead\n");
    person.types("/whisper lead\r");
    person.sees_text(".1 ⇢ lead ›");
    person.types("call exec {\"program\":\"/bin/true\"}\r");
    seen.push(("3 asked", person.sees_text("3 deny it")));
    person.types("1");
    let ran = |screen: &str| screen.contains("exit code: 0") && !screen.contains("Esc");
    seen.push(("4 allowed", person.sees(ran)));
    person.types("/over\r");
    person.sees_text("\n.1 ›");
    person.types("/save notes\r");
    // The answer and the event come in either order.
    person.sees(|screen| screen.contains("\nnotes\n") && screen.contains("\nnotes ›"));
    person.sees_text(".1 is notes from now on");
    person.types("\x04");
    let (status, last) = person.leaves();
    assert!(status.success(), "{last}");
    let mut person = alone(home.path(), &["--resume"], size);
    seen.push(("5 resumed", person.sees_text("notes · demo")));
    person.types("/quit\r");
    assert!(person.leaves().0.success());
    let mut person = alone(home.path(), &[], size);
    seen.push(("6 lobby", person.sees_text("Esc leaves")));
    person.types("\x1b");
    assert!(person.leaves().0.success());
    seen
}

fn kept(name: &str, seen: Vec<(&'static str, String)>) {
    let screens = seen.into_iter().map(|(stage, screen)| format!("──────── {stage}\n{screen}\n"));
    insta::assert_snapshot!(name, screens.collect::<String>());
}

#[test]
fn everything_is_done_at_a_wide_terminal() {
    kept("tour_80x24", tour((80, 24)));
}

#[test]
fn everything_is_done_at_a_narrow_terminal() {
    kept("tour_40x12", tour((40, 12)));
}
