//! Chance from a seed, one stream per use. The generator is written out here so that an update of a
//! library does not change what every seed means.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use nexus3::world::{Chance, Use};

use crate::digest::Digest;

#[derive(Debug)]
pub struct Seeded {
    seed: u64,
    /// How far each stream is. Held for one draw; nothing is awaited under it.
    streams: Mutex<BTreeMap<Use, SplitMix>>,
}

impl Seeded {
    pub fn new(seed: u64) -> Self {
        Self { seed, streams: Mutex::default() }
    }
}

impl Chance for Seeded {
    fn fill(&self, what_for: Use, bytes: &mut [u8]) {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        let stream = streams.entry(what_for).or_insert_with(|| {
            // The name, not the position in the enum: a new use must not shift the others.
            SplitMix::named(self.seed, &format!("{what_for:?}"))
        });
        for piece in bytes.chunks_mut(8) {
            piece.copy_from_slice(&stream.draw().to_le_bytes()[..piece.len()]);
        }
    }
}

/// A small generator of 64-bit numbers (splitmix64): every state is a good one.
#[derive(Clone, Debug)]
pub struct SplitMix(u64);

impl SplitMix {
    /// A stream of its own for every name.
    pub fn named(seed: u64, name: &str) -> Self {
        let mut digest = Digest::default();
        digest.add_plain(name.as_bytes());
        let mut stream = Self(seed ^ digest.number());
        // Seeds that differ in one bit part at once.
        stream.0 = stream.draw();
        stream
    }

    /// A number in `0.0..1.0`.
    pub fn fraction(&mut self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a probability needs no 64 bits")]
        let fraction = (self.draw() >> 11) as f64 / (1_u64 << 53) as f64;
        fraction
    }

    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(chance: &dyn Chance, what_for: Use) -> String {
        chance.hex(what_for, 32)
    }

    #[test]
    fn the_same_seed_draws_the_same_and_streams_do_not_shift_each_other() {
        let (one, two) = (Seeded::new(7), Seeded::new(7));
        draw(&one, Use::Jitter);
        draw(&one, Use::Jitter);
        assert_eq!(draw(&one, Use::Token), draw(&two, Use::Token));
        assert_ne!(draw(&Seeded::new(8), Use::Token), draw(&Seeded::new(7), Use::Token));
        assert_ne!(draw(&Seeded::new(7), Use::AgentId), draw(&Seeded::new(7), Use::Token));
    }
}
