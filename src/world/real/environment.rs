//! What the process was started with. Never changes it.

use std::path::PathBuf;

use crate::world::Environment;

pub(super) struct ProcessEnvironment;

impl Environment for ProcessEnvironment {
    fn var(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn vars(&self) -> Vec<(String, String)> {
        let mut vars: Vec<_> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        vars.sort();
        vars
    }

    fn current_dir(&self) -> std::io::Result<PathBuf> {
        std::env::current_dir()
    }

    fn home_dir(&self) -> Option<PathBuf> {
        // An empty or relative HOME would make every path below it depend on the working directory.
        std::env::home_dir().filter(|home| home.is_absolute())
    }

    fn os(&self) -> &'static str {
        std::env::consts::OS
    }

    fn process_id(&self) -> u32 {
        std::process::id()
    }
}
