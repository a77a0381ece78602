//! Which durable points of a run are tried. Pure.

use crate::machine::SplitMix;

/// All points, or as many as wanted: one of each equal part of the run, drawn from the seed.
pub fn chosen(points: u64, sample: Option<u64>, seed: u64) -> Vec<u64> {
    let Some(wanted) = sample.filter(|wanted| *wanted < points) else {
        return (1..=points).collect();
    };
    let mut chance = SplitMix::named(seed, "points");
    let begin = |part: u64| part * points / wanted;
    let point = |part| {
        let (first, end) = (begin(part), begin(part + 1));
        1 + first + chance.draw() % (end - first)
    };
    (0..wanted).map(point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_sample_every_point_is_tried() {
        assert_eq!(chosen(3, None, 0), [1, 2, 3]);
        assert_eq!(chosen(3, Some(3), 0), [1, 2, 3]);
        assert_eq!(chosen(0, Some(3), 0), Vec::<u64>::new());
    }

    #[test]
    fn a_sample_is_spread_over_the_run_by_the_seed() {
        let sample = chosen(1000, Some(10), 7);
        for (part, point) in (0..).zip(&sample) {
            assert!((part * 100 + 1..=part * 100 + 100).contains(point), "{sample:?}");
        }
        assert_eq!(sample, chosen(1000, Some(10), 7));
        assert_ne!(sample, chosen(1000, Some(10), 8));
    }
}
