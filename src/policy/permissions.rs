//! One agent's permissions: what it was given, what stands above it, and what that comes to.
//! Pure; each change makes a new value, so that nobody sees half of one.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use super::{Allowances, Level, Preset, Reason, Refusal, Rights, Roots, WriteRule, ceiling};

/// What an agent was given. Those above it may take from this, for as long as they are what they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    pub preset: Arc<Preset>,
    /// Absolute and without links, as all paths here.
    pub cwd: PathBuf,
    /// What a sandboxed agent cannot leave: its working directory when it became one.
    pub root: PathBuf,
    /// Those of the preset, and what was disabled since.
    pub disabled_tools: BTreeSet<String>,
    /// Those of the preset's that were enabled for this agent.
    pub enabled_tools: BTreeSet<String>,
    /// Where a sandboxed agent may write; empty is nowhere.
    pub write_paths: Vec<PathBuf>,
    pub allowances: Allowances,
}

impl Grant {
    pub fn new(preset: Arc<Preset>, cwd: PathBuf, write_paths: Vec<PathBuf>) -> Self {
        Self {
            disabled_tools: preset.disabled_tools.clone(),
            enabled_tools: BTreeSet::new(),
            preset,
            root: cwd.clone(),
            cwd,
            write_paths,
            allowances: Allowances::default(),
        }
    }
}

/// What one agent may do now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permissions {
    grant: Grant,
    ceiling: Option<Arc<Rights>>,
    rights: Arc<Rights>,
}

/// What is to be different.
#[derive(Clone, Debug)]
pub struct Change {
    pub preset: Arc<Preset>,
    pub disable: Vec<String>,
    pub enable: Vec<String>,
}

impl Permissions {
    /// What a grant comes to below `ceiling`, the rights of the agent's parent; nobody below `yolo` may
    /// use what is `closed`.
    pub fn new(grant: Grant, ceiling: Option<Arc<Rights>>, closed: &[PathBuf]) -> Self {
        let rights = Rights::of(&grant, ceiling.as_deref(), closed);
        if let Some(ceiling) = &ceiling {
            // Of a sandboxed parent there is no child: that is refused before.
            assert!(
                rights.is_within(ceiling) || ceiling.level == Level::Sandboxed,
                "no agent may more than its parent"
            );
        }
        Self { grant, ceiling, rights: Arc::new(rights) }
    }

    pub fn grant(&self) -> &Grant {
        &self.grant
    }

    pub fn rights(&self) -> &Arc<Rights> {
        &self.rights
    }

    /// What the parent may do, or could last do where there is none any more.
    pub fn ceiling(&self) -> Option<&Arc<Rights>> {
        self.ceiling.as_ref()
    }

    pub fn level(&self) -> Level {
        self.rights.level
    }

    /// Below which paths the agent may write without asking anybody, but for what is blocked; `None` is
    /// everywhere.
    pub fn write_roots(&self) -> Option<&[PathBuf]> {
        self.rights.writes.paths()
    }

    /// Where a sandboxed agent may write; `None` where that follows from the level.
    pub fn listed_writes(&self) -> Option<&[PathBuf]> {
        match self.level() {
            // As they were given, unless something was taken from them.
            Level::Sandboxed
                if Roots::below(self.grant.write_paths.clone()) == self.rights.writes =>
            {
                Some(&self.grant.write_paths)
            }
            Level::Sandboxed => self.write_roots(),
            Level::Yolo | Level::Trusted => None,
        }
    }

    /// The same agent below another ceiling.
    #[must_use]
    pub fn below(&self, ceiling: Option<Arc<Rights>>, closed: &[PathBuf]) -> Self {
        Self::new(self.grant.clone(), ceiling, closed)
    }

    /// The same agent with something more that somebody allowed it.
    #[must_use]
    pub fn allowing(&self, more: &Allowances) -> Self {
        let mut grant = self.grant.clone();
        grant.allowances.add(more);
        let allowances = match self.level() {
            Level::Sandboxed => Allowances::default(),
            Level::Yolo | Level::Trusted => grant.allowances.clone(),
        };
        let rights = Arc::new(Rights { allowances, ..Rights::clone(&self.rights) });
        Self { grant, ceiling: self.ceiling.clone(), rights }
    }

    /// The same agent in another working directory, which it may use.
    #[must_use]
    pub fn moved(&self, cwd: PathBuf, closed: &[PathBuf]) -> Self {
        let root = match self.level() {
            Level::Sandboxed => self.grant.root.clone(),
            Level::Yolo | Level::Trusted => cwd.clone(),
        };
        let grant = Grant { cwd, root, ..self.grant.clone() };
        Self::new(grant, self.ceiling.clone(), closed)
    }

    /// The same agent with another preset: that first, then what is disabled, then what is enabled,
    /// then the ceiling.
    pub fn changed(&self, change: &Change, closed: &[PathBuf]) -> Result<Self, Refusal> {
        let Change { preset, disable, enable } = change;
        if let Some(ceiling) = &self.ceiling {
            ceiling::level(ceiling, preset)?;
            if let Some(tool) = enable.iter().find(|tool| ceiling.disabled_tools.contains(*tool)) {
                return Err(Refusal {
                    reason: Reason::Ceiling,
                    message: format!("the agent's parent does not have the tool `{tool}`"),
                });
            }
        }
        let mut disabled_tools = preset.disabled_tools.clone();
        disabled_tools.extend(disable.iter().cloned());
        disabled_tools.retain(|tool| !enable.contains(tool));
        let enabled_tools = enable.iter().filter(|tool| preset.disabled_tools.contains(*tool));
        let enabled_tools = enabled_tools.cloned().collect();
        let stays_sandboxed = self.level() == Level::Sandboxed && preset.level == Level::Sandboxed;
        let grant = Grant {
            preset: Arc::clone(preset),
            cwd: self.grant.cwd.clone(),
            root: if stays_sandboxed { self.grant.root.clone() } else { self.grant.cwd.clone() },
            disabled_tools,
            enabled_tools,
            write_paths: match preset.writes {
                WriteRule::ListedInCwd => self.grant.write_paths.clone(),
                WriteRule::ByLevel | WriteRule::Never => Vec::new(),
            },
            allowances: match preset.level {
                Level::Sandboxed => Allowances::default(),
                Level::Yolo | Level::Trusted => self.grant.allowances.clone(),
            },
        };
        Ok(Self::new(grant, self.ceiling.clone(), closed))
    }
}

#[cfg(test)]
#[path = "permissions_tests.rs"]
mod tests;
