//! A network in memory. Under a paused clock real sockets will not do: the clock also jumps when the
//! kernel is about to report bytes, while here time passes only when nobody has anything to do.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use nexus3::world::{BoxFuture, Listener, Net, Stream};
use tokio::io::duplex;
use tokio::sync::mpsc;

/// What lies on the wire at most, in each direction.
pub const WIRE_BYTES: usize = 64 * 1024;

#[derive(Default)]
pub struct Memory {
    /// The one listener's queue. Held to put in or take a handle; nothing is awaited under it.
    door: Mutex<Option<mpsc::UnboundedSender<Box<dyn Stream>>>>,
}

impl Memory {
    pub fn new() -> Arc<Self> {
        Arc::default()
    }
}

impl Net for Memory {
    fn bind(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Listener>>> {
        let (sender, receiver) = mpsc::unbounded_channel();
        *self.door.lock().expect("nothing under this lock panics") = Some(sender);
        Box::pin(async move { Ok(Box::new(Door { address, receiver }) as Box<dyn Listener>) })
    }

    fn connect(&self, _: SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Stream>>> {
        let (near, far) = duplex(WIRE_BYTES);
        let door = self.door.lock().expect("nothing under this lock panics");
        let taken = door.as_ref().and_then(|door| door.send(Box::new(far)).ok());
        let near = taken.map(|()| Box::new(near) as Box<dyn Stream>);
        Box::pin(async move { near.ok_or_else(|| io::ErrorKind::ConnectionRefused.into()) })
    }

    fn handles_max(&self) -> usize {
        usize::MAX
    }
}

struct Door {
    address: SocketAddr,
    receiver: mpsc::UnboundedReceiver<Box<dyn Stream>>,
}

impl Listener for Door {
    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }

    fn accept(&mut self) -> BoxFuture<'_, io::Result<Box<dyn Stream>>> {
        Box::pin(async move {
            self.receiver.recv().await.ok_or_else(|| io::ErrorKind::NotConnected.into())
        })
    }
}
