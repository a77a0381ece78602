//! The system's clock. Never used to measure how long something took: it can be set.

use std::time::SystemTime;

use jiff::Timestamp;

use crate::world::Clock;

pub(super) struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::try_from(SystemTime::now())
            .expect("a system clock stands between the years -9999 and 9999")
    }
}
