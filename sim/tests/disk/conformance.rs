//! The simulated disk keeps the contracts of the real one: files and databases, by the same suites.

use std::path::Path;
use std::sync::Arc;

use nexus3::world::{World, real};
use nexus3_sim::conform;
use nexus3_sim::disk::Databases;

use super::{chance, disk};
use crate::sqlite::one_at_a_time;

/// The real machine with a simulated disk.
fn world() -> World {
    let mut world = real::world().expect("the machine opens");
    let disk = disk();
    world.sqlite = Arc::new(Databases::new(disk.clone(), chance(0)));
    world.fs = Arc::new(disk);
    world
}

#[tokio::test]
async fn the_simulated_disk_keeps_the_contract_of_fs() {
    conform::fs(&world(), Path::new("/d")).await;
}

#[test]
fn the_simulated_disk_keeps_the_contract_of_sqlite() {
    let _alone = one_at_a_time();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime starts");
    runtime.block_on(async { conform::sqlite(&world(), Path::new("/d")).await });
}
