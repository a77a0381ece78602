//! `glob`: the paths below a directory that a pattern matches.

use schemars::JsonSchema;
use serde::Deserialize;

use super::error::{FileError, Given};
use super::list_directory::{here, mark};
use super::pattern::{Filter, PathGlob};
use super::text::{Full, Sheet, counted, shown_below};
use super::walk::{Found, Step, Top, Walked, walk};
use super::workplace::Site;
use super::{OnFiles, Wanted};
use crate::limits::{
    GLOB_EXCLUDES_MAX, GLOB_RESULTS, RESULT_LINES_MAX, WALK_DEPTH_MAX, WALK_ENTRIES_MAX,
};
use crate::policy::Side;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Glob {
    /// For the paths below `path`: `*` and `?` within a name, `**` over directories, `{a,b}`, `[a-z]`.
    pattern: String,
    /// Where to look; the working directory by default.
    #[serde(default = "here")]
    path: String,
    #[serde(default = "some")]
    #[schemars(range(min = 1, max = RESULT_LINES_MAX))]
    max_results: u64,
    /// Patterns of what to leave out, with all below it: names, or paths if they have a /.
    #[serde(default)]
    #[schemars(length(max = GLOB_EXCLUDES_MAX))]
    exclude: Vec<String>,
}

fn some() -> u64 {
    GLOB_RESULTS
}

impl OnFiles for Glob {
    const NAME: &'static str = "glob";
    const PATHS: Wanted = &[("path", Side::Read)];
    const DESCRIPTION: &'static str = "Finds files and directories by a pattern such as **/*.rs, \
                                       sorted. Directories end in /, links in @ and are not \
                                       followed.";

    fn work(self, site: &Site) -> Result<String, FileError> {
        let pattern = PathGlob::parse("pattern", &self.pattern)?;
        let exclude = self.exclude.iter().map(|text| Filter::parse("exclude", text));
        let exclude: Vec<Filter> = exclude.collect::<Result<_, _>>()?;
        let given = Given::new(&self.path);
        let (dir, resolved, entries) = site.reading(&given, |spot| {
            let dir = spot.parent.dir(spot.name())?;
            dir.list().map(|entries| (dir, spot.resolved.clone(), entries))
        })?;
        let top = Top { dir: dir.as_ref(), resolved: &resolved };
        let (mut sheet, mut left) = (Sheet::default(), self.max_results);
        let mut has_more = false;
        let walked = walk(site, top, entries, |Found { path, kind }| {
            if exclude.iter().any(|filter| filter.is_match(path)) {
                return Ok(Step::Pass);
            }
            if pattern.is_match(path) {
                let line = format!("{}{}", shown_below(&given, path), mark(*kind));
                if left == 0 || sheet.line(&line) == Err(Full) {
                    has_more = true;
                    return Ok(Step::Stop);
                }
                left -= 1;
            }
            Ok(Step::Enter)
        })?;
        let mut notes = Vec::new();
        if sheet.is_empty() {
            notes.push("Nothing matches.".to_owned());
        }
        if has_more {
            notes.push("More paths match. Narrow the pattern, or raise max_results.".to_owned());
        }
        notes.extend(left_out(&walked));
        Ok(sheet.end(&notes))
    }
}

/// Notes about what a walk did not look at.
pub(super) fn left_out(walked: &Walked) -> Vec<String> {
    let mut notes = Vec::new();
    let directories = |count| counted(count, "directory", "directories");
    if !walked.unreadable.is_empty() {
        notes.push(format!("{} could not be read.", directories(walked.unreadable.len())));
    }
    if !walked.too_deep.is_empty() {
        let count = directories(walked.too_deep.len());
        notes.push(format!("{count} more than {WALK_DEPTH_MAX} levels deep: not looked into."));
    }
    if walked.is_cut {
        notes.push(format!("Stopped after {WALK_ENTRIES_MAX} names. Begin at a deeper path."));
    }
    notes
}
