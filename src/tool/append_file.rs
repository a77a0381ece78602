//! `append_file`: a text at the end of a file.

use schemars::JsonSchema;
use serde::Deserialize;

use super::edit::save;
use super::error::{FileError, Given};
use super::place::Parents;
use super::text::{Text, counted};
use super::workplace::Site;
use super::{Effect, OnFiles, Wanted};
use crate::policy::Side;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AppendFile {
    /// The file, relative to the working directory; it is made where there is none.
    path: String,
    /// What comes after all that the file holds.
    content: String,
}

impl OnFiles for AppendFile {
    const NAME: &'static str = "append_file";
    const PATHS: Wanted = &[("path", Side::Write)];
    const DESCRIPTION: &'static str = "Adds a text at the end of a file.";
    const EFFECT: Effect = Effect::Changes;

    fn work(self, site: &Site) -> Result<String, FileError> {
        let given = Given::new(&self.path);
        let knew = match Text::look(site, &given) {
            Ok((text, stamp)) => site.seen().knows(&text.resolved, &stamp),
            // Whatever it is, the agent has not read it.
            Err(_) => false,
        };
        let len = site.writing(&given, Parents::Create, |spot| {
            save::append(spot.parent.as_ref(), site.chance(), &spot.name, &self.content)
        })?;
        if knew {
            // It knows what it added, and so all of the file.
            Text::read(site, &given)?;
        }
        let added = counted(self.content.len(), "byte", "bytes");
        Ok(format!("Added {added} to {given}, which now has {len}."))
    }
}
