//! `edit_file_batch`: several texts of a file are replaced, all of them or none.

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
pub(super) struct EditFileBatch {
    /// The file, relative to the working directory.
    path: String,
    /// The edits, made one after the other.
    edits: Vec<Edit>,
}

impl OnFiles for EditFileBatch {
    const NAME: &'static str = "edit_file_batch";
    const PATHS: Wanted = &[("path", Side::Write)];
    const DESCRIPTION: &'static str =
        "Replaces several exact texts in a file, one after the other: all of them or none.";
    const EFFECT: Effect = Effect::Changes;

    fn work(self, site: &Site) -> Result<String, FileError> {
        let edits = self.edits;
        change::edit(site, &Given::new(&self.path), |text| edit::edit_file_batch(text, &edits))
    }
}
