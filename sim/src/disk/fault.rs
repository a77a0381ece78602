//! How a disk misbehaves while it has power, and the errors it then gives: the system's own.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// No new file and no byte beyond a file's last block: `StorageFull`. A write takes what fits
    /// before it fails; overwriting, renaming and removing work.
    Full,
    /// As after the system found an error: nothing can be changed (`ReadOnlyFilesystem`), not even
    /// through handles opened before.
    ReadOnly,
    /// Every operation fails with the system's I/O error.
    IoError,
    /// A sync fails with the I/O error and forgets what it should have made durable, as Linux does:
    /// it reads as made, the next sync succeeds, and a power cut loses it.
    FsyncError,
    /// A sync succeeds and makes nothing durable. What it should have is left for an honest one.
    FsyncLies,
    /// A write takes the first half of its bytes and fails with the I/O error.
    TornWrite,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switch {
    Off,
    /// Strikes the next operation it concerns, and no other.
    Once,
    On,
}

#[derive(Debug, Default)]
pub(super) struct Faults {
    switches: BTreeMap<Fault, Switch>,
    /// Those that were to strike once, and have, since somebody asked.
    pub(super) struck: BTreeSet<Fault>,
}

impl Faults {
    pub(super) fn set(&mut self, fault: Fault, switch: Switch) {
        // One that is on strikes the next operation as well, and goes on.
        let is_on = self.switches.get(&fault) == Some(&Switch::On);
        if !(is_on && switch == Switch::Once) {
            self.switches.insert(fault, switch);
        }
    }

    /// Whether the fault strikes the operation at hand, which it concerns.
    pub(super) fn strikes(&mut self, fault: Fault) -> bool {
        match self.switches.get(&fault) {
            None | Some(Switch::Off) => false,
            Some(Switch::Once) => {
                self.switches.insert(fault, Switch::Off);
                self.struck.insert(fault);
                true
            }
            Some(Switch::On) => true,
        }
    }
}

/// Errors that `io::ErrorKind` has no stable word for, by the numbers the real disk gives.
#[derive(Clone, Copy, Debug)]
pub(super) enum Errno {
    Io = 5,
    BadHandle = 9,
    Loop = 40,
}

impl From<Errno> for io::Error {
    fn from(errno: Errno) -> Self {
        Self::from_raw_os_error(errno as i32)
    }
}

/// The disk has no power, or the handle is from before a crash. Only what is about to be dropped can
/// see it, so it never is the answer to anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone;

impl Gone {
    /// Whether `error` says so.
    pub fn is(error: &io::Error) -> bool {
        matches!(error.get_ref(), Some(inner) if inner.is::<Self>())
    }
}

impl std::fmt::Display for Gone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the disk has no power, or had none since this was opened")
    }
}

impl std::error::Error for Gone {}

impl From<Gone> for io::Error {
    fn from(gone: Gone) -> Self {
        Self::other(gone)
    }
}
