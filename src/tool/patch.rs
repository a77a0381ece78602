//! `patch`: a unified diff is applied to a file.

use schemars::JsonSchema;
use serde::Deserialize;

use super::edit;
use super::error::{FileError, Given};
use super::workplace::Site;
use super::{Effect, OnFiles, Wanted, change, write_file};
use crate::policy::Side;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Patch {
    /// The file, relative to the working directory; a new one where the diff is against nothing.
    path: String,
    /// A unified diff of this one file.
    diff: String,
    /// Say what would be done, and change nothing.
    #[serde(default)]
    dry_run: bool,
}

impl OnFiles for Patch {
    const NAME: &'static str = "patch";
    const PATHS: Wanted = &[("path", Side::Write)];
    const DESCRIPTION: &'static str = "Applies a unified diff to a file, all of it or nothing.";
    const EFFECT: Effect = Effect::Changes;

    fn work(self, site: &Site) -> Result<String, FileError> {
        let given = Given::new(&self.path);
        let before = match change::current(site, &given) {
            Ok(text) => Some(text),
            Err(FileError::Missing { .. } | FileError::NoParent { .. }) => None,
            Err(error) => return Err(error),
        };
        let content = before.as_ref().map_or("", |text| text.content.as_str());
        let patched = match edit::patch(content, &self.diff) {
            Ok(patched) => patched,
            // A hunk that does not fit nothing is less help than that there is nothing.
            Err(_) if before.is_none() && !self.diff.contains("/dev/null") => {
                return Err(FileError::Missing { given });
            }
            Err(error) => return Err(change::refused(&given, &error)),
        };
        if self.dry_run {
            return Ok(format!("[Nothing was changed: this was a dry run.]\n{}", patched.report));
        }
        match before {
            Some(before) => change::put(site, &given, &before, &patched.content)?,
            None => write_file::create(site, &given, &patched.content)?,
        }
        Ok(format!("Patched {given}. {}", patched.report))
    }
}
