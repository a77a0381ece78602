//! The presets: the built-in ones as data, the configured ones on top of them.
//! A configured preset takes away from its level, and never adds to it: level and rules are those of
//! the built-in one it comes from.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Level, PolicyError, Roots};
use crate::config::{BuiltIn, Lineage, PermissionsConfig};

/// Whom an agent may send to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SendRule {
    /// Any agent but itself.
    Anyone,
    ParentOnly,
    Nobody,
}

/// What `allowed_write_paths` means at creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WriteRule {
    /// Writing follows the level, and a list has no meaning.
    ByLevel,
    /// Nowhere but in the listed paths, which lie in the working directory.
    ListedInCwd,
    Never,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Preset {
    pub name: String,
    pub description: Option<String>,
    pub level: Level,
    /// Whether it may create children at all; `ceiling` says which.
    pub may_create: bool,
    pub send: SendRule,
    pub writes: WriteRule,
    /// What its agents may use of what their level lets them.
    pub roots: Roots,
    /// What some tools may use instead.
    pub tool_roots: BTreeMap<String, Roots>,
    pub blocked_paths: Vec<PathBuf>,
    pub disabled_tools: BTreeSet<String>,
    pub tool_timeouts: BTreeMap<String, Duration>,
}

impl Preset {
    fn built_in(preset: BuiltIn) -> Self {
        let (level, may_create, send, writes) = match preset {
            BuiltIn::Yolo => (Level::Yolo, true, SendRule::Anyone, WriteRule::ByLevel),
            BuiltIn::Trusted => (Level::Trusted, true, SendRule::Anyone, WriteRule::ByLevel),
            BuiltIn::Sandboxed => {
                (Level::Sandboxed, false, SendRule::ParentOnly, WriteRule::ListedInCwd)
            }
            BuiltIn::Worker => (Level::Sandboxed, false, SendRule::Nobody, WriteRule::Never),
        };
        Self {
            name: preset.name().to_owned(),
            description: None,
            level,
            may_create,
            send,
            writes,
            roots: Roots::anywhere(),
            tool_roots: BTreeMap::new(),
            blocked_paths: Vec::new(),
            disabled_tools: BTreeSet::new(),
            tool_timeouts: BTreeMap::new(),
        }
    }

    fn custom(name: &str, lineage: &Lineage<'_>) -> Result<Self, PolicyError> {
        let mut preset = Self { name: name.to_owned(), ..Self::built_in(lineage.base) };
        for layer in &lineage.layers {
            // A description tells about one preset, not about those that extend it.
            preset.description.clone_from(&layer.description);
            if let Some(paths) = &layer.allowed_paths {
                preset.roots = preset.roots.meet(&Roots::below(paths.clone()));
            }
            preset.blocked_paths.extend(layer.blocked_paths.iter().cloned());
            for (tool, changes) in &layer.tools {
                match changes.enabled {
                    Some(true) => drop(preset.disabled_tools.remove(tool)),
                    Some(false) => drop(preset.disabled_tools.insert(tool.clone())),
                    None => (),
                }
                if let Some(paths) = &changes.allowed_paths {
                    let roots = Roots::below(paths.clone());
                    let before = preset.tool_roots.get(tool);
                    let roots = before.map_or(roots.clone(), |before| before.meet(&roots));
                    preset.tool_roots.insert(tool.clone(), roots);
                }
                if let Some(seconds) = changes.timeout {
                    let timeout = Duration::try_from_secs_f64(seconds);
                    let timeout = timeout.map_err(|_| PolicyError::Timeout {
                        preset: name.to_owned(),
                        tool: tool.clone(),
                    })?;
                    preset.tool_timeouts.insert(tool.clone(), timeout);
                }
            }
        }
        Ok(preset)
    }
}

/// Every preset that can be named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Presets {
    /// In the order in which people are told of them: the built-in ones first.
    presets: Vec<Arc<Preset>>,
    default: Arc<Preset>,
}

impl Presets {
    pub fn new(config: &PermissionsConfig) -> Result<Self, PolicyError> {
        let mut presets: Vec<_> =
            BuiltIn::ALL.map(|preset| Arc::new(Preset::built_in(preset))).to_vec();
        for name in config.presets.keys() {
            let lineage = config
                .lineage(name)
                .map_err(|source| PolicyError::Preset { name: name.clone(), source })?;
            presets.push(Arc::new(Preset::custom(name, &lineage)?));
        }
        let default = find(&presets, &config.default_preset)?.clone();
        Ok(Self { presets, default })
    }

    pub fn get(&self, name: &str) -> Result<&Arc<Preset>, PolicyError> {
        find(&self.presets, name)
    }

    /// The preset of an agent whose creator names none.
    pub fn default_preset(&self) -> &Arc<Preset> {
        &self.default
    }

    /// Refuses presets that name tools there are not: a misspelt ban would ban nothing.
    pub fn check_tools(&self, known: &[&str]) -> Result<(), PolicyError> {
        for preset in &self.presets {
            let named = preset.disabled_tools.iter().chain(preset.tool_timeouts.keys());
            let mut named = named.chain(preset.tool_roots.keys());
            if let Some(tool) =
                named.find(|tool| !known.contains(&tool.as_str()) && !tool.starts_with(OUTSIDE))
            {
                return Err(PolicyError::UnknownTool {
                    preset: preset.name.clone(),
                    tool: tool.clone(),
                    known: known.join(", "),
                });
            }
        }
        Ok(())
    }
}

/// How the names of tools begin that come and go with their MCP servers.
const OUTSIDE: &str = "mcp__";

fn find<'a>(presets: &'a [Arc<Preset>], name: &str) -> Result<&'a Arc<Preset>, PolicyError> {
    presets.iter().find(|preset| preset.name == name).ok_or_else(|| PolicyError::UnknownPreset {
        name: name.to_owned(),
        known: presets.iter().map(|preset| preset.name.clone()).collect(),
    })
}

#[cfg(test)]
#[path = "preset_tests.rs"]
mod tests;
