//! A server that dies in the middle of an answer, and comes back.

use std::process::{Child, Stdio};

use rustix::process::Signal;

use super::person::{at_server, scripted};
use super::support::{Serving, program, signal};

/// The first answer never ends; the next one does.
const SCRIPT: &str = "[[model]]\nwhen = \"Count\"\nsays = [\"One, \", \"two.\"]\npause = \"1h\"\n\
    [[model]]\nsays = \"Here I am.\"\n";

struct Again(Child);

impl Drop for Again {
    fn drop(&mut self) {
        // A test that failed leaves no server behind.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_terminal_goes_on_with_a_server_that_was_killed() {
    let home = scripted(SCRIPT);
    let mut server = Serving::start_in(home, &[]);
    server.rpc(&["create", "scout", "--cwd", "/"]);
    let mut person = at_server(&server, &["--agent", "scout"], 80, 24);
    person.sees_text("sandboxed ·");
    person.types("Count\r");
    person.sees_text("One,");
    signal(&server.child, Signal::KILL);
    server.child.wait().unwrap();
    person.sees(|screen| screen.contains("lost the server") && screen.contains("no server"));
    // What is told then can be done at a terminal.
    person.types("/list\r");
    let told = person.sees_text("  this terminal goes on by itself once it is there again");
    assert!(told.contains("\n✗ no server answers at 127.0.0.1:"), "{told}");
    let mut again = program(server.home.path());
    again.args(["serve", "--port", &server.port]).stdout(Stdio::null()).stderr(Stdio::null());
    let _again = Again(again.spawn().unwrap());
    person.sees(|screen| screen.contains("■ interrupted") && !screen.contains("Esc"));
    person.types("Are you there?\r");
    let seen = person.sees(|screen| screen.contains("Here I am.") && !screen.contains("Esc"));
    for text in ["› Count", "One,", "the server is there again", "› Are you there?"] {
        assert_eq!(seen.matches(text).count(), 1, "{text}:\n{seen}");
    }
}
