//! The simulated disk keeps the contracts of the real one: files and databases, by the same suites.

use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use nexus3::world::{World, real};
use nexus3_sim::conform;
use nexus3_sim::disk::{Databases, Disk, Item};

/// The real machine with a simulated disk that has an empty directory at [`SCRATCH`].
fn world() -> World {
    let mut world = real::world().expect("the machine opens");
    let disk = Disk::new(|| Timestamp::UNIX_EPOCH);
    disk.put(Path::new(SCRATCH), Item::Dir { mode: 0o700 }).expect("there is nothing yet");
    let mut draws = 0;
    let chance = move || {
        draws += 1;
        draws
    };
    world.sqlite = Arc::new(Databases::new(disk.clone(), chance));
    world.fs = Arc::new(disk);
    world
}

const SCRATCH: &str = "/home/scratch";

#[tokio::test]
async fn the_simulated_disk_keeps_the_contract_of_fs() {
    conform::fs(&world(), Path::new(SCRATCH)).await;
}

#[tokio::test]
async fn the_simulated_disk_keeps_the_contract_of_sqlite() {
    conform::sqlite(&world(), Path::new(SCRATCH)).await;
}
