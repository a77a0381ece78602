//! A number that stands for many bytes: the same in every process, on every machine and with every
//! release. The standard library's hashers promise none of that.

/// FNV-1a.
#[derive(Clone, Debug)]
pub struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    /// Adds bytes and how many they are, so that no two lists of parts run together.
    pub fn add(&mut self, bytes: &[u8]) {
        self.add_plain(&(bytes.len() as u64).to_le_bytes());
        self.add_plain(bytes);
    }

    /// Adds bytes as they are.
    pub fn add_plain(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    pub fn number(&self) -> u64 {
        self.0
    }
}
