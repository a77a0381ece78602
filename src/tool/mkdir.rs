//! `mkdir`: a directory, with those above it.

use std::io;

use schemars::JsonSchema;
use serde::Deserialize;

use super::error::{FileError, Given};
use super::place::Parents;
use super::workplace::Site;
use super::{Effect, OnFiles, Wanted};
use crate::policy::Side;
use crate::world::Kind;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Mkdir {
    /// The directory, relative to the working directory; those above it are made where they are missing.
    path: String,
}

enum Made {
    Now,
    Before,
}

impl OnFiles for Mkdir {
    const NAME: &'static str = "mkdir";
    const PATHS: Wanted = &[("path", Side::Write)];
    const DESCRIPTION: &'static str = "Makes a directory.";
    const EFFECT: Effect = Effect::Changes;

    fn work(self, site: &Site) -> Result<String, FileError> {
        let given = Given::new(&self.path);
        let made = site.writing(&given, Parents::Create, |spot| {
            let made = spot.parent.make_dir(spot.name(), 0o777);
            // The working directory itself has no name here.
            match (made, spot.parent.stat(spot.name())) {
                (Ok(()), _) => {
                    spot.parent.sync()?;
                    Ok(Made::Now)
                }
                (Err(_), Ok(stat)) if stat.kind == Kind::Dir => Ok(Made::Before),
                (Err(_), Ok(_)) => Err(io::ErrorKind::NotADirectory.into()),
                (Err(error), Err(_)) => Err(error),
            }
        })?;
        Ok(match made {
            Made::Now => format!("Made {given}."),
            Made::Before => format!("{given} is there already."),
        })
    }
}
