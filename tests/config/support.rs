//! A person with a home of their own and a directory to work in, who runs the program.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::home::private_home;
pub use crate::ran::{Ran, ran};
use crate::ran::{finished, program};

/// A machine with a server's home, and a directory beside it.
pub struct Person {
    pub home: TempDir,
    place: TempDir,
    /// Where commands are run; inside the place.
    pub cwd: PathBuf,
    vars: Vec<(&'static str, String)>,
}

impl Person {
    pub fn new() -> Self {
        let place = private_home();
        let cwd = fs::canonicalize(place.path()).unwrap();
        Self { home: private_home(), place, cwd, vars: Vec::new() }
    }

    /// A path in the directory, without links.
    pub fn at(&self, path: &str) -> PathBuf {
        fs::canonicalize(self.place.path()).unwrap().join(path)
    }

    /// Writes a file in the directory, with those above it.
    pub fn write(&self, path: &str, text: &str) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub fn write_home(&self, name: &str, text: &str) {
        fs::write(self.home.path().join(name), text).unwrap();
    }

    pub fn go(&mut self, path: &str) {
        self.cwd = self.at(path);
    }

    pub fn set(&mut self, name: &'static str, value: &str) {
        self.vars.push((name, value.to_owned()));
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = program(self.home.path());
        command.envs(self.vars.iter().map(|(name, value)| (name, value)));
        command.current_dir(&self.cwd).args(arguments);
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Ran {
        finished(&mut self.command(arguments))
    }

    /// Starts a server in the directory, on a port of its own.
    pub fn serve(&self, flags: &[&str]) -> Serving {
        let mut command = self.command(&["serve", "--port", "0"]);
        command.args(flags);
        Serving::start(command)
    }

    /// Starts a server in the directory, on the port of its configuration.
    pub fn serve_as_configured(&self) -> Serving {
        Serving::start(self.command(&["serve"]))
    }
}

/// A server in a process of its own.
pub struct Serving {
    pub port: String,
    /// What it said before it listened, line by line.
    pub said: Vec<String>,
    child: Child,
    _rest: std::thread::JoinHandle<usize>,
}

impl Serving {
    fn start(mut command: Command) -> Self {
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let mut stderr = BufReader::new(child.stderr.take().expect("stderr is a pipe"));
        let mut said = Vec::new();
        let port = loop {
            let mut line = String::new();
            assert_ne!(stderr.read_line(&mut line).expect("it speaks UTF-8"), 0, "{said:?}");
            if let Some((_, address)) = line.trim_end().split_once(" listens on http://") {
                let (_, port) = address.rsplit_once(':').expect("an address has a port");
                break port.to_owned();
            }
            said.push(line.trim_end().to_owned());
        };
        // It goes on speaking, and must not wait for somebody who listens.
        let rest = std::thread::spawn(move || stderr.lines().count());
        Self { port, said, child, _rest: rest }
    }

    pub fn rpc(&self, person: &Person, arguments: &[&str]) -> Ran {
        person.run(&[&["rpc", "--port", &self.port], arguments].concat())
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // A test that failed leaves no server behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
