//! Programs as processes of the system, each with a supervisor between it and us: see `child`.
//! Never signals a process by its number: the supervisor, which is its parent, does.

use std::ffi::OsStr;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
    sendmsg, socketpair,
};
use rustix::pipe::{PipeFlags, pipe_with};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::child::wire::{self, Held, Instructions, PIPES, REPORT_BYTES, Report};
use crate::limits::{PROGRAM_INSTRUCTIONS_BYTES_MAX, PROGRAM_START_MAX};
use crate::world::{BoxFuture, Exit, Process, Program, Programs, Signal};

/// The hidden command of our binary that becomes a supervisor.
pub const COMMAND: &str = "__child";

pub(super) struct Supervised {
    /// Our binary.
    executable: PathBuf,
    /// Whether the log says already how far programs are confined.
    has_warned: AtomicBool,
}

impl Supervised {
    pub(super) fn by(executable: PathBuf) -> Self {
        Self { executable, has_warned: AtomicBool::new(false) }
    }

    async fn run(&self, program: Program) -> io::Result<Running> {
        let instructions = Instructions::new(found(&program)?, program);
        let text = serde_json::to_vec(&instructions)?;
        let length = u32::try_from(text.len()).ok();
        let length = length.filter(|_| text.len() <= PROGRAM_INSTRUCTIONS_BYTES_MAX);
        let length = length.ok_or(io::ErrorKind::ArgumentListTooLong)?;
        let mut running = Running::start(&self.executable, length)?;
        running.socket.write_all(&text).await?;
        match running.report().await? {
            Report::Started(held) => self.warn(held),
            Report::Failed(number) => return Err(io::Error::from_raw_os_error(number)),
            Report::Ended(_) => return Err(io::ErrorKind::InvalidData.into()),
        }
        Ok(running)
    }

    fn warn(&self, held: Held) {
        let how = match held {
            Held::Fully => return,
            Held::Partly => "this kernel confines programs of agents only in part",
            Held::Not => {
                "this kernel has no Landlock: programs of agents can read the server's token"
            }
        };
        if !self.has_warned.swap(true, Ordering::Relaxed) {
            tracing::warn!("{how}");
        }
    }
}

impl Programs for Supervised {
    fn start(&self, program: Program) -> BoxFuture<'_, io::Result<Box<dyn Process>>> {
        Box::pin(async move {
            let running = timeout(PROGRAM_START_MAX, self.run(program)).await;
            Ok(Box::new(running.map_err(|_late| io::ErrorKind::TimedOut)??) as Box<dyn Process>)
        })
    }
}

struct Running {
    /// The supervisor ends everything once this is closed.
    socket: UnixStream,
    /// What has arrived of a report.
    arrived: Vec<u8>,
    stdin: Option<Sender>,
    stdout: Option<Receiver>,
    stderr: Option<Receiver>,
    exit: Option<Exit>,
    /// Reaps the supervisor some time after it is dropped.
    _supervisor: Child,
}

impl Running {
    /// Starts the supervisor and hands the program's pipes over.
    fn start(executable: &Path, length: u32) -> io::Result<Self> {
        // Nothing that is opened here is inherited by anything that is started at the same time.
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        let pipe = || pipe_with(PipeFlags::CLOEXEC);
        let ((input, to_input), (from_output, output), (from_errors, errors)) =
            (pipe()?, pipe()?, pipe()?);
        let supervisor = Command::new(executable)
            .arg0("nexus3")
            .arg(COMMAND)
            .env_clear()
            .current_dir("/")
            .stdin(theirs)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        send(&ours, length, [&input, &output, &errors])?;
        let ours = std::os::unix::net::UnixStream::from(ours);
        ours.set_nonblocking(true)?;
        Ok(Self {
            socket: UnixStream::from_std(ours)?,
            arrived: Vec::with_capacity(REPORT_BYTES),
            stdin: Some(Sender::from_owned_fd(to_input)?),
            stdout: Some(Receiver::from_owned_fd(from_output)?),
            stderr: Some(Receiver::from_owned_fd(from_errors)?),
            exit: None,
            _supervisor: supervisor,
        })
    }

    /// The next report. What has arrived of it is kept if nobody waits any longer.
    async fn report(&mut self) -> io::Result<Report> {
        loop {
            if let Ok(bytes) = <[u8; REPORT_BYTES]>::try_from(self.arrived.as_slice()) {
                self.arrived.clear();
                return Report::from_bytes(bytes);
            }
            let mut bytes = [0; REPORT_BYTES];
            let wanted = &mut bytes[self.arrived.len()..];
            let count = self.socket.read(wanted).await?;
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.arrived.extend_from_slice(&wanted[..count]);
        }
    }
}

fn send(socket: &OwnedFd, length: u32, pipes: [&OwnedFd; PIPES]) -> io::Result<()> {
    let pipes = pipes.map(AsFd::as_fd);
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(PIPES))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let has_room = ancillary.push(SendAncillaryMessage::ScmRights(&pipes));
    assert!(has_room, "the space is made for these");
    let length = length.to_le_bytes();
    let sent = sendmsg(socket, &[IoSlice::new(&length)], &mut ancillary, SendFlags::NOSIGNAL)?;
    assert_eq!(sent, length.len(), "an empty socket has room for four bytes");
    Ok(())
}

/// Where the program is. Looked up here because `execvp` has a path of its own to try where `PATH`
/// is missing, and takes a relative place for one in the directory it runs in: what lies there is
/// nobody's choice of a program.
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
        .filter(|place| place.is_absolute())
        .map(|place| place.join(&program.program))
        .find(|place| place.is_file() && executable(place))
        .ok_or_else(|| io::ErrorKind::NotFound.into())
}

fn executable(path: &Path) -> bool {
    accessat(CWD, path, Access::EXEC_OK, AtFlags::empty()).is_ok()
}

impl Process for Running {
    fn stdin(&mut self) -> Option<Box<dyn AsyncWrite + Send + Unpin>> {
        Some(Box::new(self.stdin.take()?))
    }

    fn stdout(&mut self) -> Option<Box<dyn AsyncRead + Send + Unpin>> {
        Some(Box::new(self.stdout.take()?))
    }

    fn stderr(&mut self) -> Option<Box<dyn AsyncRead + Send + Unpin>> {
        Some(Box::new(self.stderr.take()?))
    }

    fn wait(&mut self) -> BoxFuture<'_, io::Result<Exit>> {
        Box::pin(async move {
            loop {
                if let Some(exit) = self.exit {
                    return Ok(exit);
                }
                if let Report::Ended(exit) = self.report().await? {
                    self.exit = Some(exit);
                }
            }
        })
    }

    fn signal(&mut self, signal: Signal) -> io::Result<()> {
        match self.socket.try_write(&[wire::order(signal)]) {
            Ok(_) => Ok(()),
            // The supervisor has ended, and with it everything that could be signalled.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn end(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            // A socket that cannot be closed is closed: the supervisor is gone.
            let _ = self.socket.shutdown().await;
            // The supervisor's own end closes its side, and that comes after all others'.
            while let Ok(report) = self.report().await {
                if let Report::Ended(exit) = report {
                    self.exit = Some(exit);
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Sink(Arc<Mutex<Vec<u8>>>);

    impl Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// What the log says where programs are held like this, one after the other.
    fn said(held: &[Held]) -> String {
        let sink = Sink::default();
        let to = sink.clone();
        let log = tracing_subscriber::fmt().without_time().with_ansi(false).with_target(false);
        let log = log.with_writer(move || to.clone()).finish();
        let programs = Supervised::by("nexus3".into());
        tracing::subscriber::with_default(log, || {
            for held in held {
                programs.warn(*held);
            }
        });
        let said = sink.0.lock().unwrap();
        String::from_utf8_lossy(&said).into_owned()
    }

    #[test]
    fn a_kernel_that_confines_less_than_it_is_asked_to_is_told_of_once() {
        assert_eq!(said(&[Held::Fully, Held::Fully]), "");
        let none = "this kernel has no Landlock: programs of agents can read the server's token";
        assert_eq!(said(&[Held::Fully, Held::Not, Held::Not]), format!(" WARN {none}\n"));
        let some = "this kernel confines programs of agents only in part";
        assert_eq!(said(&[Held::Partly, Held::Partly]), format!(" WARN {some}\n"));
    }

    #[test]
    fn a_program_is_looked_for_in_absolute_places_only() {
        let looked_for = |path: &str| {
            found(&Program {
                program: "sh".into(),
                arguments: Vec::new(),
                directory: "/bin".into(),
                environment: vec![("PATH".into(), path.into())],
                confinement: crate::world::Confinement::None,
            })
        };
        assert_eq!(looked_for("/nowhere:/bin").ok(), Some(PathBuf::from("/bin/sh")));
        for relative in ["", ".", ":/nowhere:", "../bin"] {
            let error = looked_for(relative).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::NotFound, "{relative}");
        }
    }
}
