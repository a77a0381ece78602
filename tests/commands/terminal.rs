//! A person at a terminal, also at a narrow one.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::process::Command;
use std::time::Duration;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use super::model::{beside, saying};
use super::support::{Serving, program};

/// What a command writes to a terminal of so many columns.
fn seen(command: &mut Command, columns: u16) -> String {
    let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&controller).unwrap();
    unlockpt(&controller).unwrap();
    let size = Winsize { ws_row: 12, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&controller, size).unwrap();
    let name = ptsname(&controller, Vec::new()).unwrap().into_string().unwrap();
    let terminal = OpenOptions::new().read(true).write(true).open(name).unwrap();
    let end = || OwnedFd::from(terminal.try_clone().unwrap());
    let mut child = command.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
    // Only the child has it open now, so what it wrote ends with it.
    command.stdin(std::process::Stdio::null());
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    drop(terminal);
    let mut written = Vec::new();
    // A terminal that nobody has open any more is an error to read.
    let _ = File::from(controller).read_to_end(&mut written);
    child.wait().unwrap();
    String::from_utf8(written).unwrap().replace("\r\n", "\n")
}

fn widest(text: &str) -> usize {
    text.lines().map(|line| line.chars().count()).max().unwrap_or(0)
}

#[test]
fn every_view_fits_forty_columns() {
    let server = Serving::start(&[]);
    server.rpc(&["create", "lead", "--preset", "trusted"]);
    let child = ["create", "a-rather-long-name", "--parent-agent-id", "lead"];
    server.rpc(&child);
    server.rpc(&["send", "lead", r#"call echo {"message": "quite a long message for echo"}"#]);
    server.rpc(&["save", "lead"]);
    for words in [
        &["rpc", "list"][..],
        &["rpc", "status", "lead"],
        &["rpc", "permissions", "lead"],
        &["rpc", "sessions"],
        &["rpc", "discover", "--ports", &server.port],
        &["sessions", "list"],
    ] {
        let shown = seen(&mut server.command(words), 40);
        assert!(widest(&shown) <= 40, "{words:?}: {shown}");
        let wide = seen(&mut server.command(words), 200);
        assert!(wide.lines().count() <= shown.lines().count(), "{words:?}: {wide}");
    }
    for words in [&["doctor"][..], &["config", "show"]] {
        let shown = seen(program(server.home.path()).args(words), 40);
        assert!(widest(&shown) <= 40, "{words:?}: {shown}");
    }
}

#[test]
fn colours_are_for_terminals_and_for_those_who_want_them() {
    let server = Serving::start(&[]);
    server.rpc(&["create", "scout"]);
    let trace = || server.command(&["trace", "scout"]);
    assert_eq!(seen(&mut trace(), 80), "\x1b[1mscout\x1b[0m: \x1b[2mcreated\x1b[0m\n");
    assert_eq!(seen(trace().env("NO_COLOR", "1"), 80), "scout: created\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_wait_is_told_and_then_forgotten() {
    let (_model, home) = saying("Done.", Duration::from_millis(3500)).await;
    beside(|| {
        let server = Serving::start_in(home, &[]);
        server.rpc(&["create", "scout"]);
        let shown = seen(&mut server.command(&["rpc", "send", "scout", "hi"]), 15);
        // Each takes the place of the one before, and none is broken over lines.
        let told: Vec<&str> = shown.split("\r\x1b[K").collect();
        assert_eq!(told, ["", "waiting for sc", "waiting for sc", "Done.\n"]);
    })
    .await;
}
