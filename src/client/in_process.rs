//! A network that leads nowhere but to a server in this process, for embedders and tests: no port is
//! taken, and nobody else can reach it. What a client and a server do on it is what they do on sockets.

use std::io;
use std::net::SocketAddr;
use std::sync::OnceLock;

use tokio::io::{DuplexStream, duplex};
use tokio::sync::mpsc;

use crate::limits::{IN_PROCESS_BACKLOG_MAX, IN_PROCESS_WIRE_BYTES};
use crate::world::{BoxFuture, Listener, Net, Stream};

/// Give it to a server as the `net` of its world, and to the clients of that server.
#[derive(Debug, Default)]
pub struct InProcess {
    door: OnceLock<mpsc::Sender<DuplexStream>>,
}

impl InProcess {
    pub fn new() -> Self {
        Self::default()
    }
}

impl Net for InProcess {
    /// There is one listener, whatever its address.
    fn bind(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Listener>>> {
        Box::pin(async move {
            let (sender, waiting) = mpsc::channel(IN_PROCESS_BACKLOG_MAX);
            self.door.set(sender).map_err(|_| io::ErrorKind::AddrInUse)?;
            Ok(Box::new(Door { address, waiting }) as Box<dyn Listener>)
        })
    }

    fn connect(&self, _: SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Stream>>> {
        Box::pin(async move {
            let door = self.door.get().ok_or(io::ErrorKind::ConnectionRefused)?;
            let (near, far) = duplex(IN_PROCESS_WIRE_BYTES);
            door.send(far).await.map_err(|_| io::ErrorKind::ConnectionRefused)?;
            Ok(Box::new(near) as Box<dyn Stream>)
        })
    }

    /// Its connections take no handle of the machine.
    fn handles_max(&self) -> usize {
        usize::MAX
    }
}

struct Door {
    address: SocketAddr,
    waiting: mpsc::Receiver<DuplexStream>,
}

impl Listener for Door {
    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }

    fn accept(&mut self) -> BoxFuture<'_, io::Result<Box<dyn Stream>>> {
        Box::pin(async move {
            let stream = self.waiting.recv().await.ok_or(io::ErrorKind::NotConnected)?;
            Ok(Box::new(stream) as Box<dyn Stream>)
        })
    }
}
