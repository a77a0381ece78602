//! The server's wall clock as virtual time: it begins at a fixed date, and faults may set it. Pure.

use std::time::Duration;

use jiff::Timestamp;

use crate::machine::EPOCH;
use crate::play::story::{Happening, Moment};

/// Finds the virtual time of events in their order.
#[derive(Debug)]
pub struct Clock {
    /// From when on the clock is off by how much, in milliseconds.
    offsets: Vec<(i64, i64)>,
    /// Where the last event was found.
    last_ms: i64,
}

impl Clock {
    pub fn new(moments: &[Moment]) -> Self {
        let mut offsets = vec![(0, 0)];
        for moment in moments {
            if let Happening::ClockSet { by_ms } = moment.what {
                let (_, before) = offsets.last().copied().unwrap_or_default();
                offsets.push((millis(moment.at), before + by_ms));
            }
        }
        Self { offsets, last_ms: 0 }
    }

    /// When an event happened that has this time. Events are asked for in order, so a time that the
    /// clock showed twice is found where it can have been; one that it cannot have shown counts as that
    /// of the event before.
    pub fn virtual_time(&mut self, at: &str) -> Duration {
        let found = self.times(at).find(|time| *time >= self.last_ms);
        self.last_ms = found.unwrap_or(self.last_ms);
        Duration::from_millis(self.last_ms.unsigned_abs())
    }

    /// When something happened that has this time and was heard of then.
    pub fn before(&self, at: &str, heard: Duration) -> Duration {
        let time = self.times(at).filter(|time| *time <= millis(heard)).last();
        time.map_or(heard, |time| Duration::from_millis(time.unsigned_abs()))
    }

    /// When the clock showed this time, in milliseconds.
    fn times(&self, at: &str) -> impl Iterator<Item = i64> {
        let shown = at.parse::<Timestamp>().map(|at| at.as_millisecond() - EPOCH * 1000);
        let ends = self.offsets.iter().skip(1).map(|(from, _)| *from).chain([i64::MAX]);
        self.offsets.iter().zip(ends).filter_map(move |((from, offset), until)| {
            let time = shown.as_ref().ok()? - offset;
            (time >= *from && time <= until).then_some(time)
        })
    }
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_was_set_is_followed() {
        let set = |at, by_ms| Moment {
            at: Duration::from_secs(at),
            who: "server".to_owned(),
            what: Happening::ClockSet { by_ms },
        };
        let mut clock = Clock::new(&[set(10, 3_600_000), set(20, -7_200_000)]);
        let mut time = |at: &str| clock.virtual_time(&format!("2025-01-01T{at}Z")).as_secs();
        assert_eq!(time("00:00:04"), 4);
        assert_eq!(time("01:00:12"), 12, "an hour ahead");
        let before = "2024-12-31T23:00:25Z";
        assert_eq!(clock.virtual_time(before).as_secs(), 25, "an hour behind");
        assert_eq!(clock.virtual_time("2025-01-01T00:00:01Z").as_secs(), 3601);
        assert_eq!(clock.virtual_time("no time").as_secs(), 3601, "as the one before");
    }
}
