//! The server as a process of its own.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::Instant;

use nexus3::client::{NexusClient, find_token};
use nexus3::world::World;
use rustix::process::{Pid, Signal};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resume {
    WhenAsked,
    AtStart,
}

pub struct Process {
    child: Child,
    client: NexusClient,
    /// From its start until it said where it listens.
    pub seconds: f64,
    /// Reads what it writes to stderr, so that it never waits for a reader.
    rest: Option<JoinHandle<String>>,
}

impl Process {
    pub fn start(home: &Path, resume: Resume) -> Self {
        let started = Instant::now();
        let mut command = Command::new(env!("CARGO_BIN_EXE_nexus3"));
        command.env_clear().env("NEXUS3_HOME", home).args(["serve", "--port", "0"]);
        if resume == Resume::AtStart {
            command.arg("--resume");
        }
        command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let mut stderr = BufReader::new(child.stderr.take().expect("stderr is a pipe"));
        let mut said = String::new();
        let port = loop {
            let from = said.len();
            let read = stderr.read_line(&mut said).expect("it speaks UTF-8");
            assert_ne!(read, 0, "the server did not start: {said}");
            let line = said[from..].trim_end();
            if let Some((_, port)) = line.rsplit_once("listens on http://127.0.0.1:") {
                break port.parse().expect("a port is a number");
            }
        };
        let seconds = started.elapsed().as_secs_f64();
        let rest = std::thread::spawn(move || {
            // What cannot be read is only missing from a failure's message.
            let _ = stderr.read_to_string(&mut said);
            said
        });
        let world = world();
        let token = find_token(&world, home, port, None).expect("its token can be read");
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let client = NexusClient::on(&world, address, token);
        Self { child, client, seconds, rest: Some(rest) }
    }

    pub fn client(&self) -> NexusClient {
        self.client.clone()
    }

    pub fn pid(&self) -> Pid {
        let pid = i32::try_from(self.child.id()).expect("a process number is small");
        Pid::from_raw(pid).expect("it is a process")
    }

    /// Waits for its end, which must be the kill and no panic before it.
    pub fn ended_by_kill(mut self) {
        let status = self.child.wait().expect("it ends");
        let rest = self.rest.take().expect("it is read until now");
        let said = rest.join().expect("reading does not panic");
        assert_eq!(status.signal(), Some(Signal::KILL.as_raw()), "{said}");
        assert!(!said.contains("panic") && !said.contains("ERROR"), "{said}");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It has ended already where a round went well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn world() -> World {
    nexus3::world::real::world().expect("the machine opens")
}
