//! Where a scenario's steps are played: what the director asks of the place and has done there. The hosts
//! of a simulation are one such place, a real server with real clients is the other.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;

use super::client::Desk;
use super::files;
use super::observed::{Answer, Observation};
use super::theatre::Theatre;
use crate::scenario::{EventTrigger, Files, SERVER, ServeFlag};

pub trait Stage {
    /// Time since the start.
    fn elapsed(&self) -> Duration;

    fn note(&self, who: &str, what: &str);

    /// Where the client of this name gets its jobs.
    fn desk(&self, client: &str) -> &Desk;

    /// Those of all clients, by their names.
    fn desks(&self) -> Vec<Arc<Desk>>;

    /// Where clients reach the server.
    fn server_address(&self) -> SocketAddr;

    fn token(&self) -> Option<SecretString>;

    /// How often the server was started.
    fn server_starts(&self) -> u64;

    /// Where MCP servers are reached over HTTP; a place where nobody is, if there are none.
    fn mcp_root(&self) -> &str;

    fn server_is_up(&self) -> bool;

    /// Whether the server would not start.
    fn server_gave_up(&self) -> bool;

    fn has_heard(&self, trigger: &EventTrigger) -> bool;

    /// A step that has a name has ended.
    fn step_ended(&self, name: &str);

    fn ask_server_to_stop(&mut self);

    /// `None`: with the flags that it had.
    fn start_server(&mut self, flags: Option<&[ServeFlag]>);

    fn put_files(&mut self, files: &Files) -> io::Result<()>;

    /// A client's call was answered.
    fn heard_answer(&self, answer: Answer);
}

impl Stage for Theatre {
    fn elapsed(&self) -> Duration {
        self.elapsed()
    }

    fn note(&self, who: &str, what: &str) {
        self.note(who, what);
    }

    fn desk(&self, client: &str) -> &Desk {
        &self.desks[client]
    }

    fn desks(&self) -> Vec<Arc<Desk>> {
        self.desks.values().cloned().collect()
    }

    fn server_address(&self) -> SocketAddr {
        self.server_address()
    }

    fn token(&self) -> Option<SecretString> {
        self.server.process().token.clone()
    }

    fn server_starts(&self) -> u64 {
        self.server.process().starts
    }

    fn mcp_root(&self) -> &str {
        &self.mcp_root
    }

    fn server_is_up(&self) -> bool {
        self.server.is_up()
    }

    fn server_gave_up(&self) -> bool {
        self.server.process().refused.is_some()
    }

    fn has_heard(&self, trigger: &EventTrigger) -> bool {
        self.heard.has(trigger)
    }

    fn step_ended(&self, name: &str) {
        self.heard.step_ended(name);
    }

    fn ask_server_to_stop(&mut self) {
        self.server.process().signals.raise();
    }

    fn start_server(&mut self, flags: Option<&[ServeFlag]>) {
        if let Some(flags) = flags {
            self.server.process().flags = flags.to_vec();
        }
        // After a crash it may be back already.
        if !self.is_running(SERVER) {
            self.start(SERVER);
        }
    }

    fn put_files(&mut self, changed: &Files) -> io::Result<()> {
        files::put(&self.server.disk, changed)
    }

    fn heard_answer(&self, answer: Answer) {
        self.observed.add(Observation::Answered(answer));
    }
}
