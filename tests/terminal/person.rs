//! Somebody at a terminal: types, and looks at the screen until it shows what is waited for.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::num::NonZeroU16;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use regex::Regex;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::json;
use tempfile::TempDir;

use super::support;

/// How long anybody waits for anything.
const PATIENCE: Duration = Duration::from_secs(30);
const LINES_KEPT: usize = 1000;
const FRAME_BEGINS: &[u8] = b"\x1b[?2026h";
const FRAME_ENDS: &[u8] = b"\x1b[?2026l";

pub struct Person {
    keys: File,
    screen: Arc<Screen>,
    reading: Option<JoinHandle<()>>,
    child: Child,
}

struct Screen {
    shown: Mutex<Shown>,
    changed: Condvar,
}

struct Shown {
    parser: vt100::Parser,
    /// The end of what was written, long enough for the marks around a frame.
    tail: Vec<u8>,
    /// No frame is half written.
    whole: bool,
    /// The program has let go of it.
    over: bool,
}

impl Person {
    pub fn at(command: &mut Command, columns: u16, rows: u16) -> Self {
        let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&controller).unwrap();
        unlockpt(&controller).unwrap();
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&controller, size).unwrap();
        let name = ptsname(&controller, Vec::new()).unwrap().into_string().unwrap();
        let terminal = OpenOptions::new().read(true).write(true).open(name).unwrap();
        let end = || OwnedFd::from(terminal.try_clone().unwrap());
        command.stdin(end()).stdout(end()).stderr(end()).env("TERM", "xterm");
        let child = command.spawn().unwrap();
        command.stdin(std::process::Stdio::null());
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        let cells = |number| NonZeroU16::new(number).unwrap();
        let parser = vt100::Parser::new(cells(rows), cells(columns), LINES_KEPT);
        let shown = Mutex::new(Shown { parser, tail: Vec::new(), whole: true, over: false });
        let screen = Arc::new(Screen { shown, changed: Condvar::new() });
        let keys = File::from(controller);
        let mut read = keys.try_clone().unwrap();
        let theirs = Arc::clone(&screen);
        let reading = std::thread::spawn(move || {
            let mut bytes = [0; 16 * 1024];
            // A terminal that nobody has open any more is an error to read.
            while let Ok(count @ 1..) = read.read(&mut bytes) {
                theirs.shown.lock().unwrap().take(&bytes[..count]);
                theirs.changed.notify_all();
            }
            theirs.shown.lock().unwrap().over = true;
            theirs.changed.notify_all();
        });
        Self { keys, screen, reading: Some(reading), child }
    }

    /// Types text and keys as bytes: `\r` is Enter, `\x1b` Esc.
    pub fn types(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Pulls at the window. Nobody tells the program.
    pub fn resizes(&mut self, columns: u16, rows: u16) {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        let cells = |number| NonZeroU16::new(number).unwrap();
        let mut shown = self.screen.shown.lock().unwrap();
        shown.parser.screen_mut().set_size(cells(rows), cells(columns));
        tcsetwinsize(&self.keys, size).unwrap();
    }

    /// Looks until the screen is as wanted, and gives it with what differs from run to run left out.
    pub fn sees(&self, what: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + PATIENCE;
        let mut shown = self.screen.shown.lock().unwrap();
        loop {
            let text = shown.parser.screen().contents();
            if shown.whole && what(&text) {
                return steady(&text);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || shown.over {
                drop(shown);
                panic!("this is not what was waited for:\n{text}");
            }
            shown = self.screen.changed.wait_timeout(shown, left).unwrap().0;
        }
    }

    pub fn sees_text(&self, text: &str) -> String {
        self.sees(|screen| screen.contains(text))
    }

    /// Waits for the end of the program: how it ended, and the last screen.
    pub fn leaves(mut self) -> (ExitStatus, String) {
        let status = self.child.wait().unwrap();
        self.reading.take().unwrap().join().unwrap();
        let shown = self.screen.shown.lock().unwrap();
        assert!(!shown.parser.screen().bracketed_paste(), "the terminal is as it was");
        assert!(!shown.parser.screen().hide_cursor(), "the terminal is as it was");
        let text = steady(&shown.parser.screen().contents());
        drop(shown);
        (status, text)
    }

    /// Whether anything on the screen has a colour or stands out.
    pub fn sees_colours(&self) -> bool {
        let shown = self.screen.shown.lock().unwrap();
        let screen = shown.parser.screen();
        let (rows, columns) = screen.size();
        let cells =
            (0..rows.get()).flat_map(|row| (0..columns.get()).map(move |column| (row, column)));
        let mut cells = cells.filter_map(|(row, column)| screen.cell(row, column));
        cells.any(|cell| {
            let coloured = [cell.fgcolor(), cell.bgcolor()] != [vt100::Color::Default; 2];
            coloured || cell.bold() || cell.dim() || cell.italic() || cell.inverse()
        })
    }

    pub fn child(&self) -> &Child {
        &self.child
    }
}

impl Shown {
    fn take(&mut self, bytes: &[u8]) {
        self.parser.process(bytes);
        self.tail.extend_from_slice(bytes);
        let last = |mark: &[u8]| self.tail.windows(mark.len()).rposition(|at| at == mark);
        let (begun, ended) = (last(FRAME_BEGINS), last(FRAME_ENDS));
        if begun.is_some() || ended.is_some() {
            self.whole = ended > begun;
        }
        let kept = self.tail.len().saturating_sub(FRAME_BEGINS.len() - 1);
        self.tail.drain(..kept);
    }
}

impl Drop for Person {
    fn drop(&mut self) {
        // A test that failed leaves no terminal behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A terminal on a server in a process of its own, with an agent in `/`.
pub fn at_server(server: &support::Serving, arguments: &[&str], columns: u16, rows: u16) -> Person {
    assert!(server.said[0].ends_with(&server.port), "it listens: {:?}", server.said);
    let mut command = server.command(&[&["connect"], arguments].concat());
    Person::at(command.current_dir("/"), columns, rows)
}

/// A port that nobody has just now.
fn free_port() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port().to_string()
}

/// A terminal with a server of its own.
pub fn alone(home: &Path, arguments: &[&str], (columns, rows): (u16, u16)) -> Person {
    let mut command = support::program(home);
    command.args(arguments).args(["--port", &free_port()]).current_dir("/");
    Person::at(&mut command, columns, rows)
}

/// A home whose model answers as this says.
pub fn scripted(script: &str) -> TempDir {
    let home = support::private_home();
    let file = home.path().join("script.toml");
    std::fs::write(&file, script).unwrap();
    let provider = json!({"type": "script", "script": file, "models": {"m": {"id": "m"}}});
    let config = json!({"providers": {"p": provider}});
    std::fs::write(home.path().join("config.json"), config.to_string()).unwrap();
    home
}

/// Times and numbers of tokens differ from run to run.
fn steady(text: &str) -> String {
    let mut text = text.to_owned();
    for (varies, instead) in [
        (r"\d+(\.\d)? s\b", "N s"),
        (r"[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]", "*"),
        (r"\d+k? of \d+k? tokens", "N of M tokens"),
        (r"\d+k?/\d+k\b", "N/M"),
        (r"· \d+k? ·", "· N ·"),
    ] {
        text = Regex::new(varies).unwrap().replace_all(&text, instead).into_owned();
    }
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n")
}
