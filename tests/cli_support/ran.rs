//! What a command of the built program leaves behind.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_nexus3");

/// What a command left behind.
#[derive(Debug, PartialEq, Eq)]
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    pub fn of(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it speaks UTF-8");
        Self {
            code: output.status.code().expect("it ends by itself"),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).expect("stdout is JSON and nothing else")
    }
}

pub fn ran(code: i32, stdout: &str, stderr: &str) -> Ran {
    Ran { code, stdout: stdout.to_owned(), stderr: stderr.to_owned() }
}

/// The program with nothing of this environment, so that keys and homes of the machine stay out.
pub fn program(home: &Path) -> Command {
    let mut command = Command::new(PROGRAM);
    command.env_clear().env("NEXUS3_HOME", home).stdin(Stdio::null());
    command
}

/// Runs a command to its end.
pub fn finished(command: &mut Command) -> Ran {
    Ran::of(command.output().expect("the program runs"))
}
