//! Programs that tools start: each in a process group of its own, with exactly the environment
//! it is given.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use tokio::io::{AsyncRead, AsyncWrite};

use super::BoxFuture;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Looked up in the `PATH` of `environment` unless it has a slash.
    pub program: OsString,
    pub arguments: Vec<OsString>,
    pub directory: PathBuf,
    pub environment: Vec<(OsString, OsString)>,
}

pub trait Programs: Send + Sync {
    /// Starts a program with piped input and output. Its group is killed when the process is dropped.
    fn start(&self, program: Program) -> BoxFuture<'_, io::Result<Box<dyn Process>>>;
}

pub trait Process: Send {
    /// The pipes, each once; `None` afterwards.
    fn stdin(&mut self) -> Option<Box<dyn AsyncWrite + Send + Unpin>>;
    fn stdout(&mut self) -> Option<Box<dyn AsyncRead + Send + Unpin>>;
    fn stderr(&mut self) -> Option<Box<dyn AsyncRead + Send + Unpin>>;
    /// Waits for the end; again afterwards gives the same answer.
    fn wait(&mut self) -> BoxFuture<'_, io::Result<Exit>>;
    /// Signals the whole group; one that has ended already is no error.
    fn signal(&mut self, signal: Signal) -> io::Result<()>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    Terminate,
    Kill,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Code(i32),
    /// Ended by the signal of this number.
    Signal(i32),
}
