//! How much of a connection's bytes its peer has not read, for each direction: beyond a window the
//! writer waits, as it does on a real machine, where turmoil would take any number of bytes.
//!
//! Both ends of a connection live in one process and find each other by their addresses. What one
//! reads the other learns at once, as turmoil's own count of segments does it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

/// What one direction of a connection holds before its writer waits.
const WINDOW_BYTES: usize = 64 * 1024;

thread_local! {
    /// The directions of all open connections, from whom to whom. An entry goes with the last end.
    static WAYS: RefCell<BTreeMap<(SocketAddr, SocketAddr), Weak<Way>>> =
        const { RefCell::new(BTreeMap::new()) };
}

/// One direction of a connection.
#[derive(Debug, Default)]
struct Way {
    /// Held for one look at a time; nothing is awaited or woken under it.
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    unread: usize,
    reader_is_gone: bool,
    writer: Option<Waker>,
}

/// Both directions, as one end of a connection sees them.
#[derive(Debug)]
pub(super) struct Windows {
    near: SocketAddr,
    far: SocketAddr,
    out: Arc<Way>,
    back: Arc<Way>,
}

impl Windows {
    pub(super) fn new(near: SocketAddr, far: SocketAddr) -> Self {
        Self { near, far, out: way(near, far), back: way(far, near) }
    }

    /// How many bytes can be written, at least one.
    pub(super) fn poll_room(&self, cx: &mut Context<'_>) -> Poll<usize> {
        let mut state = self.out.state();
        match WINDOW_BYTES.saturating_sub(state.unread) {
            0 => {
                state.writer = Some(cx.waker().clone());
                Poll::Pending
            }
            room => Poll::Ready(room),
        }
    }

    pub(super) fn wrote(&self, bytes: usize) {
        self.out.state().unread += bytes;
    }

    pub(super) fn read(&self, bytes: usize) {
        if bytes > 0 {
            self.back.change(|state| state.unread = state.unread.saturating_sub(bytes));
        }
    }

    /// Whether what was written will never be read.
    pub(super) fn reader_is_gone(&self) -> bool {
        self.out.state().reader_is_gone
    }
}

impl Drop for Windows {
    fn drop(&mut self) {
        self.back.change(|state| state.reader_is_gone = true);
        if Arc::strong_count(&self.out) == 1 {
            // While a thread ends there may be no table any more.
            let _ = WAYS.try_with(|ways| {
                let mut ways = ways.borrow_mut();
                ways.remove(&(self.near, self.far));
                ways.remove(&(self.far, self.near));
            });
        }
    }
}

impl Way {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes something that the writer wants to know.
    fn change(&self, change: impl FnOnce(&mut State)) {
        let writer = {
            let mut state = self.state();
            change(&mut state);
            state.writer.take()
        };
        if let Some(writer) = writer {
            writer.wake();
        }
    }
}

fn way(from: SocketAddr, to: SocketAddr) -> Arc<Way> {
    WAYS.with(|ways| {
        let mut ways = ways.borrow_mut();
        let known = ways.get(&(from, to)).and_then(Weak::upgrade);
        known.unwrap_or_else(|| {
            let way = Arc::default();
            ways.insert((from, to), Arc::downgrade(&way));
            way
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends() -> (Windows, Windows) {
        let address = |text: &str| text.parse().unwrap();
        let (one, other) = (address("10.0.0.1:5000"), address("10.0.0.2:80"));
        (Windows::new(one, other), Windows::new(other, one))
    }

    fn room(windows: &Windows) -> Option<usize> {
        match windows.poll_room(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(room) => Some(room),
            Poll::Pending => None,
        }
    }

    #[test]
    fn what_one_end_reads_is_room_for_the_other() {
        let (near, far) = ends();
        assert_eq!(room(&near), Some(WINDOW_BYTES));
        near.wrote(WINDOW_BYTES);
        assert_eq!((room(&near), room(&far)), (None, Some(WINDOW_BYTES)));
        far.read(10);
        assert_eq!(room(&near), Some(10));
    }

    #[test]
    fn a_connection_that_is_closed_leaves_nothing_behind() {
        let (near, far) = ends();
        near.wrote(WINDOW_BYTES);
        drop(far);
        assert!(near.reader_is_gone());
        assert_eq!(room(&near), None, "nobody has read anything");
        drop(near);
        WAYS.with(|ways| assert!(ways.borrow().is_empty()));
        let (near, _far) = ends();
        assert!(!near.reader_is_gone());
        assert_eq!(room(&near), Some(WINDOW_BYTES), "the same addresses begin anew");
    }
}
