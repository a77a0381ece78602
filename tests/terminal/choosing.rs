//! Which server, which agent: asked where there are several.

use std::path::Path;

use super::person::Person;
use super::support::{Serving, private_home, program};

/// A terminal that nobody told which server: two can be asked, the one whose token is in the home and the
/// one on the usual port, which lets everybody in.
fn undecided(arguments: &[&str], home: &Path, usual: &Serving) -> Person {
    let mut command = program(home);
    command.args(arguments).env("NEXUS3_SERVER__PORT", &usual.port).current_dir("/");
    Person::at(&mut command, 60, 16)
}

fn two_servers() -> (Serving, Serving) {
    let (ours, open) = (Serving::start(&[]), Serving::start(&["--no-auth"]));
    assert_eq!(ours.rpc(&["create", "scout", "--cwd", "/"]).code, 0);
    for agent in ["lead", "reader"] {
        assert_eq!(open.rpc(&["create", agent, "--cwd", "/"]).code, 0);
    }
    (ours, open)
}

#[test]
fn of_several_servers_one_is_chosen() {
    let (ours, open) = two_servers();
    for arguments in [&[][..], &["connect"]] {
        for (server, told, agent) in [(&ours, "1 agent", "scout"), (&open, "2 agents", "lead")] {
            let mut person = undecided(arguments, ours.home.path(), &open);
            let line = format!("port {} ({told})", server.port);
            let asked = person.sees_text("Enter or a number chooses");
            let row = asked.lines().find(|row| row.contains(&line));
            let row = row.unwrap_or_else(|| panic!("{line} is not offered:\n{asked}"));
            let number = row.trim_start_matches(['❯', ' ']).chars().next().unwrap();
            assert!(asked.contains("Which server?"), "{asked}");
            person.types(&number.to_string());
            // The first agent of those that are there.
            person.sees(|screen| screen.contains("Whom do you want") && screen.contains(agent));
            person.types("1");
            person.sees_text(&format!("{agent} ›"));
            person.types("\x04");
            assert!(person.leaves().0.success());
        }
    }
}

#[test]
fn whoever_chooses_no_server_or_no_agent_leaves() {
    let (ours, open) = two_servers();
    let mut person = undecided(&[], ours.home.path(), &open);
    person.sees_text("Which server?");
    person.types("\x1b");
    let (status, screen) = person.leaves();
    assert!(status.success() && screen.is_empty(), "{screen}");
    let mut person = undecided(&[], ours.home.path(), &open);
    person.sees_text("Which server?");
    // The arrows go round.
    person.types("\x1b[A\x1b[A\r");
    person.sees_text("Whom do you want to talk to?");
    person.types("\x03");
    assert!(person.leaves().0.success());
}

#[test]
fn a_named_server_is_not_asked_for() {
    let (ours, open) = two_servers();
    let mut command = program(ours.home.path());
    let port = ["--port", &ours.port, "--agent", "scout"];
    command.args(port).env("NEXUS3_SERVER__PORT", &open.port).current_dir("/");
    let mut person = Person::at(&mut command, 60, 16);
    person.sees_text("scout ›");
    person.types("\x04");
    assert!(person.leaves().0.success());
}

#[test]
fn without_a_server_connect_says_so() {
    let home = private_home();
    let mut command = program(home.path());
    command.args(["connect"]).env("NEXUS3_SERVER__PORT", "1");
    let (status, screen) = Person::at(&mut command, 80, 24).leaves();
    assert_eq!(status.code(), Some(3), "{screen}");
    assert!(screen.contains("no server answers at 127.0.0.1:1"), "{screen}");
}
