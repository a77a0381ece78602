//! `read_file`: the lines of a text file, from a line on, with their numbers.

use schemars::JsonSchema;
use serde::Deserialize;

use super::error::{FileError, Given};
use super::text::{Full, Sheet, Text};
use super::workplace::Site;
use super::{OnFiles, Wanted};
use crate::policy::Side;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadFile {
    /// The file, relative to the working directory.
    path: String,
    /// The first line to read.
    #[serde(default = "first")]
    #[schemars(range(min = 1))]
    offset: u64,
    /// How many lines to read; all by default.
    #[schemars(range(min = 1))]
    limit: Option<u64>,
    /// Whether each line has its number and a tab before it.
    #[serde(default = "yes")]
    line_numbers: bool,
}

fn first() -> u64 {
    1
}

fn yes() -> bool {
    true
}

impl OnFiles for ReadFile {
    const NAME: &'static str = "read_file";
    const PATHS: Wanted = &[("path", Side::Read)];
    const DESCRIPTION: &'static str = "Reads a UTF-8 text file of up to 10 MiB.";

    fn work(self, site: &Site) -> Result<String, FileError> {
        let given = Given::new(&self.path);
        let text = Text::read(site, &given)?;
        let total = text.lines().count();
        if total == 0 {
            return Ok(Sheet::default().end(&["The file is empty.".to_owned()]));
        }
        let skipped = usize::try_from(self.offset - 1).unwrap_or(usize::MAX);
        if skipped >= total {
            return Err(FileError::PastEnd { given, lines: total, offset: self.offset });
        }
        let limit =
            self.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(self.page(&text, skipped, limit, total))
    }
}

impl ReadFile {
    fn page(&self, text: &Text, skipped: usize, limit: usize, total: usize) -> String {
        let (mut sheet, mut notes) = (Sheet::default(), Vec::new());
        let mut last = skipped;
        for line in text.lines().skip(skipped).take(limit) {
            let number = last + 1;
            let shown =
                if self.line_numbers { format!("{number:>6}\t{line}") } else { line.to_owned() };
            match sheet.piece(&shown) {
                Ok(()) => last = number,
                Err(Full) if sheet.is_empty() => {
                    let end = shown.floor_char_boundary(Sheet::BYTES_MAX - 1);
                    sheet.piece(&shown[..end]).expect("a line cut to its room fits");
                    last = number;
                    notes.push(format!(
                        "Line {number} is cut: it has {} bytes. search_text shows the parts of it \
                         around a match.",
                        line.len()
                    ));
                    break;
                }
                Err(Full) => break,
            }
        }
        if last < total {
            let (first, next) = (skipped + 1, last + 1);
            notes.push(format!("Lines {first} to {last} of {total}. Read on with offset {next}."));
        }
        sheet.end(&notes)
    }
}
