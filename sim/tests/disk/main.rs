//! The simulated disk: that it answers as a real one, forgets as a real one, and thereby catches
//! programs that trust it too much.

mod conformance; // the same suites as the real disk
mod differential; // random operations against the real disk
mod model; // random operations against a map
mod permissions; // what modes allow
mod crashes; // what a power cut takes, and what it does not
mod faults; // what goes wrong with the power on
mod write_ahead; // a small program, right and wrong, at every crash point
mod sqlite; // real SQLite at every crash point

use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use nexus3::world::{Dir, Fs};
use nexus3_sim::disk::{Disk, Item};

/// A disk with a directory `/d` on it.
fn disk() -> Disk {
    let disk = Disk::new(|| Timestamp::UNIX_EPOCH);
    disk.put(Path::new("/d"), Item::Dir { mode: 0o755 }).expect("there is nothing yet");
    disk
}

fn dir(disk: &Disk) -> Arc<dyn Dir> {
    disk.dir(Path::new("/d")).expect("it is there from the start")
}

fn p(path: &str) -> &Path {
    Path::new(path)
}

/// Random numbers from a seed (`SplitMix64`).
fn chance(seed: u64) -> impl FnMut() -> u64 + Send + 'static {
    let mut state = seed;
    move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
