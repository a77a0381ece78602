//! Randomness, one stream per use, so that a new use does not shift what the others draw.

/// What a random number is for. Each use draws from a stream of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Use {
    AgentId,
    RequestId,
    Token,
    ErrorId,
    Jitter,
    TempName,
    ConfirmId,
}

pub trait Chance: Send + Sync {
    /// Fills `bytes` with numbers nobody outside can predict (in the simulation: only the seed's owner).
    fn fill(&self, what_for: Use, bytes: &mut [u8]);
}

impl dyn Chance + '_ {
    /// Returns `digits` lower-case hexadecimal characters.
    pub fn hex(&self, what_for: Use, digits: usize) -> String {
        let mut bytes = vec![0; digits.div_ceil(2)];
        self.fill(what_for, &mut bytes);
        let mut text: String = bytes
            .iter()
            .flat_map(|byte| [byte >> 4, byte & 15])
            .map(|digit| char::from_digit(digit.into(), 16).expect("four bits are one hex digit"))
            .collect();
        text.truncate(digits);
        text
    }

    /// Returns a number in `0.0..1.0`.
    pub fn fraction(&self, what_for: Use) -> f64 {
        let mut bytes = [0; 4];
        self.fill(what_for, &mut bytes);
        f64::from(u32::from_le_bytes(bytes)) / (f64::from(u32::MAX) + 1.0)
    }
}
