//! `copy_file`: a second file with the same content and mode.

use schemars::JsonSchema;
use serde::Deserialize;

use super::edit::save::{self, Overwrite};
use super::error::{FileError, Given};
use super::place::Parents;
use super::text::counted;
use super::workplace::Site;
use super::{Effect, OnFiles, Wanted, change};
use crate::policy::Side;
use crate::world::Access;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CopyFile {
    /// The file, relative to the working directory.
    source: String,
    /// The new file, with its name.
    destination: String,
    /// Replace a file that is there.
    #[serde(default)]
    overwrite: bool,
}

impl OnFiles for CopyFile {
    const NAME: &'static str = "copy_file";
    const PATHS: Wanted = &[("source", Side::Read), ("destination", Side::Write)];
    const DESCRIPTION: &'static str = "Copies a file.";
    const EFFECT: Effect = Effect::Changes;

    fn work(self, site: &Site) -> Result<String, FileError> {
        let (source, destination) = (Given::new(&self.source), Given::new(&self.destination));
        let (from, origin) = site.reading(&source, |spot| {
            Ok((spot.parent.open(spot.name(), Access::Read)?, spot.resolved.clone()))
        })?;
        let overwrite =
            if self.overwrite { change::replacing(site, &destination)? } else { Overwrite::Refuse };
        let copied = site.writing(&destination, Parents::Create, |spot| {
            if spot.resolved == origin {
                return Ok(None);
            }
            let parent = spot.parent.as_ref();
            let len = save::copy(from.as_ref(), parent, site.chance(), &spot.name, overwrite)?;
            Ok(Some((len, spot.resolved.clone())))
        })?;
        let Some((len, resolved)) = copied else {
            return Err(FileError::Same { given: source, destination });
        };
        site.seen().forget(&resolved);
        let bytes = counted(len, "byte", "bytes");
        Ok(format!("Copied {source} to {destination}: {bytes}."))
    }
}
