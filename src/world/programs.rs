//! Programs that tools start: each in a process group of its own, with exactly the environment
//! it is given. Whatever a program starts ends with it, wherever it hides.

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
    pub confinement: Confinement,
}

/// Which files a program and its descendants reach, whatever their user may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Confinement {
    None,
    /// What lies in these, and nothing else. All paths are absolute and without links; one that
    /// does not exist, or leads through a link by now, gives nothing. A kernel that cannot hold a
    /// program to it runs it all the same, and the log says so.
    Landlock {
        read: Vec<PathBuf>,
        /// To be read and changed.
        write: Vec<PathBuf>,
        execute: Execute,
    },
}

/// What a confined program may execute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Execute {
    /// All that it may read.
    Readable,
    /// Its own file and no other. Where the kernel cannot hold it to that, it is not started.
    Itself,
}

pub trait Programs: Send + Sync {
    /// Starts a program with piped input and output. When the process is dropped, everything of it
    /// is ended as by [`Process::end`], also when the server dies.
    fn start(&self, program: Program) -> BoxFuture<'_, io::Result<Box<dyn Process>>>;
}

pub trait Process: Send {
    /// The pipes, each once; `None` afterwards.
    fn stdin(&mut self) -> Option<Box<dyn AsyncWrite + Send + Unpin>>;
    fn stdout(&mut self) -> Option<Box<dyn AsyncRead + Send + Unpin>>;
    fn stderr(&mut self) -> Option<Box<dyn AsyncRead + Send + Unpin>>;
    /// Waits for the end of the program itself; again afterwards gives the same answer.
    fn wait(&mut self) -> BoxFuture<'_, io::Result<Exit>>;
    /// Signals the whole group; one that has ended already is no error.
    fn signal(&mut self, signal: Signal) -> io::Result<()>;
    /// Asks the program and all its descendants to end, kills what is left after
    /// [`PROGRAM_GRACE`](crate::limits::PROGRAM_GRACE), and waits until none of them is there.
    fn end(&mut self) -> BoxFuture<'_, ()>;
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
