//! A key at the terminal while an answer floods it: how long until it is seen.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{Read as _, Write as _};
use std::num::NonZeroU16;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::json;

use crate::Bench;
use crate::measure::{Bound, Row, Spread, Unit};

const LINES: usize = 100_000;
const LINES_EACH: usize = 10;
const COLUMNS: u16 = 80;
const ROWS: u16 = 24;
const PATIENCE: Duration = Duration::from_mins(1);
/// For a p99 that means something.
const KEYS_MIN: usize = 200;
const ANSWERS_MAX: usize = 120;
/// Somebody who types fast.
const BETWEEN_KEYS: Duration = Duration::from_millis(20);
const PROMPT: &str = ".1 › ";

pub(crate) async fn key_echo(_: &Bench) -> anyhow::Result<Vec<Row>> {
    let waits = tokio::task::spawn_blocking(measured).await??;
    let mut seconds: Vec<f64> = waits.iter().map(Duration::as_secs_f64).collect();
    seconds.sort_by(f64::total_cmp);
    let p99 = seconds[(seconds.len() - 1) * 99 / 100];
    let found = Spread { median: p99, min: seconds[0], max: seconds[seconds.len() - 1] };
    let what =
        format!("key echo at the terminal while {LINES} lines stream, p99 of {}", waits.len());
    Ok(vec![Row::absolute(what, Unit::Seconds, found, Bound::OursAtMost(0.05, Unit::Seconds))])
}

fn measured() -> anyhow::Result<Vec<Duration>> {
    let private = Permissions::from_mode(0o700);
    let home =
        tempfile::Builder::new().permissions(private).tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let script = home.path().join("flood.toml");
    std::fs::write(&script, flood())?;
    let provider = json!({"type": "script", "script": script, "models": {"m": {"id": "m"}}});
    // A summary would be one more flood, which nobody sees.
    let config = json!({"providers": {"p": provider}, "compaction": {"enabled": false}});
    std::fs::write(home.path().join("config.json"), config.to_string())?;
    let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port().to_string();
    let mut command = Command::new(env!("CARGO_BIN_EXE_nexus3"));
    command.args(["--fresh", "--port", &port, "--home"]).arg(home.path()).env("TERM", "xterm");
    let mut person = Person::at(&mut command)?;
    person.sees(|screen| screen.contains("tokens"))?;
    let mut waits = Vec::new();
    for _ in 0..ANSWERS_MAX {
        person.types("\x15Go\r")?;
        person.sees(|screen| screen.contains("Esc cancels"))?;
        typed_meanwhile(&mut person, &mut waits)?;
        person.sees(|screen| screen.contains(&LINES.to_string()))?;
        if waits.len() >= KEYS_MIN {
            break;
        }
    }
    ensure!(waits.len() >= KEYS_MIN, "the answers were too short: {} keys", waits.len());
    Ok(waits)
}

/// Types while the answer comes, and takes the time until each key is seen.
fn typed_meanwhile(person: &mut Person, waits: &mut Vec<Duration>) -> anyhow::Result<()> {
    let mut typed = String::new();
    while person.sees(|_| true)?.contains("Esc cancels") {
        typed.push('x');
        let begun = Instant::now();
        person.types("x")?;
        let input = format!("{PROMPT}{typed}");
        person.sees(|screen| screen.lines().any(|line| line.trim_end() == input))?;
        waits.push(begun.elapsed());
        std::thread::sleep(BETWEEN_KEYS.saturating_sub(begun.elapsed()));
        // A line that is full would be broken over two.
        if typed.len() == 60 {
            person.types("\x15")?;
            typed.clear();
        }
    }
    Ok(())
}

/// A model that says very much at once.
fn flood() -> String {
    let piece = |first: usize| {
        let lines = (first..first + LINES_EACH).map(|line| format!("{line}\\n"));
        format!("\"{}\"", lines.collect::<String>())
    };
    let pieces: Vec<String> = (1..=LINES).step_by(LINES_EACH).map(piece).collect();
    format!("[[model]]\ntimes = \"always\"\nsays = [{}]\n", pieces.join(",\n"))
}

/// Somebody at a terminal.
struct Person {
    keys: File,
    screen: Arc<(Mutex<vt100::Parser>, Condvar)>,
    child: Child,
}

impl Person {
    fn at(command: &mut Command) -> anyhow::Result<Self> {
        let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
        grantpt(&controller)?;
        unlockpt(&controller)?;
        let size = Winsize { ws_row: ROWS, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&controller, size)?;
        let name = ptsname(&controller, Vec::new())?.into_string()?;
        let terminal = OpenOptions::new().read(true).write(true).open(name)?;
        let end = || terminal.try_clone().map(OwnedFd::from);
        let child = command.stdin(end()?).stdout(end()?).stderr(end()?).spawn()?;
        let cells = |number| NonZeroU16::new(number).context("a terminal has cells");
        let parser = vt100::Parser::new(cells(ROWS)?, cells(COLUMNS)?, 0);
        let screen = Arc::new((Mutex::new(parser), Condvar::new()));
        let keys = File::from(controller);
        let (mut read, theirs) = (keys.try_clone()?, Arc::clone(&screen));
        std::thread::spawn(move || {
            let mut bytes = vec![0; 64 * 1024];
            while let Ok(count @ 1..) = read.read(&mut bytes) {
                let mut parser = theirs.0.lock().unwrap_or_else(PoisonError::into_inner);
                parser.process(&bytes[..count]);
                theirs.1.notify_all();
            }
        });
        Ok(Self { keys, screen, child })
    }

    fn types(&mut self, keys: &str) -> anyhow::Result<()> {
        Ok(self.keys.write_all(keys.as_bytes())?)
    }

    fn sees(&self, what: impl Fn(&str) -> bool) -> anyhow::Result<String> {
        let deadline = Instant::now() + PATIENCE;
        let mut parser = self.screen.0.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let text = parser.screen().contents();
            if what(&text) {
                return Ok(text);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            ensure!(!left.is_zero(), "this is not what was waited for:\n{text}");
            let waited = self.screen.1.wait_timeout(parser, left);
            parser = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for Person {
    fn drop(&mut self) {
        // Whatever was measured, nothing stays behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
