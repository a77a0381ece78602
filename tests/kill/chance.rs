//! Draws that a seed fixes: what clients do and when the server dies.

/// `SplitMix64`.
pub struct Chance(u64);

impl Chance {
    /// One of its own for every list of numbers.
    pub fn new(numbers: &[u64]) -> Self {
        let mut chance = Self(0);
        for number in numbers {
            chance.0 ^= number.wrapping_add(0x5851_F42D_4C95_7F2D);
            chance.0 = chance.next();
        }
        chance
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub fn within(&mut self, range: std::ops::Range<u64>) -> u64 {
        range.start + self.below(range.end - range.start)
    }

    pub fn one_of<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        let length = u64::try_from(of.len()).expect("a length fits");
        if length == 0 {
            return None;
        }
        of.get(usize::try_from(self.below(length)).expect("an index fits"))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut value = self.0;
        value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        value ^ (value >> 31)
    }
}
