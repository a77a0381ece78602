//! Programs as processes of the system, each the leader of a group of its own.
//! Never signals a group it cannot be sure of: the leader is not reaped before its group is killed,
//! so that its number, which is the group's, cannot have passed to somebody else.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Pid, WaitId, WaitIdOptions, WaitIdStatus, kill_process_group, waitid};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::process::{Child, Command};
use tokio::signal::unix::{Signal as Ends, SignalKind, signal};

use crate::world::{BoxFuture, Exit, Process, Program, Programs, Signal};

pub(super) struct Processes;

impl Programs for Processes {
    fn start(&self, program: Program) -> BoxFuture<'_, io::Result<Box<dyn Process>>> {
        Box::pin(async move { Ok(Box::new(Running::start(&program)?) as Box<dyn Process>) })
    }
}

struct Running {
    /// Reaps the leader some time after it is dropped; `wait` leaves that to it.
    child: Child,
    group: Pid,
    /// Tells that some child of ours ended, maybe this one.
    ends: Ends,
    exit: Option<Exit>,
}

impl Running {
    fn start(program: &Program) -> io::Result<Self> {
        // Before the program starts: it may have ended by the time anybody waits.
        let ends = signal(SignalKind::child())?;
        let child = Command::new(found(program)?)
            .arg0(&program.program)
            .args(&program.arguments)
            .current_dir(&program.directory)
            .env_clear()
            .envs(program.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()?;
        let group = child
            .id()
            .and_then(|id| Pid::from_raw(id.cast_signed()))
            .expect("a process has a number until it is reaped");
        Ok(Self { child, group, ends, exit: None })
    }
}

/// Where the program is. Looked up here because `execvp` has a path of its own to try where `PATH`
/// is missing.
fn found(program: &Program) -> io::Result<PathBuf> {
    if program.program.as_bytes().contains(&b'/') {
        return Ok(program.directory.join(&program.program));
    }
    let path = program
        .environment
        .iter()
        .rfind(|(name, _)| name == "PATH")
        .map_or(OsStr::new(""), |(_, value)| value);
    std::env::split_paths(path)
        .map(|place| program.directory.join(place).join(&program.program))
        .find(|place| place.is_file() && executable(place))
        .ok_or_else(|| io::ErrorKind::NotFound.into())
}

fn executable(path: &Path) -> bool {
    accessat(CWD, path, Access::EXEC_OK, AtFlags::empty()).is_ok()
}

impl Process for Running {
    fn stdin(&mut self) -> Option<Box<dyn AsyncWrite + Send + Unpin>> {
        Some(Box::new(self.child.stdin.take()?))
    }

    fn stdout(&mut self) -> Option<Box<dyn AsyncRead + Send + Unpin>> {
        Some(Box::new(self.child.stdout.take()?))
    }

    fn stderr(&mut self) -> Option<Box<dyn AsyncRead + Send + Unpin>> {
        Some(Box::new(self.child.stderr.take()?))
    }

    fn wait(&mut self) -> BoxFuture<'_, io::Result<Exit>> {
        Box::pin(async move {
            loop {
                if let Some(exit) = self.exit {
                    return Ok(exit);
                }
                // NOWAIT leaves the leader unreaped.
                let how = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
                match retry_on_intr(|| waitid(WaitId::Pid(self.group), how))? {
                    Some(status) => self.exit = Some(exit_of(&status)),
                    None => self.ends.recv().await.expect("a stream of signals has no end"),
                }
            }
        })
    }

    fn signal(&mut self, signal: Signal) -> io::Result<()> {
        let signal = match signal {
            Signal::Terminate => rustix::process::Signal::TERM,
            Signal::Kill => rustix::process::Signal::KILL,
        };
        match kill_process_group(self.group, signal) {
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

fn exit_of(status: &WaitIdStatus) -> Exit {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => unreachable!("only ends were asked for, which are exits or signals"),
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Members that changed their user are beyond our reach; there is nobody to tell.
        let _ = self.signal(Signal::Kill);
    }
}
