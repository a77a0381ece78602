//! A whole simulated machine: all its parts as the world that a server believes in.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use nexus3::world::{Net, Programs, World};

use super::{Given, Inline, Raised, Seeded, SplitMix, VirtualClock};
use crate::disk::{Databases, Disk};
use crate::http_client::HttpClient;

/// Where the server keeps its own files.
pub const HOME: &str = "/home/nexus/.nexus3";
/// Where the server is started.
pub const PROJECT: &str = "/project";
const USER: &str = "/home/nexus";

/// The parts that differ from machine to machine, and from process to process.
pub struct Machine {
    pub net: Arc<dyn Net>,
    pub clock: VirtualClock,
    pub disk: Disk,
    pub programs: Arc<dyn Programs>,
    pub signals: Arc<Raised>,
    pub vars: BTreeMap<String, String>,
}

impl std::fmt::Debug for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Machine")
    }
}

impl Machine {
    /// The world of one process on it, which draws all its chance from `seed`.
    pub fn world(self, seed: u64) -> World {
        self.world_in(Path::new(PROJECT), seed)
    }

    /// The same of a process that is started in another directory.
    pub fn world_in(self, current_dir: &Path, seed: u64) -> World {
        let mut salts = SplitMix::named(seed, "sqlite");
        World {
            clock: Arc::new(self.clock),
            chance: Arc::new(Seeded::new(seed)),
            http: Arc::new(HttpClient::new(Arc::clone(&self.net))),
            net: self.net,
            fs: Arc::new(self.disk.clone()),
            blocking: Arc::new(Inline),
            sqlite: Arc::new(Databases::new(self.disk, move || salts.draw())),
            programs: self.programs,
            signals: self.signals,
            environment: Arc::new(Given {
                vars: self.vars,
                current_dir: current_dir.to_owned(),
                home_dir: Path::new(USER).to_owned(),
                process_id: 1,
            }),
        }
    }
}
