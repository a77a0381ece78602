//! Blocking work that waits until the test lets it through: a request that counts tokens can be held
//! in the middle for as long as a test needs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nexus3::world::{Blocking, BoxFuture};
use tokio::sync::Semaphore;

pub struct Gate {
    closed: AtomicBool,
    arrived: Arc<Semaphore>,
    open: Arc<Semaphore>,
}

impl Gate {
    pub fn open() -> Arc<Self> {
        let none = || Arc::new(Semaphore::new(0));
        Arc::new(Self { closed: AtomicBool::new(false), arrived: none(), open: none() })
    }

    /// Holds every job from now on.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    /// Waits until one more job stands before the gate.
    pub async fn arrival(&self) {
        self.arrived.acquire().await.expect("the gate is never torn down").forget();
    }

    /// Lets one job through.
    pub fn open_once(&self) {
        self.open.add_permits(1);
    }
}

impl Blocking for Gate {
    fn run(&self, job: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()> {
        if !self.closed.load(Ordering::Acquire) {
            job();
            return Box::pin(async {});
        }
        let (arrived, open) = (Arc::clone(&self.arrived), Arc::clone(&self.open));
        Box::pin(async move {
            arrived.add_permits(1);
            open.acquire().await.expect("the gate is never torn down").forget();
            job();
        })
    }
}
