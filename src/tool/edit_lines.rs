//! `edit_lines`: lines of a file are replaced, by their numbers.

use schemars::JsonSchema;
use serde::Deserialize;

use super::change;
use super::edit::{self, LinesEdit};
use super::error::{FileError, Given};
use super::workplace::Site;
use super::{Effect, OnFiles, Wanted};
use crate::policy::Side;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EditLines {
    /// The file, relative to the working directory.
    path: String,
    /// The first line to replace, counted from 1; one more than the file has appends.
    #[schemars(range(min = 1))]
    start_line: usize,
    /// The last line to replace; by default the first.
    #[schemars(range(min = 1))]
    end_line: Option<usize>,
    /// The new lines; empty to delete.
    new_content: String,
}

impl OnFiles for EditLines {
    const NAME: &'static str = "edit_lines";
    const PATHS: Wanted = &[("path", Side::Write)];
    const DESCRIPTION: &'static str = "Replaces lines of a file by their numbers.";
    const EFFECT: Effect = Effect::Changes;

    fn work(self, site: &Site) -> Result<String, FileError> {
        let Self { path, start_line, end_line, new_content } = self;
        let wanted = LinesEdit { start_line, end_line, new_content };
        change::edit(site, &Given::new(&path), |content| edit::edit_lines(content, &wanted))
    }
}
