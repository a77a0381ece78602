//! Sockets of a simulated host, over turmoil's TCP.
//!
//! A turmoil listener on loopback is reached from its own host only, so whatever is bound is bound
//! to the unspecified address: the server believes that it listens on loopback, and the clients of
//! other hosts stand for the programs of the same machine.
//!
//! A message that is kept back waits in its sender's socket, as it would in a system's buffer: the
//! sender believes it gone, and what it writes next waits behind it. A writer also waits for a reader
//! that leaves too much unread.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use nexus3::world::{BoxFuture, Listener, Net, Stream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};
use turmoil::net::{TcpListener, TcpStream};

use super::Traffic;
use super::sockets::Dead;
use super::window::Windows;

/// As on a real machine with the usual limit.
const HANDLES_MAX: usize = 1024 * 1024;
/// How often a writer without room looks whether its reader is gone for good.
const PROBE_EVERY: Duration = Duration::from_millis(100);

/// The sockets of one host. Cloning shares the count.
#[derive(Clone, Debug, Default)]
pub struct TurmoilNet {
    /// Connections it made, and connections it accepted.
    made: Arc<AtomicUsize>,
    accepted: Arc<AtomicUsize>,
    /// Where the host's messages are seen, with the host's address; `None` where nobody looks.
    road: Option<Road>,
    /// Says whether the machine has lost its power; `None` for one that cannot.
    dead: Option<Dead>,
}

#[derive(Clone, Debug)]
struct Road {
    from: IpAddr,
    traffic: Traffic,
}

impl TurmoilNet {
    /// The sockets of the host at `from`, whose messages are part of `traffic`.
    pub fn in_traffic(from: IpAddr, traffic: &Traffic) -> Self {
        let road = Some(Road { from, traffic: traffic.clone() });
        Self { road, ..Self::default() }
    }

    /// These sockets on a machine of which `is_dead` says whether it is.
    #[must_use]
    pub fn until(self, is_dead: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self { dead: Some(Dead::when(is_dead)), ..self }
    }

    /// How many connections are open. Turmoil's own count keeps those that were never made.
    pub fn open(&self) -> usize {
        self.made.load(Ordering::Acquire) + self.accepted()
    }

    /// How many of them others made.
    pub fn accepted(&self) -> usize {
        self.accepted.load(Ordering::Acquire)
    }

    fn connection(
        &self,
        inner: TcpStream,
        peer: SocketAddr,
        open: &Arc<AtomicUsize>,
    ) -> Box<dyn Stream> {
        let near = inner.local_addr().expect("a connection has an address");
        let windows = Windows::new(near, peer);
        open.fetch_add(1, Ordering::AcqRel);
        let (open, road, dead) = (Arc::clone(open), self.road.clone(), self.dead.clone());
        let (next, probe) = (Next::Unseen, None);
        Box::new(Connection { inner, open, road, dead, peer, next, windows, probe })
    }

    fn is_dead(&self) -> bool {
        Dead::is_now(self.dead.as_ref())
    }
}

impl Road {
    fn message(&self, to: SocketAddr) -> Duration {
        self.traffic.message(self.from, to.ip())
    }
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
            let kept_back = self.road.as_ref().map(|road| road.message(address));
            if let Some(kept_back) = kept_back.filter(|kept_back| !kept_back.is_zero()) {
                sleep(kept_back).await;
            }
            if self.is_dead() {
                return std::future::pending().await;
            }
            let stream = TcpStream::connect(address).await?;
            Ok(self.connection(stream, address, &self.made))
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
            let (stream, peer) = self.inner.accept().await?;
            Ok(self.net.connection(stream, peer, &self.net.accepted))
        })
    }
}

/// A connection that is counted as long as it is held.
struct Connection {
    inner: TcpStream,
    open: Arc<AtomicUsize>,
    road: Option<Road>,
    dead: Option<Dead>,
    peer: SocketAddr,
    next: Next,
    windows: Windows,
    /// Runs while there is no room and nobody who would make any.
    probe: Option<Pin<Box<Sleep>>>,
}

/// The next message of a connection.
enum Next {
    /// Nothing is known of it.
    Unseen,
    /// It was seen and goes as soon as there is room.
    Seen,
    /// It was taken and is kept back.
    KeptBack { until: Pin<Box<Sleep>>, bytes: Vec<u8> },
}

impl Connection {
    /// Sends what was kept back, once its time has come. Whatever is done to the connection asks for
    /// it first, so that it goes also where the sender only waits for an answer.
    fn poll_kept_back(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Next::KeptBack { until, bytes } = &mut self.next else {
            return Poll::Ready(Ok(()));
        };
        ready!(until.as_mut().poll(cx));
        while !bytes.is_empty() {
            let count = ready!(Pin::new(&mut self.inner).poll_write(cx, bytes))?;
            bytes.drain(..count);
        }
        self.next = Next::Unseen;
        Poll::Ready(Ok(()))
    }

    fn is_dead(&self) -> bool {
        Dead::is_now(self.dead.as_ref())
    }

    /// Waits where there is no room. A reader that is gone makes none; whether this end has learned of
    /// that, the network decides: a byte that nobody will ever read finds it out, and does not count.
    fn poll_without_room(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        while self.windows.reader_is_gone() {
            let probe = self.probe.get_or_insert_with(|| Box::pin(sleep(PROBE_EVERY)));
            ready!(probe.as_mut().poll(cx));
            self.probe = None;
            ready!(Pin::new(&mut self.inner).poll_write(cx, &[0]))?;
        }
        Poll::Pending
    }

    /// How long a message is kept back that nobody has seen yet.
    fn see(&self) -> Duration {
        match (&self.next, &self.road) {
            (Next::Unseen, Some(road)) => road.message(self.peer),
            (Next::Unseen, None) | (Next::Seen | Next::KeptBack { .. }, _) => Duration::ZERO,
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::AcqRel);
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Poll::Ready(Err(_broken)) = self.poll_kept_back(cx) {
            // The reader learns of it below, in its own words.
            self.next = Next::Unseen;
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.inner).poll_read(cx, buffer);
        self.windows.read(buffer.filled().len() - before);
        read
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.is_dead() {
            // Nobody wakes this task again: its host is gone with the tick.
            return Poll::Pending;
        }
        ready!(self.poll_kept_back(cx))?;
        let Poll::Ready(room) = self.windows.poll_room(cx) else {
            return self.poll_without_room(cx);
        };
        let bytes = &bytes[..bytes.len().min(room)];
        let kept_back = self.see();
        if kept_back.is_zero() {
            self.next = Next::Seen;
            let count = ready!(Pin::new(&mut self.inner).poll_write(cx, bytes));
            self.next = Next::Unseen;
            self.windows.wrote(*count.as_ref().unwrap_or(&0));
            return Poll::Ready(count);
        }
        self.windows.wrote(bytes.len());
        let until = Box::pin(sleep(kept_back));
        self.next = Next::KeptBack { until, bytes: bytes.to_vec() };
        // It has not come to its time; this is for being woken then.
        let _ = self.poll_kept_back(cx);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.poll_kept_back(cx)?.is_pending() {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.is_dead() {
            return Poll::Pending;
        }
        ready!(self.poll_kept_back(cx))?;
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
