//! What the tools that change files have in common: the content an edit begins with is the one the
//! agent knows, and what takes its place is put there whole. It never decides what to write.
//! Changes are made one at a time, so that between reading and writing no other call comes in; whoever
//! else uses the disk may, and what it wrote is then noticed by the agent's next change.

use std::error::Error;
use std::io;

use super::edit::Edited;
use super::edit::save::{self, Overwrite, Target};
use super::error::{FileError, Given};
use super::place::{Parents, Spot};
use super::seen::Stamp;
use super::text::Text;
use super::workplace::Site;
use crate::causes::told;

/// Replaces the content of a file that exists by what `edit` makes of it.
pub(super) fn edit<E: Error + 'static>(
    site: &Site,
    given: &Given,
    edit: impl FnOnce(&str) -> Result<Edited, E>,
) -> Result<String, FileError> {
    let before = current(site, given)?;
    let edited = edit(&before.content).map_err(|error| refused(given, &error))?;
    put(site, given, &before, &edited.content)?;
    Ok(edited.report)
}

/// A file as it is now, if the agent may change it: it is what the agent read, or was never read.
pub(super) fn current(site: &Site, given: &Given) -> Result<Text, FileError> {
    let (text, stamp) = Text::look(site, given)?;
    let known = site.seen().check(&text.resolved, &stamp);
    known.map_err(|stale| FileError::Stale { given: given.clone(), stale })?;
    Ok(text)
}

/// Puts new content in the place of a file's.
pub(super) fn put(
    site: &Site,
    given: &Given,
    before: &Text,
    content: &str,
) -> Result<(), FileError> {
    let target = Target::Existing { mode: before.stat.mode };
    let put = |spot: &Spot| {
        if spot.resolved != before.resolved {
            // The path leads elsewhere than a moment ago: what was read is not what would be lost.
            return Err(io::ErrorKind::Interrupted.into());
        }
        save::replace(spot.parent.as_ref(), site.chance(), &spot.name, target, content.as_bytes())?;
        spot.parent.stat(spot.name())
    };
    let stat = site.writing(given, Parents::MustExist, put)?;
    site.seen().note(&before.resolved, Stamp::of(&stat, content.as_bytes()));
    Ok(())
}

pub(super) fn refused(given: &Given, error: &(dyn Error + 'static)) -> FileError {
    FileError::NotEdited { given: given.clone(), why: told(error) }
}

/// The decision to replace what is at the destination of a copy or a new name: one that would be lost
/// is what the agent knows, or was never read.
pub(super) fn replacing(site: &Site, destination: &Given) -> Result<Overwrite, FileError> {
    match current(site, destination) {
        Ok(_)
        | Err(
            FileError::Missing { .. }
            | FileError::NoParent { .. }
            | FileError::NotText { .. }
            | FileError::TooLarge { .. },
        ) => Ok(Overwrite::Replace),
        Err(error) => Err(error),
    }
}
