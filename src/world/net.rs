//! Sockets: a listener on loopback and connections to it.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncRead, AsyncWrite};

use super::BoxFuture;

/// A byte stream in both directions; dropping it closes it.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

pub trait Net: Send + Sync {
    /// Listens; port 0 lets the machine choose. A taken port is `AddrInUse`.
    fn bind(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Listener>>>;

    /// Connects; nobody there is `ConnectionRefused`. The caller bounds the wait.
    fn connect(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Stream>>>;

    /// How many handles (sockets, files, pipes) this process may have open at once.
    fn handles_max(&self) -> usize;
}

pub trait Listener: Send {
    /// The address really bound, with the port the machine chose.
    fn local_addr(&self) -> io::Result<SocketAddr>;

    /// Waits for the next connection. Dropping the future loses none.
    fn accept(&mut self) -> BoxFuture<'_, io::Result<Box<dyn Stream>>>;
}
