//! `rename`: a file or directory under another name, perhaps elsewhere.

use std::io;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use super::edit::save::Overwrite;
use super::error::{FileError, Given};
use super::place::Parents;
use super::workplace::Site;
use super::{Effect, OnFiles, Wanted, change};
use crate::policy::Side;
use crate::world::Kind;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Rename {
    /// The file or directory, relative to the working directory.
    source: String,
    /// Its new path, with its name.
    destination: String,
    /// Replace a file that is there.
    #[serde(default)]
    overwrite: bool,
}

impl OnFiles for Rename {
    const NAME: &'static str = "rename";
    const PATHS: Wanted = &[("source", Side::Write), ("destination", Side::Write)];
    const DESCRIPTION: &'static str = "Renames or moves a file or directory.";
    const EFFECT: Effect = Effect::Changes;

    fn work(self, site: &Site) -> Result<String, FileError> {
        let (source, destination) = (Given::new(&self.source), Given::new(&self.destination));
        // Where it was it is gone afterwards: that is a change too.
        let (from, from_dir) = site.writing(&source, Parents::MustExist, |spot| {
            spot.parent.stat(spot.name())?;
            Ok((spot.resolved.clone(), Arc::clone(&spot.parent)))
        })?;
        if site.cwd().starts_with(&from) {
            return Err(FileError::WorkingDir { given: source });
        }
        if site.has_closed_within(&from) {
            return Err(FileError::Closed { given: source });
        }
        let overwrite =
            if self.overwrite { change::replacing(site, &destination)? } else { Overwrite::Refuse };
        let to = site.writing(&destination, Parents::Create, |spot| {
            if spot.resolved.starts_with(&from) {
                return Ok(None);
            }
            match (spot.parent.stat(spot.name()), overwrite) {
                (Ok(_), Overwrite::Refuse) => return Err(io::ErrorKind::AlreadyExists.into()),
                (Ok(stat), Overwrite::Replace) if stat.kind == Kind::Dir => {
                    return Err(io::ErrorKind::IsADirectory.into());
                }
                (Ok(_) | Err(_), _) => {}
            }
            site.rename(&from, &spot.resolved)?;
            spot.parent.sync()?;
            Ok(Some(spot.resolved.clone()))
        })?;
        let Some(to) = to else {
            return Err(FileError::Same { given: source, destination });
        };
        // Where it was it is gone for good only once that is on disk too.
        from_dir.sync().map_err(|error| FileError::of(&source, &error))?;
        site.seen().rename(&from, &to);
        Ok(format!("Renamed {source} to {destination}."))
    }
}
