//! The built program, run as a shell runs it, and servers of it in processes of their own.

#[path = "../private_home/home.rs"]
mod home;
pub mod ran;

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};

pub use home::private_home;
pub use ran::{Ran, finished, program, ran};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

pub fn run(home: &Path, arguments: &[&str]) -> Ran {
    finished(program(home).args(arguments))
}

pub fn signal(child: &Child, signal: Signal) {
    let pid = i32::try_from(child.id()).expect("a process number is small");
    let pid = Pid::from_raw(pid).expect("it is a process");
    kill_process(pid, signal).expect("the child can be signalled");
}

/// A server in a process of its own, on a port of its own.
pub struct Serving {
    pub home: TempDir,
    pub port: String,
    /// What it said until it listened, line by line.
    pub said: Vec<String>,
    stderr: BufReader<ChildStderr>,
    pub child: Child,
}

impl Serving {
    pub fn start(flags: &[&str]) -> Self {
        Self::start_in(private_home(), flags)
    }

    /// With what is in this home; a configuration there says which model it has.
    pub fn start_in(home: TempDir, flags: &[&str]) -> Self {
        let mut command = program(home.path());
        command.args(["serve", "--port", "0"]).args(flags);
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let mut stderr = BufReader::new(child.stderr.take().expect("stderr is a pipe"));
        let mut said: Vec<String> = Vec::new();
        // The address, the token or a warning, and, without a configuration, the notice about the model.
        let lines = if home.path().join("config.json").exists() { 2 } else { 3 };
        while said.len() < lines {
            let mut line = String::new();
            assert_ne!(stderr.read_line(&mut line).expect("it speaks UTF-8"), 0, "{said:?}");
            said.push(line.trim_end().to_owned());
        }
        let (_, port) = said[0].rsplit_once(':').expect("it names its address");
        Self { port: port.to_owned(), home, said, stderr, child }
    }

    pub fn rpc(&self, arguments: &[&str]) -> Ran {
        finished(&mut self.command(&[&["rpc"], arguments].concat()))
    }

    /// Any command that talks to a server.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = program(self.home.path());
        command.args(arguments).args(["--port", &self.port]);
        command
    }

    /// Waits for its end: its exit code, and whatever it wrote to stdout.
    pub fn ended(mut self) -> (Option<i32>, String) {
        let mut rest = String::new();
        self.stderr.read_to_string(&mut rest).expect("it speaks UTF-8");
        let mut stdout = String::new();
        let mut pipe = self.child.stdout.take().expect("stdout is a pipe");
        pipe.read_to_string(&mut stdout).expect("it speaks UTF-8");
        (self.child.wait().expect("it ends").code(), stdout)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // A test that failed leaves no server behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
