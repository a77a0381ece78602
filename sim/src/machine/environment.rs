//! What a simulated process was started with.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use nexus3::world::Environment;

#[derive(Clone, Debug)]
pub struct Given {
    pub vars: BTreeMap<String, String>,
    pub current_dir: PathBuf,
    pub home_dir: PathBuf,
    pub process_id: u32,
}

impl Environment for Given {
    fn var(&self, name: &str) -> Option<String> {
        self.vars.get(name).cloned()
    }

    fn vars(&self) -> Vec<(String, String)> {
        self.vars.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    fn current_dir(&self) -> io::Result<PathBuf> {
        Ok(self.current_dir.clone())
    }

    fn home_dir(&self) -> Option<PathBuf> {
        Some(self.home_dir.clone())
    }

    fn os(&self) -> &'static str {
        // The same on every machine that simulates.
        "linux"
    }

    fn process_id(&self) -> u32 {
        self.process_id
    }
}
