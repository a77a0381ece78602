//! Sockets of a simulated host, over turmoil's TCP.
//!
//! A turmoil listener on loopback is reached from its own host only, so whatever is bound is bound
//! to the unspecified address: the server believes that it listens on loopback, and the clients of
//! other hosts stand for the programs of the same machine.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use nexus3::world::{BoxFuture, Listener, Net, Stream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use turmoil::net::{TcpListener, TcpStream};

/// As on a real machine with the usual limit.
const HANDLES_MAX: usize = 1024 * 1024;

/// The sockets of one host. Cloning shares the count.
#[derive(Clone, Debug, Default)]
pub struct TurmoilNet {
    /// Connections it made, and connections it accepted.
    made: Arc<AtomicUsize>,
    accepted: Arc<AtomicUsize>,
}

impl TurmoilNet {
    /// How many connections are open. Turmoil's own count keeps those that were never made.
    pub fn open(&self) -> usize {
        self.made.load(Ordering::Acquire) + self.accepted()
    }

    /// How many of them others made.
    pub fn accepted(&self) -> usize {
        self.accepted.load(Ordering::Acquire)
    }
}

fn counted(inner: TcpStream, open: &Arc<AtomicUsize>) -> Box<dyn Stream> {
    open.fetch_add(1, Ordering::AcqRel);
    Box::new(Counted { inner, open: Arc::clone(open) })
}

impl Net for TurmoilNet {
    fn bind(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Listener>>> {
        Box::pin(async move {
            let anywhere = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), address.port());
            let inner = TcpListener::bind(anywhere).await?;
            let shown = SocketAddr::new(address.ip(), inner.local_addr()?.port());
            Ok(Box::new(Bound { inner, shown, net: self.clone() }) as Box<dyn Listener>)
        })
    }

    fn connect(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Stream>>> {
        Box::pin(async move {
            let stream = TcpStream::connect(address).await?;
            Ok(counted(stream, &self.made))
        })
    }

    fn handles_max(&self) -> usize {
        HANDLES_MAX
    }
}

struct Bound {
    inner: TcpListener,
    /// The address that was asked for, with the port that was given.
    shown: SocketAddr,
    net: TurmoilNet,
}

impl Listener for Bound {
    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.shown)
    }

    fn accept(&mut self) -> BoxFuture<'_, io::Result<Box<dyn Stream>>> {
        Box::pin(async move {
            let (stream, _) = self.inner.accept().await?;
            Ok(counted(stream, &self.net.accepted))
        })
    }
}

/// A connection that is counted as long as it is held.
struct Counted {
    inner: TcpStream,
    open: Arc<AtomicUsize>,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::AcqRel);
    }
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Counted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
