//! What a file was when it was read, to see whether somebody changed it since. For one process: the
//! hash means nothing to another, and is never stored.

use std::hash::{DefaultHasher, Hasher};

use jiff::Timestamp;

use crate::world::Stat;

#[derive(Clone, Copy, Debug)]
pub struct Stamp {
    pub len: u64,
    /// For messages. It does not decide: the clock may stand still between two writes, and a write
    /// of the same bytes takes nothing from anybody.
    pub modified: Timestamp,
    hash: u64,
}

impl Stamp {
    /// The stamp of a file whose whole content was read, and its `stat` from before the reading.
    pub fn of(stat: &Stat, content: &[u8]) -> Self {
        let mut hasher = DefaultHasher::new();
        hasher.write(content);
        Self { len: content.len() as u64, modified: stat.modified, hash: hasher.finish() }
    }

    /// Whether the file has the same content `now`.
    pub fn unchanged(&self, now: &Self) -> bool {
        self.len == now.len && self.hash == now.hash
    }
}
