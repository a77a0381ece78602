//! The operating system's randomness, the same source for every use. Never a generator of our own:
//! tokens are drawn from it.

use crate::world::{Chance, Use};

pub(super) struct SystemChance;

impl Chance for SystemChance {
    fn fill(&self, _what_for: Use, bytes: &mut [u8]) {
        // Going on with predictable tokens would be worse than ending here.
        getrandom::fill(bytes).expect("the system has a random source");
    }
}
