//! A server that nobody started by hand.

use std::path::Path;

use super::once::silent;
use super::support::{Ran, Serving, private_home, ran, run};

/// Stops the server that a test has caused, whatever became of the test.
struct Stopping<'a> {
    home: &'a Path,
    port: &'a str,
}

impl Stopping<'_> {
    fn rpc(&self, arguments: &[&str]) -> Ran {
        run(self.home, &[&["rpc"], arguments, &["--port", self.port]].concat())
    }
}

impl Drop for Stopping<'_> {
    fn drop(&mut self) {
        self.rpc(&["shutdown"]);
    }
}

#[test]
fn a_server_is_started_where_none_runs() {
    let home = private_home();
    let (silent, port) = silent();
    drop(silent);
    let server = Stopping { home: home.path(), port: &port };
    assert_eq!(server.rpc(&["list", "--no-start"]).code, 3);
    assert_eq!(server.rpc(&["status", "scout"]).code, 3, "others start none");
    let told = format!("started a server on port {port}; it stops after 30 minutes without use\n");
    assert_eq!(server.rpc(&["create", "scout"]), ran(0, "scout\n", &told));
    assert_eq!(server.rpc(&["list", "--json"]).json()["agents"][0]["agent_id"], "scout");
    let log = std::fs::read_to_string(home.path().join("logs/server.log")).unwrap();
    assert!(log.contains("listening"), "{log}");
    assert_eq!(server.rpc(&["shutdown"]).code, 0);
    let token = home.path().join(format!("rpc-{port}.token"));
    while token.exists() {}
}

#[test]
fn a_server_that_does_not_come_up_says_why() {
    let first = Serving::start(&[]);
    let (silent, port) = silent();
    drop(silent);
    let refused = run(first.home.path(), &["rpc", "list", "--port", &port]);
    assert_eq!((refused.code, refused.stdout.as_str()), (1, ""));
    let lines: Vec<&str> = refused.stderr.lines().collect();
    assert_eq!(lines[0], "error: the server that was started for this did not come up");
    let taken = format!("error: another server uses the home {}: ", first.home.path().display());
    assert!(lines.last().unwrap().trim_start().starts_with(&taken), "{refused:?}");
}
