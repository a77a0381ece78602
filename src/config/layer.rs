//! The layers of a configuration, from what is built in to the command line's flags, and what they
//! are together. Files and variables come from the world; what they mean is for the readers.

use std::fmt;
use std::path::Path;

use super::words::shown_key;
use super::{Config, ConfigError, Source, environment, load};
use crate::world::{Fs, World};

/// One of the texts that a configuration is made of.
#[derive(Clone, Debug)]
pub(super) struct Layer {
    pub(super) source: Source,
    pub(super) form: Form,
}

#[derive(Clone, Debug)]
pub(super) enum Form {
    /// An object with keys: JSON with comments.
    File,
    /// The value of one key: JSON, else text.
    Value { keys: Vec<String> },
}

/// A key that a flag of the command line sets.
#[derive(Clone, Debug)]
pub struct Flag {
    /// As it is written, with its dashes.
    pub name: &'static str,
    /// The path of the key.
    pub keys: &'static [&'static str],
    pub value: String,
}

/// Something that was left out of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    UnknownVariable { name: String, part: String, hint: String },
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownVariable { name, part, hint } => write!(
                f,
                "ignored the environment variable {name}: there is no key `{}` ({hint})",
                shown_key(part)
            ),
        }
    }
}

/// A configuration and how it came about.
#[derive(Clone, Debug)]
pub struct Loaded {
    pub config: Config,
    /// What was left out of it, a line each.
    pub notices: Vec<Notice>,
}

/// The file at `given`, which must be there; else the home's own, if there is one.
pub fn base(fs: &dyn Fs, home: &Path, given: Option<&Path>) -> Result<Option<Source>, ConfigError> {
    match given {
        Some(path) => Source::read(fs, path).map(Some),
        None => match Source::read(fs, &home.join("config.json")) {
            Err(ConfigError::Missing { .. }) => Ok(None),
            read => read.map(Some),
        },
    }
}

/// The configuration of a server that is started in this world: the base, what the environment says,
/// and the flags, each over those before.
pub fn gather(
    world: &World,
    base: Option<Source>,
    flags: Vec<Flag>,
) -> Result<Loaded, ConfigError> {
    let mut notices = Vec::new();
    let file = |source| Layer { source, form: Form::File };
    let mut layers: Vec<Layer> = base.into_iter().map(file).collect();
    layers.extend(environment::layers(world.environment.as_ref(), &mut notices));
    layers.extend(flags.into_iter().map(|Flag { name, keys, value }| Layer {
        source: Source { name: name.to_owned(), text: value },
        form: Form::Value { keys: keys.iter().map(|&key| key.to_owned()).collect() },
    }));
    Ok(Loaded { config: load::read(&layers)?, notices })
}

#[cfg(test)]
#[path = "layer_tests.rs"]
mod tests;
