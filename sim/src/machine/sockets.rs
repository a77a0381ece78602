//! The sockets of one host, over whichever lane it has: a simulated network, or pipes.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use nexus3::world::{BoxFuture, Listener, Net, Stream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::TurmoilNet;
use crate::pipes::Pipes;

/// A machine that is dead sends nothing more, however much its programs still believe to say in what
/// is left of the tick.
#[derive(Clone)]
pub(super) struct Dead(Arc<dyn Fn() -> bool + Send + Sync>);

impl Dead {
    pub(super) fn when(is_dead: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(is_dead))
    }

    pub(super) fn is_now(dead: Option<&Self>) -> bool {
        dead.is_some_and(|dead| dead.0())
    }
}

impl std::fmt::Debug for Dead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Dead")
    }
}

/// Cloning shares the counts.
#[derive(Clone, Debug)]
pub enum Sockets {
    Network(TurmoilNet),
    Pipes(PipesNet),
}

impl Sockets {
    /// These sockets on a machine of which `is_dead` says whether it is.
    #[must_use]
    pub fn until(self, is_dead: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        match self {
            Self::Network(net) => Self::Network(net.until(is_dead)),
            Self::Pipes(net) => Self::Pipes(PipesNet { dead: Some(Dead::when(is_dead)), ..net }),
        }
    }

    /// How many connections are open.
    pub fn open(&self) -> usize {
        match self {
            Self::Network(net) => net.open(),
            Self::Pipes(net) => net.made.load(Ordering::Acquire) + self.accepted(),
        }
    }

    /// How many of them others made.
    pub fn accepted(&self) -> usize {
        match self {
            Self::Network(net) => net.accepted(),
            Self::Pipes(net) => net.accepted.load(Ordering::Acquire),
        }
    }

    fn net(&self) -> &dyn Net {
        match self {
            Self::Network(net) => net,
            Self::Pipes(net) => net,
        }
    }
}

impl Net for Sockets {
    fn bind(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Listener>>> {
        self.net().bind(address)
    }

    fn connect(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Stream>>> {
        self.net().connect(address)
    }

    fn handles_max(&self) -> usize {
        self.net().handles_max()
    }
}

/// The ends of pipes that one host holds.
#[derive(Clone, Debug)]
pub struct PipesNet {
    pipes: Pipes,
    made: Arc<AtomicUsize>,
    accepted: Arc<AtomicUsize>,
    dead: Option<Dead>,
}

impl PipesNet {
    pub fn new(pipes: Pipes) -> Self {
        Self { pipes, made: Arc::default(), accepted: Arc::default(), dead: None }
    }

    fn end(&self, inner: Box<dyn Stream>, open: &Arc<AtomicUsize>) -> Box<dyn Stream> {
        open.fetch_add(1, Ordering::AcqRel);
        Box::new(End { inner, open: Arc::clone(open), dead: self.dead.clone() })
    }
}

impl Net for PipesNet {
    /// On all addresses: the pipes of a run are one machine's, and its hosts have one each.
    fn bind(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Listener>>> {
        Box::pin(async move {
            let anywhere = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), address.port());
            let inner = self.pipes.bind(anywhere).await?;
            let shown = SocketAddr::new(address.ip(), inner.local_addr()?.port());
            Ok(Box::new(Door { inner, shown, net: self.clone() }) as Box<dyn Listener>)
        })
    }

    fn connect(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Stream>>> {
        Box::pin(async move {
            if Dead::is_now(self.dead.as_ref()) {
                return std::future::pending().await;
            }
            Ok(self.end(self.pipes.connect(address).await?, &self.made))
        })
    }

    fn handles_max(&self) -> usize {
        self.pipes.handles_max()
    }
}

struct Door {
    inner: Box<dyn Listener>,
    /// The address that was asked for, with the port that was given.
    shown: SocketAddr,
    net: PipesNet,
}

impl Listener for Door {
    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.shown)
    }

    fn accept(&mut self) -> BoxFuture<'_, io::Result<Box<dyn Stream>>> {
        Box::pin(async move { Ok(self.net.end(self.inner.accept().await?, &self.net.accepted)) })
    }
}

/// An end that is counted as long as it is held.
struct End {
    inner: Box<dyn Stream>,
    open: Arc<AtomicUsize>,
    dead: Option<Dead>,
}

impl Drop for End {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::AcqRel);
    }
}

impl AsyncRead for End {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buffer)
    }
}

impl AsyncWrite for End {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if Dead::is_now(self.dead.as_ref()) {
            // Nobody wakes this task again: its host is gone with the tick.
            return Poll::Pending;
        }
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if Dead::is_now(self.dead.as_ref()) {
            return Poll::Pending;
        }
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
