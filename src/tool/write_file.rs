//! `write_file`: all of a file, new or in the place of an old one.

use std::io;

use schemars::JsonSchema;
use serde::Deserialize;

use super::edit::in_shape_of;
use super::edit::save::{self, Target};
use super::error::{FileError, Given};
use super::place::{Parents, Spot};
use super::seen::Stamp;
use super::text::counted;
use super::workplace::Site;
use super::{Effect, OnFiles, Wanted, change};
use crate::policy::Side;
use crate::world::Kind;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WriteFile {
    /// The file, relative to the working directory; its directories are made where they are missing.
    path: String,
    /// All that the file is to hold.
    content: String,
}

impl OnFiles for WriteFile {
    const NAME: &'static str = "write_file";
    const PATHS: Wanted = &[("path", Side::Write)];
    const DESCRIPTION: &'static str = "Writes a whole file, new or in the place of an old one.";
    const EFFECT: Effect = Effect::Changes;

    fn work(self, site: &Site) -> Result<String, FileError> {
        let given = Given::new(&self.path);
        let lines = self.content.lines().count();
        let (done, bytes) = match change::current(site, &given) {
            Ok(before) => {
                let content = in_shape_of(&before.content, &self.content);
                change::put(site, &given, &before, &content)?;
                ("Replaced", content.len())
            }
            Err(FileError::Missing { .. } | FileError::NoParent { .. }) => {
                create(site, &given, &self.content)?;
                ("Created", self.content.len())
            }
            // It has no lines to keep, and nobody can have read it.
            Err(FileError::NotText { .. } | FileError::TooLarge { .. }) => {
                replace_unread(site, &given, &self.content)?;
                ("Replaced", self.content.len())
            }
            Err(error) => return Err(error),
        };
        let (lines, bytes) = (counted(lines, "line", "lines"), counted(bytes, "byte", "bytes"));
        Ok(format!("{done} {given}: {lines}, {bytes}."))
    }
}

/// Makes a file that is not there yet.
pub(super) fn create(site: &Site, given: &Given, content: &str) -> Result<(), FileError> {
    write(site, given, content, |spot| match spot.parent.stat(spot.name()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Target::New),
        // Somebody was faster.
        Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
        Err(error) => Err(error),
    })
}

fn replace_unread(site: &Site, given: &Given, content: &str) -> Result<(), FileError> {
    write(site, given, content, |spot| {
        let stat = spot.parent.stat(spot.name())?;
        match stat.kind {
            Kind::File => Ok(Target::Existing { mode: stat.mode }),
            Kind::Dir => Err(io::ErrorKind::IsADirectory.into()),
            Kind::Link | Kind::Other => Err(io::ErrorKind::InvalidInput.into()),
        }
    })
}

fn write(
    site: &Site,
    given: &Given,
    content: &str,
    target: impl Fn(&Spot) -> io::Result<Target>,
) -> Result<(), FileError> {
    let (stat, resolved) = site.writing(given, Parents::Create, |spot| {
        let (parent, content) = (spot.parent.as_ref(), content.as_bytes());
        save::replace(parent, site.chance(), &spot.name, target(spot)?, content)?;
        Ok((parent.stat(spot.name())?, spot.resolved.clone()))
    })?;
    site.seen().note(&resolved, Stamp::of(&stat, content.as_bytes()));
    Ok(())
}
