//! What a power cut does to what was not synced. The draws come from the owner of the disk: the same
//! draws leave the same disk.

/// The owner's random numbers, evenly distributed.
pub type Chance<'a> = dyn FnMut() -> u64 + 'a;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrashMode {
    /// Nothing survives but what was synced.
    LoseAll,
    /// The cache reached the disk in the last moment.
    KeepAll,
    /// Each unsynced write is lost, kept, or torn between sectors, so writes are reordered too.
    /// Changes of names survive as a prefix of their order, as in a journal; a rename is one change.
    Torn,
}

impl CrashMode {
    pub const ALL: [Self; 3] = [Self::LoseAll, Self::KeepAll, Self::Torn];
}

/// Draws a number below `bound`.
pub(super) fn below(chance: &mut Chance<'_>, bound: u64) -> u64 {
    chance() % bound
}
