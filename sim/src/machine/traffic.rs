//! The messages of all hosts, seen one by one before each goes: a connection being made, or bytes
//! being written. Whoever watches may keep a message back. It decides nothing on its own.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

type Observer = Arc<dyn Fn(IpAddr, IpAddr) -> Duration + Send + Sync>;

/// Shared by the hosts of one network. Cloning shares it.
#[derive(Clone, Default)]
pub struct Traffic {
    /// Taken for as long as it takes to clone what is in it.
    observer: Arc<Mutex<Option<Observer>>>,
}

impl std::fmt::Debug for Traffic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Traffic")
    }
}

impl Traffic {
    /// Has `observer` called with sender and receiver before each message; what it returns is how
    /// long the message is kept back.
    pub fn on_message(
        &self,
        observer: impl Fn(IpAddr, IpAddr) -> Duration + Send + Sync + 'static,
    ) {
        *self.observer.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(observer));
    }

    /// How long a message is kept back.
    pub(super) fn message(&self, from: IpAddr, to: IpAddr) -> Duration {
        let observer = self.observer.lock().unwrap_or_else(PoisonError::into_inner).clone();
        observer.map_or(Duration::ZERO, |observer| observer(from, to))
    }
}
