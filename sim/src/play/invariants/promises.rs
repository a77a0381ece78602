//! What a server can promise of what it told, given what its scenario does to the disk below it.

use std::path::{Path, PathBuf};

use crate::machine::HOME;
use crate::scenario::{Action, Fault, FaultKind, Scenario};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Promises {
    /// What was told is there.
    #[default]
    All,
    /// The file asks for less than synced commits, or the disk lies about them: the last that a server
    /// told may be lost with its machine, and the next one goes on from before it.
    NotTheLast,
    /// The file changes the server's own files behind its back: what was in them may be gone.
    NotWhatWasChanged,
}

impl Promises {
    pub fn of(scenario: &Scenario) -> Self {
        let lies = |fault: &Fault| fault.kind == FaultKind::FsyncLies;
        let sync = scenario.config.get("storage").and_then(|storage| storage.get("sync"));
        let asks_for_less = sync.is_some_and(|sync| sync == "normal");
        if asks_for_less || scenario.faults.iter().any(lies) {
            Self::NotTheLast
        } else if changes(scenario, Path::new(HOME)) {
            Self::NotWhatWasChanged
        } else {
            Self::All
        }
    }
}

/// Whether a scenario changes files below this directory by itself.
pub fn changes(scenario: &Scenario, below: &Path) -> bool {
    changed(scenario).any(|path| path.starts_with(below))
}

/// The files that a scenario changes by itself.
pub fn changed(scenario: &Scenario) -> impl Iterator<Item = &PathBuf> {
    let by_steps = scenario.steps.iter().filter_map(|step| match &step.action {
        Action::Files(files) => Some(files),
        _ => None,
    });
    let by_faults = scenario.faults.iter().filter_map(|fault| match &fault.kind {
        FaultKind::Files(files) => Some(files),
        _ => None,
    });
    by_steps.chain(by_faults).flat_map(|files| files.keys())
}
