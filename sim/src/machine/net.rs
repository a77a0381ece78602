//! Sockets of a simulated host, over turmoil's TCP.
//!
//! A turmoil listener on loopback is reached from its own host only, so whatever is bound is bound
//! to the unspecified address: the server believes that it listens on loopback, and the clients of
//! other hosts stand for the programs of the same machine.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use nexus3::world::{BoxFuture, Listener, Net, Stream};
use turmoil::net::{TcpListener, TcpStream};

/// As on a real machine with the usual limit.
const HANDLES_MAX: usize = 1024 * 1024;

#[derive(Clone, Copy, Debug, Default)]
pub struct TurmoilNet;

impl Net for TurmoilNet {
    fn bind(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Listener>>> {
        Box::pin(async move {
            let anywhere = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), address.port());
            let inner = TcpListener::bind(anywhere).await?;
            let shown = SocketAddr::new(address.ip(), inner.local_addr()?.port());
            Ok(Box::new(Bound { inner, shown }) as Box<dyn Listener>)
        })
    }

    fn connect(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Stream>>> {
        Box::pin(async move {
            // Turmoil never forgets a connection whose caller gave up before the answer came. So it
            // is always made, and closed at once where nobody wants it any more.
            let connecting = tokio::spawn(TcpStream::connect(address));
            let stream = connecting.await.expect("connecting does not panic")?;
            Ok(Box::new(stream) as Box<dyn Stream>)
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
}

impl Listener for Bound {
    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.shown)
    }

    fn accept(&mut self) -> BoxFuture<'_, io::Result<Box<dyn Stream>>> {
        Box::pin(async move {
            let (stream, _) = self.inner.accept().await?;
            Ok(Box::new(stream) as Box<dyn Stream>)
        })
    }
}
