//! TCP sockets of the system, and how many of them the process may hold.
//! Never bounds a wait: the callers do.

use std::io;
use std::net::SocketAddr;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use crate::limits::{BACKLOG, SEND_BUFFER_BYTES};
use crate::world::{BoxFuture, Listener, Net, Stream};

pub(super) struct Tcp {
    handles_max: usize,
}

impl Tcp {
    /// Raises the soft limit of open handles to the hard one; the usual soft limit of 1024 is a
    /// courtesy to programs that use `select`, which this one does not.
    pub(super) fn open() -> Self {
        let limit = getrlimit(Resource::Nofile);
        let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
        // A sandbox may forbid it; the soft limit that is read back is true in either case.
        let _ = setrlimit(Resource::Nofile, raised);
        let handles_max = getrlimit(Resource::Nofile)
            .current
            .and_then(|handles| usize::try_from(handles).ok())
            .unwrap_or(usize::MAX);
        Self { handles_max }
    }
}

impl Net for Tcp {
    fn bind(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Listener>>> {
        Box::pin(async move {
            let socket = match address {
                SocketAddr::V4(_) => TcpSocket::new_v4()?,
                SocketAddr::V6(_) => TcpSocket::new_v6()?,
            };
            // A server that died a moment ago must not keep its port from the next one.
            socket.set_reuseaddr(true)?;
            // Accepted connections have it too. Left to itself the system takes some 4 MiB for a
            // reader that does not read, long after the bound of what we hold for it.
            socket.set_send_buffer_size(SEND_BUFFER_BYTES)?;
            socket.bind(address)?;
            let listener = socket.listen(BACKLOG)?;
            Ok(Box::new(Door { listener }) as Box<dyn Listener>)
        })
    }

    fn connect(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Stream>>> {
        Box::pin(async move { Ok(prompt(TcpStream::connect(address).await?)) })
    }

    fn handles_max(&self) -> usize {
        self.handles_max
    }
}

struct Door {
    listener: TcpListener,
}

impl Listener for Door {
    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    fn accept(&mut self) -> BoxFuture<'_, io::Result<Box<dyn Stream>>> {
        Box::pin(async move {
            let (stream, _peer) = self.listener.accept().await?;
            Ok(prompt(stream))
        })
    }
}

/// Sends small writes at once: events are small, and somebody waits for each.
fn prompt(stream: TcpStream) -> Box<dyn Stream> {
    // It fails only for a peer that is gone already, which the first read will tell.
    let _ = stream.set_nodelay(true);
    Box::new(stream)
}
