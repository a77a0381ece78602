//! Which built-in preset a preset comes from. Pure; what a preset allows is the business of
//! `policy`.

use super::{PermissionsConfig, PresetConfig};
use crate::limits::PRESET_CHAIN_MAX;

/// The presets that every server has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BuiltIn {
    Yolo,
    Trusted,
    Sandboxed,
    Worker,
}

impl BuiltIn {
    pub const ALL: [Self; 4] = [Self::Yolo, Self::Trusted, Self::Sandboxed, Self::Worker];

    pub fn name(self) -> &'static str {
        match self {
            Self::Yolo => "yolo",
            Self::Trusted => "trusted",
            Self::Sandboxed => "sandboxed",
            Self::Worker => "worker",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|preset| preset.name() == name)
    }
}

/// A built-in preset and what the file puts on top of it, in that order.
#[derive(Clone, Debug, PartialEq)]
pub struct Lineage<'a> {
    pub base: BuiltIn,
    pub layers: Vec<&'a PresetConfig>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LineageError {
    #[error("there is no preset `{name}`")]
    Unknown { name: String },
    /// One bound for chains and circles: nobody needs a chain this long.
    #[error("the preset `{name}` extends itself, or stands on more than {PRESET_CHAIN_MAX} others")]
    Endless { name: String },
    #[error("the preset `{name}` is built in and cannot be defined again")]
    BuiltIn { name: String },
}

impl PermissionsConfig {
    /// Every preset that can be named: the built-in ones, then those of the file.
    pub fn preset_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = BuiltIn::ALL.map(BuiltIn::name).to_vec();
        names.extend(self.presets.keys().map(String::as_str));
        names
    }

    /// Follows `extends` down to a built-in preset.
    pub fn lineage(&self, name: &str) -> Result<Lineage<'_>, LineageError> {
        let mut layers = Vec::new();
        let mut current = name;
        loop {
            let layer = self.presets.get(current);
            match (BuiltIn::parse(current), layer) {
                (Some(base), None) => {
                    layers.reverse();
                    return Ok(Lineage { base, layers });
                }
                (Some(_), Some(_)) => {
                    let name = current.to_owned();
                    return Err(LineageError::BuiltIn { name });
                }
                (None, None) => {
                    let name = current.to_owned();
                    return Err(LineageError::Unknown { name });
                }
                (None, Some(_)) if layers.len() > PRESET_CHAIN_MAX => {
                    let name = name.to_owned();
                    return Err(LineageError::Endless { name });
                }
                (None, Some(layer)) => {
                    layers.push(layer);
                    current = &layer.extends;
                }
            }
        }
    }
}
