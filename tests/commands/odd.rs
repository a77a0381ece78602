//! Terminals, pipes and arguments as they come: nothing panics.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::process::Command;

use super::once::silent;
use super::support::ran::PROGRAM;
use super::support::{Serving, finished, private_home, program};

/// Runs a line of shell in which `$P` is the program.
fn shell(server: &Serving, line: &str) -> (i32, String) {
    let mut command = Command::new("sh");
    command.args(["-c", line]).env_clear().env("P", PROGRAM).env("PORT", &server.port);
    command.env("NEXUS3_HOME", server.home.path()).env("PATH", "/usr/bin:/bin");
    let ran = finished(&mut command);
    assert!(!ran.stderr.contains("panicked"), "{line}: {ran:?}");
    (ran.code, ran.stdout)
}

#[test]
fn nobody_has_to_read_to_the_end() {
    let server = Serving::start(&[]);
    let port = "--port $PORT";
    for command in ["rpc call rpc.discover", "rpc list --json", "rpc list"] {
        server.rpc(&["create"]);
        assert_eq!(shell(&server, &format!("$P {command} {port} | head -n 1")).0, 0);
    }
    for command in ["--help", "man", "man rpc send", "completions bash", "completions zsh"] {
        assert_eq!(shell(&server, &format!("$P {command} | head -n 1")).0, 0);
        assert_eq!(shell(&server, &format!("$P {command} >&-")).0, 0, "{command}");
    }
    assert_eq!(shell(&server, &format!("$P rpc list {port} >&-")).0, 0);
    assert_eq!(shell(&server, &format!("$P rpc list {port} >&- 2>&-")).0, 0);
    assert_eq!(shell(&server, &format!("$P rpc status nobody {port} 2>&-")).0, 1);
    assert_eq!(shell(&server, "$P rpc fly 2>&-").0, 2);
}

#[test]
fn results_that_cannot_be_written_are_no_success() {
    let server = Serving::start(&[]);
    server.rpc(&["create", "scout"]);
    for command in ["rpc list", "rpc list --json", "trace scout", "sessions export scout"] {
        let (code, _) = shell(&server, &format!("$P {command} --port $PORT > /dev/full"));
        assert_eq!(code, 1, "{command}");
    }
}

#[test]
fn bytes_that_are_no_text_are_refused_as_arguments() {
    let home = private_home();
    let bytes = OsStr::from_bytes(b"sc\xffut");
    for words in [&["rpc", "send"][..], &["rpc"], &["run"], &["rpc", "call"], &["man"], &[]] {
        let refused = finished(program(home.path()).args(words).arg(bytes).arg(bytes));
        assert_eq!((refused.code, refused.stdout.as_str()), (2, ""), "{words:?}");
    }
    // A path may be anything.
    let (_silent, port) = silent();
    let list = ["rpc", "list", "--no-start", "--port", &port, "--home"];
    let listed = finished(program(home.path()).args(list).arg(bytes));
    assert_eq!(listed.code, 3, "{listed:?}");
}

#[test]
fn shells_and_manuals_know_the_commands() {
    let home = private_home();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = finished(program(home.path()).args(["completions", shell]));
        assert_eq!((script.code, script.stderr.as_str()), (0, ""));
        assert!(script.stdout.contains("confirmations"), "{shell}");
    }
    let page = finished(program(home.path()).args(["man", "rpc", "send"]));
    assert!(page.stdout.contains(".TH nexus3-rpc-send 1"), "{}", page.stdout);
    assert!(page.stdout.contains("request\\-id"), "{}", page.stdout);
}
