//! Where a connection is in its exchange of requests and answers, and the stream that holds each
//! phase to its time: an idle connection is closed, a slow sender gets 408, a peer that does not
//! read its answer is cut off. hyper's own timer closes without an answer, so it is not used.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use super::reply::Refusal;
use crate::limits::{IDLE_CONNECTION_MAX, REQUEST_RECEIVE_MAX, WRITE_STALL_MAX};
use crate::world::Stream;

/// No phase is shorter than this, so a timer of this length never comes too late for one.
const TICK: Duration = REQUEST_RECEIVE_MAX;
const _: () = assert!(TICK.as_nanos() <= IDLE_CONNECTION_MAX.as_nanos(), "idle phases are longer");

const IDLE: u8 = 0;
const RECEIVING: u8 = 1;
const ANSWERING: u8 = 2;

/// Shared between a connection's stream, which sees bytes, and its service, which sees requests.
#[derive(Debug)]
pub struct Phase {
    now: AtomicU8,
    /// Counts the exchanges, so that the end of one is not taken for the end of the next.
    exchange: AtomicU64,
    born: Instant,
    /// When the first byte of the current request came, in milliseconds since `born`.
    first_byte_ms: AtomicU64,
}

impl Phase {
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            now: AtomicU8::new(IDLE),
            exchange: AtomicU64::new(0),
            born: Instant::now(),
            first_byte_ms: AtomicU64::new(0),
        })
    }

    fn receiving(&self) {
        let since = u64::try_from(self.born.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.first_byte_ms.store(since, Ordering::Release);
        self.now.store(RECEIVING, Ordering::Release);
    }

    /// The head is there and the service has taken over.
    pub fn head_received(self: &Arc<Self>) -> Exchange {
        // A request that was pipelined behind another one begins when its turn comes.
        if self.now.load(Ordering::Acquire) != RECEIVING {
            self.receiving();
        }
        self.now.store(ANSWERING, Ordering::Release);
        let first_byte = Duration::from_millis(self.first_byte_ms.load(Ordering::Acquire));
        Exchange {
            phase: Arc::clone(self),
            number: self.exchange.fetch_add(1, Ordering::AcqRel) + 1,
            receive_until: self.born + first_byte + REQUEST_RECEIVE_MAX,
        }
    }
}

/// One request and its answer. The connection is idle again once this is dropped.
#[derive(Debug)]
pub struct Exchange {
    phase: Arc<Phase>,
    number: u64,
    /// When the whole request must be there.
    pub receive_until: Instant,
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if self.phase.exchange.load(Ordering::Acquire) == self.number {
            self.phase.now.store(IDLE, Ordering::Release);
        }
    }
}

/// A connection's bytes, with the time limits of its phases.
pub struct Timed {
    inner: Box<dyn Stream>,
    phase: Arc<Phase>,
    /// The phase that `read_until` was set for.
    followed: u8,
    read_until: Instant,
    /// Looks at `read_until` at least every `TICK`. It is not reset with every request: that would
    /// take the lock of the runtime's timers twice for each.
    ticking: Pin<Box<Sleep>>,
    /// Runs while the peer takes nothing of what is to be written.
    writing: Option<Pin<Box<Sleep>>>,
}

impl Timed {
    pub fn new(inner: Box<dyn Stream>, phase: Arc<Phase>) -> Self {
        let now = Instant::now();
        let (read_until, ticking) = (now + IDLE_CONNECTION_MAX, Box::pin(sleep_until(now + TICK)));
        Self { inner, phase, followed: IDLE, read_until, ticking, writing: None }
    }

    /// Sets the end of the phase when it has changed since that was last set.
    fn follow(&mut self, phase: u8) {
        if std::mem::replace(&mut self.followed, phase) != phase {
            let allowed =
                if phase == RECEIVING { REQUEST_RECEIVE_MAX } else { IDLE_CONNECTION_MAX };
            self.read_until = Instant::now() + allowed;
        }
    }

    /// Ready once the time of the phase is over.
    fn poll_too_slow(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            ready!(self.ticking.as_mut().poll(cx));
            let now = Instant::now();
            if now >= self.read_until {
                return Poll::Ready(());
            }
            self.ticking.as_mut().reset(self.read_until.min(now + TICK));
        }
    }

    /// Gives up on a peer that takes nothing for too long.
    fn or_stalled<T>(
        &mut self,
        cx: &mut Context<'_>,
        outcome: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            if self.writing.take().is_some() {
                // Idle time is counted from when the peer took the last of its answer.
                self.followed = ANSWERING;
            }
            return outcome;
        }
        let stall = || Box::pin(sleep_until(Instant::now() + WRITE_STALL_MAX));
        ready!(self.writing.get_or_insert_with(stall).as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Timed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let phase = self.phase.now.load(Ordering::Acquire);
        self.follow(phase);
        let before = buffer.filled().len();
        if let Poll::Ready(outcome) = Pin::new(&mut self.inner).poll_read(cx, buffer) {
            if phase == IDLE && buffer.filled().len() > before {
                self.phase.receiving();
            }
            return Poll::Ready(outcome);
        }
        if phase == ANSWERING || self.writing.is_some() {
            // The service has its own deadlines, and so has an answer that is still being written.
            return Poll::Pending;
        }
        ready!(self.poll_too_slow(cx));
        if phase == RECEIVING {
            // Nothing is being written while a head arrives, so the socket takes this at once;
            // whoever does not read it is not waited for.
            let _ = Pin::new(&mut self.inner).poll_write(cx, &Refusal::too_slow().bytes());
        }
        // An end of file to hyper, which then closes the connection without a word of its own.
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Timed {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.inner).poll_write(cx, bytes);
        self.or_stalled(cx, outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.inner).poll_write_vectored(cx, bytes);
        self.or_stalled(cx, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.inner).poll_flush(cx);
        self.or_stalled(cx, outcome)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.inner).poll_shutdown(cx);
        self.or_stalled(cx, outcome)
    }
}
