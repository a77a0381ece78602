//! `nexus3 __child`: the supervisor of one program, a process of its own between the server and the
//! program. It leads a session, is the subreaper of everything the program starts, and holds a socket
//! whose other end only the server has: once that is closed, by whatever kills the server too, it ends
//! all its descendants and then itself. It never decides what is started: the server says it all.
//!
//! There is no parent-death signal: it would follow the thread that started the supervisor, and
//! those of the server's runtime come and go.

mod family; // who is there, and who has ended
mod start; // the program itself
pub mod wire; // what is said over the socket

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::process::{Signal as Number, getpid, set_child_subreaper, setsid};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::signal::unix::{Signal as Ends, SignalKind, signal};
use tokio::time::{Instant, timeout_at};

use crate::limits::{PROGRAM_GRACE, PROGRAM_INSTRUCTIONS_BYTES_MAX};
use crate::world::Signal;
use family::{Family, Left};
use wire::{Instructions, PIPES, Report};

/// How long those who were killed may take before the rest is killed again.
const KILL_AGAIN_AFTER: Duration = Duration::from_millis(20);

/// Runs the supervisor to its end. What goes wrong before the program runs ends it, which tells the
/// server.
pub fn supervise() -> ExitCode {
    match prepare().and_then(|(instructions, pipes, socket)| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(watch(instructions, pipes, socket))
    }) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn prepare() -> io::Result<(Instructions, [OwnedFd; PIPES], UnixStream)> {
    close_inherited()?;
    setsid()?;
    set_child_subreaper(Some(getpid()))?;
    receive(UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?))
}

/// Closes what the server was started with beside its standard streams. All that it opened itself is
/// closed by starting us.
fn close_inherited() -> io::Result<()> {
    let names = fs::read_dir("/proc/self/fd")?;
    let numbers: Vec<i32> = names
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|number| *number > 2)
        .collect();
    for number in numbers {
        // The handle of the listing is among them, and is closed already.
        let _ = nix::unistd::close(number);
    }
    Ok(())
}

fn receive(mut socket: UnixStream) -> io::Result<(Instructions, [OwnedFd; PIPES], UnixStream)> {
    let mut length = [0; 4];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(PIPES))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let into = &mut [IoSliceMut::new(&mut length)];
    let received = recvmsg(&socket, into, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    let invalid = || io::Error::from(io::ErrorKind::InvalidData);
    let rights = ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(pipes) => Some(pipes.collect::<Vec<OwnedFd>>()),
        _ => None,
    });
    let pipes = rights.and_then(|pipes| pipes.try_into().ok()).ok_or_else(invalid)?;
    let length = u32::from_le_bytes(length) as usize;
    if received.bytes != 4 || length > PROGRAM_INSTRUCTIONS_BYTES_MAX {
        return Err(invalid());
    }
    let mut text = vec![0; length];
    socket.read_exact(&mut text)?;
    Ok((serde_json::from_slice(&text)?, pipes, socket))
}

async fn watch(
    instructions: Instructions,
    pipes: [OwnedFd; PIPES],
    socket: UnixStream,
) -> io::Result<()> {
    socket.set_nonblocking(true)?;
    let mut socket = tokio::net::UnixStream::from_std(socket)?;
    // Before the program starts, which may have ended by the time it is asked for.
    let mut ends = signal(SignalKind::child())?;
    turn_deaf()?;
    let leader = match start::start(instructions, pipes) {
        Ok((leader, held)) => {
            socket.write_all(&Report::Started(held).to_bytes()).await?;
            leader
        }
        Err(error) => {
            let number = error.raw_os_error().unwrap_or(Errno::INVAL.raw_os_error());
            return socket.write_all(&Report::Failed(number).to_bytes()).await;
        }
    };
    let mut family = Family::new(leader);
    obey(&mut family, &mut socket, &mut ends).await;
    end(&mut family, &mut ends).await;
    // A server that is gone does not hear it.
    if let Some(exit) = family.exit {
        let _ = socket.write_all(&Report::Ended(exit).to_bytes()).await;
    }
    Ok(())
}

/// Has the signals that end a process by custom do nothing: whoever sends them to all that is called
/// like the server means the server, and its end is ours. They are not ignored, which programs would
/// inherit.
fn turn_deaf() -> io::Result<()> {
    let kinds = [
        SignalKind::terminate(),
        SignalKind::interrupt(),
        SignalKind::hangup(),
        SignalKind::quit(),
        SignalKind::alarm(),
        SignalKind::user_defined1(),
        SignalKind::user_defined2(),
    ];
    // What was once listened for is never again deadly, whether anybody listens or not.
    kinds.into_iter().try_for_each(|kind| signal(kind).map(drop))
}

/// Passes orders on and tells of the program's end, until the server closes its end of the socket.
async fn obey(family: &mut Family, socket: &mut tokio::net::UnixStream, ends: &mut Ends) {
    let mut is_told = false;
    loop {
        family.reap();
        if let Some(exit) = family.exit
            && !is_told
        {
            is_told = true;
            let _ = socket.write_all(&Report::Ended(exit).to_bytes()).await;
        }
        let mut order = [0];
        tokio::select! {
            // An order must win over ends that never stop coming.
            biased;
            read = socket.read(&mut order) => match read.map(|count| (count, wire::ordered(order[0]))) {
                Ok((1, Some(Signal::Terminate))) => family.tell(Number::TERM, &mut BTreeSet::new()),
                Ok((1, Some(Signal::Kill))) => family.tell(Number::KILL, &mut BTreeSet::new()),
                Ok(_) | Err(_) => return,
            },
            _ = ends.recv() => {}
        }
    }
}

/// Ends everything that is left: politely, then not.
async fn end(family: &mut Family, ends: &mut Ends) {
    let deadline = Instant::now() + PROGRAM_GRACE;
    let mut asked = BTreeSet::new();
    while family.reap() == Left::Some {
        // Those who left their group are found once their parents have ended, and asked then.
        family.tell(Number::TERM, &mut asked);
        if timeout_at(deadline, ends.recv()).await.is_err() {
            break;
        }
    }
    while family.reap() == Left::Some {
        family.tell(Number::KILL, &mut BTreeSet::new());
        let _ = timeout_at(Instant::now() + KILL_AGAIN_AFTER, ends.recv()).await;
    }
}
