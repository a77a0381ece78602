//! Scripted models: answers written down beforehand, with their faults. The same entries are read
//! by the `script` provider and by the simulation's model host.
//!
//! The `script` provider is the chat completions wire over a script instead of a socket: what a
//! turn sees of an entry, its faults and their words included, is what it would see over a network,
//! because the same code reads it.

mod entry; // what a file says
mod time; // how times and uses are written
mod file; // a scenario file to a script
mod matching; // which entry answers
mod played; // a script in the place of a network
mod question; // what of a request matters
mod reply; // an entry as bytes and waits
mod view; // what a model is shown, for people

use std::collections::BTreeMap;
use std::sync::Arc;

pub use entry::{After, Ask, Chunks, Entry, Fault, ScriptUsage, Stall, Time, Times};
pub use file::{ScriptFileError, read};
pub use matching::{EntryProblem, Script, ScriptError};
pub use played::LOG_TARGET;
pub use question::{AGENT_HEADER, Delivery, NoQuestion, Question, Wire};
pub use reply::{Answer, Broken, End, Opening, Piece, Reply};
pub use time::TimeError;
pub use view::View;

use self::played::Played;
use super::defaults::completions;
use super::endpoint::{Endpoint, EndpointError};
use super::openai::Completions;
use super::remote::{Remote, Seams};
use crate::config::ProviderConfig;
use crate::world::{Chance, Fs};

/// Nobody is ever asked there.
const BASE_URL: &str = "http://localhost/script";

/// Builds the provider called `name`. All its agents and models share one script.
pub(super) fn provider(
    chance: &Arc<dyn Chance>,
    fs: &dyn Fs,
    name: &str,
    config: &ProviderConfig,
) -> Result<Remote, BuildError> {
    let path = config.script.as_deref().ok_or(BuildError::NoScript)?;
    let script = read(fs, path).map_err(BuildError::File)?;
    over(script, chance, name, config).map_err(BuildError::Endpoint)
}

fn over(
    script: Script,
    chance: &Arc<dyn Chance>,
    name: &str,
    config: &ProviderConfig,
) -> Result<Remote, EndpointError> {
    let http = Arc::new(Played::new(script, aliases(config)));
    let config = ProviderConfig {
        headers: [(AGENT_HEADER.to_owned(), "${agent_id}".into())].into(),
        ..config.clone()
    };
    let endpoint = Endpoint::new(name, &config, completions(BASE_URL, None), None, Arc::default())?;
    let seams = Seams { http, chance: Arc::clone(chance) };
    Ok(Remote::new(seams, endpoint, Arc::new(Completions::of(&config))))
}

pub(super) enum BuildError {
    NoScript,
    File(ScriptFileError),
    Endpoint(EndpointError),
}

/// Which alias a model's id stands for: entries name aliases, requests carry ids. Where several
/// aliases have one id, the first counts.
fn aliases(config: &ProviderConfig) -> BTreeMap<String, String> {
    let mut aliases = BTreeMap::new();
    for (alias, model) in &config.models {
        aliases.entry(model.id.clone()).or_insert_with(|| alias.clone());
    }
    aliases
}

#[cfg(test)]
#[path = "script_tests.rs"]
mod tests;
