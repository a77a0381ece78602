//! `tail`: the last lines of a text file.

use schemars::JsonSchema;
use serde::Deserialize;

use super::error::{FileError, Given};
use super::text::{Sheet, Text};
use super::workplace::Site;
use super::{OnFiles, Wanted};
use crate::limits::{RESULT_LINES_MAX, TAIL_LINES};
use crate::policy::Side;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Tail {
    /// The file, relative to the working directory.
    path: String,
    /// How many lines.
    #[serde(default = "some")]
    #[schemars(range(min = 1))]
    lines: u64,
}

fn some() -> u64 {
    TAIL_LINES
}

impl OnFiles for Tail {
    const NAME: &'static str = "tail";
    const PATHS: Wanted = &[("path", Side::Read)];
    const DESCRIPTION: &'static str = "Reads the last lines of a UTF-8 text file of up to 10 MiB.";

    fn work(self, site: &Site) -> Result<String, FileError> {
        let text = Text::read(site, &Given::new(&self.path))?;
        let total = text.lines().count();
        if total == 0 {
            return Ok(Sheet::default().end(&["The file is empty.".to_owned()]));
        }
        let wanted = usize::try_from(self.lines).unwrap_or(usize::MAX).min(total);
        let (start, count) = fitting_end(&text, wanted);
        let mut result = text.content[start..].to_owned();
        if count == 0 {
            let note = format!("The end of line {total}, which is too long to be shown whole.");
            return Ok(noted(&note, &result));
        }
        if count < wanted {
            let first = total - count + 1;
            let note = format!(
                "Lines {first} to {total} of {total}; the others you asked for do not fit. \
                 read_file shows them."
            );
            result = noted(&note, &result);
        }
        Ok(result)
    }
}

fn noted(note: &str, result: &str) -> String {
    format!("[{note}]\n{result}")
}

/// Where the last lines begin that fit into a result, and how many they are: at most `wanted`, and
/// none where not even the last one fits.
fn fitting_end(text: &Text, wanted: usize) -> (usize, usize) {
    let (mut start, mut count) = (text.content.len(), 0);
    for line in text.lines().rev().take(wanted.min(RESULT_LINES_MAX)) {
        if text.content.len() - (start - line.len()) > Sheet::BYTES_MAX {
            break;
        }
        start -= line.len();
        count += 1;
    }
    if count == 0 {
        start = text.content.ceil_char_boundary(text.content.len() - Sheet::BYTES_MAX);
    }
    (start, count)
}
