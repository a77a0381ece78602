//! `regex_replace`: what a regular expression matches in a file is replaced.

use schemars::JsonSchema;
use serde::Deserialize;

use super::change;
use super::edit::{self, PatternEdit};
use super::error::{FileError, Given};
use super::workplace::Site;
use super::{Effect, OnFiles, Wanted};
use crate::policy::Side;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RegexReplace {
    /// The file, relative to the working directory.
    path: String,
    /// A regular expression, without look-around and back-references.
    pattern: String,
    /// What takes the place of each match; may refer to groups: `$1`, `${name}`.
    replacement: String,
    /// How many matches to replace, from the first on; all by default.
    #[schemars(range(min = 1))]
    count: Option<usize>,
    #[serde(default)]
    ignore_case: bool,
    /// `^` and `$` match at every line.
    #[serde(default)]
    multiline: bool,
    /// `.` matches line ends too.
    #[serde(default)]
    dotall: bool,
}

impl OnFiles for RegexReplace {
    const NAME: &'static str = "regex_replace";
    const PATHS: Wanted = &[("path", Side::Write)];
    const DESCRIPTION: &'static str = "Replaces what a regular expression matches in a file.";
    const EFFECT: Effect = Effect::Changes;

    fn work(self, site: &Site) -> Result<String, FileError> {
        let Self { path, pattern, replacement, count, ignore_case, multiline, dotall } = self;
        let wanted = PatternEdit { pattern, replacement, count, ignore_case, multiline, dotall };
        let edited = change::edit(site, &Given::new(&path), |content| {
            edit::regex_replace(content, &wanted, || site.check_wanted().is_ok())
        });
        // Where it gave up for that, that is what is told.
        edited.or_else(|error| site.check_wanted().and(Err(error)))
    }
}
