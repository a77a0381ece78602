//! `edit_file`: one text of a file is replaced by another.

use schemars::JsonSchema;
use serde::Deserialize;

use super::change;
use super::edit::{self, Edit};
use super::error::{FileError, Given};
use super::workplace::Site;
use super::{Effect, OnFiles, Wanted};
use crate::policy::Side;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EditFile {
    /// The file, relative to the working directory.
    path: String,
    /// The text to replace, exactly as it is in the file, indentation included.
    old_string: String,
    /// What takes its place.
    new_string: String,
    /// Replace every occurrence; otherwise there must be exactly one.
    #[serde(default)]
    replace_all: bool,
}

impl OnFiles for EditFile {
    const NAME: &'static str = "edit_file";
    const PATHS: Wanted = &[("path", Side::Write)];
    const DESCRIPTION: &'static str = "Replaces an exact text in a file.";
    const EFFECT: Effect = Effect::Changes;

    fn work(self, site: &Site) -> Result<String, FileError> {
        let Self { path, old_string, new_string, replace_all } = self;
        let wanted = Edit { old_string, new_string, replace_all };
        change::edit(site, &Given::new(&path), |content| edit::edit_file(content, &wanted))
    }
}
