//! Chance for those who make scenarios: times, numbers and choices from one stream of a seed. Pure.

use std::time::Duration;

use nexus3::provider::script::Time;

use crate::machine::SplitMix;

#[derive(Debug)]
pub struct Draw {
    chance: SplitMix,
}

impl Draw {
    pub fn new(seed: u64, what_for: &str) -> Self {
        Self { chance: SplitMix::named(seed, what_for) }
    }

    /// Whether something that happens with this probability happens now.
    pub fn happens(&mut self, probability: f64) -> bool {
        self.chance.fraction() < probability
    }

    /// A number below `end`; 0 where there is none.
    pub fn below(&mut self, end: u64) -> u64 {
        self.chance.draw() % end.max(1)
    }

    /// A number from the first to the last.
    pub fn within(&mut self, [first, last]: [u64; 2]) -> u64 {
        first + self.below(last.saturating_sub(first) + 1)
    }

    pub fn fraction_within(&mut self, [first, last]: [f64; 2]) -> f64 {
        first + (last - first) * self.chance.fraction()
    }

    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        let index = self.below(items.len() as u64);
        items.get(usize::try_from(index).unwrap_or_default())
    }

    /// A time from the first to the last. Short ones are as likely as long ones: half of what can go
    /// wrong goes wrong within milliseconds.
    pub fn time(&mut self, [first, last]: [Time; 2]) -> Time {
        let [first, last] = [first, last].map(|time| millis(time.0).max(1));
        let [low, high] = [first, last].map(|millis| {
            #[expect(clippy::cast_precision_loss, reason = "a time drawn needs no 64 bits")]
            let log = (millis as f64).ln();
            log
        });
        let drawn = self.fraction_within([low, high]).exp();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it lies between two numbers of milliseconds"
        )]
        let drawn = drawn.round() as u64;
        Time(Duration::from_millis(drawn.clamp(first, last.max(first))))
    }

    /// A moment before `end`, all alike.
    pub fn moment(&mut self, end: Duration) -> Time {
        Time(Duration::from_millis(self.below(millis(end) + 1)))
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> Time {
        text.parse().unwrap()
    }

    #[test]
    fn what_is_drawn_lies_where_it_may() {
        let mut draw = Draw::new(7, "a test");
        for _ in 0..1000 {
            assert!((3..=5).contains(&draw.within([3, 5])));
            let drawn = draw.time([time("10ms"), time("2s")]);
            assert!((time("10ms")..=time("2s")).contains(&drawn), "{drawn}");
            assert!(draw.moment(Duration::from_secs(1)) <= time("1s"));
            assert!(draw.happens(1.0) && !draw.happens(0.0));
        }
        assert_eq!(draw.pick::<u8>(&[]), None);
        assert_eq!(draw.within([4, 4]), 4);
    }

    #[test]
    fn short_times_are_as_likely_as_long_ones() {
        let mut draw = Draw::new(7, "a test");
        let short = (0..1000).filter(|_| draw.time([time("10ms"), time("10s")]) < time("316ms"));
        let short = short.count();
        assert!((400..600).contains(&short), "{short} of 1000");
    }
}
