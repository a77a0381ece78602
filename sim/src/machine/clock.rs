//! Virtual time, and the wall clock of one simulated machine: virtual time from a fixed date, which
//! can be set.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use nexus3::world::Clock;
use tokio::runtime::Handle;
use tokio::time::Instant;

/// When every simulation begins: 2025-01-01T00:00:00Z, in seconds since 1970.
pub const EPOCH: i64 = 1_735_689_600;

thread_local! {
    static BETWEEN_TICKS: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    /// When the turn of a runtime without a network began: by the run, and by its own clock.
    static TURN: Cell<Option<(Duration, Instant)>> = const { Cell::new(None) };
}

/// Lets a runtime have its turn, which begins that long after the simulation did.
pub async fn pass<T>(elapsed: Duration, turn: impl Future<Output = T>) -> T {
    TURN.set(Some((elapsed, Instant::now())));
    let passed = turn.await;
    TURN.set(None);
    passed
}

/// How much virtual time has passed since the simulation began. turmoil knows it only while a host
/// runs; when hosts are started or killed between two ticks it would add the real machine's time.
pub fn elapsed() -> Duration {
    if let Some((elapsed, began)) = TURN.get() {
        return elapsed + began.elapsed();
    }
    let running = Handle::try_current().ok().and_then(|_| turmoil::sim_elapsed());
    running.unwrap_or_else(|| BETWEEN_TICKS.get())
}

/// Tells what time it is until the next tick.
pub fn set_between_ticks(elapsed: Duration) {
    BETWEEN_TICKS.set(elapsed);
}

#[derive(Clone)]
pub struct VirtualClock {
    /// How much virtual time has passed since the simulation began.
    elapsed: Arc<dyn Fn() -> Duration + Send + Sync>,
    /// How far this machine's clock is off.
    offset_ms: Arc<AtomicI64>,
}

impl std::fmt::Debug for VirtualClock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VirtualClock").field("offset_ms", &self.offset_ms).finish_non_exhaustive()
    }
}

impl VirtualClock {
    pub fn new(elapsed: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Self { elapsed: Arc::new(elapsed), offset_ms: Arc::default() }
    }

    /// Sets the clock forwards or backwards, as an operator or a bad battery does.
    pub fn jump(&self, by_ms: i64) {
        self.offset_ms.fetch_add(by_ms, Ordering::AcqRel);
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        let passed = SignedDuration::try_from((self.elapsed)()).unwrap_or(SignedDuration::MAX);
        let offset = SignedDuration::from_millis(self.offset_ms.load(Ordering::Acquire));
        let epoch = Timestamp::constant(EPOCH, 0);
        epoch.saturating_add(passed.saturating_add(offset)).unwrap_or(epoch)
    }
}
