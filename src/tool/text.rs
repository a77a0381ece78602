//! Text out of files and into results: a whole file as lines, and a result that knows its bounds.
//! Other bytes than UTF-8 are refused, never replaced.

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use super::error::{FileError, Given, write_plain};
use super::seen::Stamp;
use super::workplace::Site;
use crate::limits::{
    FILE_READ_BYTES_MAX, RESULT_BYTES_MAX, RESULT_LINES_MAX, RESULT_NOTES_BYTES_MAX,
};
use crate::world::{Access, Stat};

/// A file that was read whole.
#[derive(Clone, Debug)]
pub struct Text {
    pub content: String,
    pub stat: Stat,
    pub resolved: PathBuf,
}

impl Text {
    /// Reads a file for its agent, which has seen it from then on.
    pub fn read(site: &Site, given: &Given) -> Result<Self, FileError> {
        let (text, stamp) = Self::look(site, given)?;
        site.seen().note(&text.resolved, stamp);
        Ok(text)
    }

    /// Reads a file without showing it to anybody.
    pub(super) fn look(site: &Site, given: &Given) -> Result<(Self, Stamp), FileError> {
        let (bytes, stat, resolved) = site.reading(given, |spot| {
            let file = spot.parent.open(spot.name(), Access::Read)?;
            let stat = file.stat()?;
            if stat.len > FILE_READ_BYTES_MAX {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            Ok((file.read_all(FILE_READ_BYTES_MAX)?, stat, spot.resolved.clone()))
        })?;
        let stamp = Stamp::of(&stat, &bytes);
        let content = String::from_utf8(bytes).map_err(|error| FileError::NotText {
            given: given.clone(),
            at: error.utf8_error().valid_up_to(),
        })?;
        Ok((Self { content, stat, resolved }, stamp))
    }

    /// The lines, each with what ends it.
    pub fn lines(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.content.split_inclusive('\n')
    }
}

/// A result while it is written.
#[derive(Debug, Default)]
pub struct Sheet {
    text: String,
    lines: usize,
}

/// The result has no room for more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

impl Sheet {
    /// What all lines together may have.
    pub const BYTES_MAX: usize = RESULT_BYTES_MAX - RESULT_NOTES_BYTES_MAX;

    /// Adds a line, ended if it is not, or nothing where there is no room.
    pub fn line(&mut self, line: &str) -> Result<(), Full> {
        let end = if line.ends_with('\n') { "" } else { "\n" };
        self.piece(line)?;
        self.text.push_str(end);
        Ok(())
    }

    /// Adds a line as it is.
    pub fn piece(&mut self, line: &str) -> Result<(), Full> {
        // One byte more for the end that a line may lack.
        if self.lines >= RESULT_LINES_MAX || self.text.len() + line.len() >= Self::BYTES_MAX {
            return Err(Full);
        }
        self.lines += 1;
        self.text.push_str(line);
        Ok(())
    }

    pub fn is_empty(&self) -> bool {
        self.lines == 0
    }

    /// The result, with notes about what is not in it on lines of their own.
    pub fn end(mut self, notes: &[String]) -> String {
        for note in notes {
            if !self.text.is_empty() && !self.text.ends_with('\n') {
                self.text.push('\n');
            }
            self.text.push('[');
            self.text.push_str(note);
            self.text.push_str("]\n");
        }
        self.text
    }
}

/// A name or path as it stands in a result: on one line, whatever it holds.
pub fn shown(path: &Path) -> String {
    shown_name(path.as_os_str())
}

pub fn shown_name(name: &OsStr) -> String {
    let mut shown = String::with_capacity(name.len());
    for c in name.to_string_lossy().chars() {
        write_plain(&mut shown, c).expect("a string takes every character");
    }
    shown
}

/// How something found below a given directory is called, such that the name can be given back.
pub fn shown_below(given: &Given, path: &Path) -> String {
    match given.text() {
        "." | "./" => shown(path),
        top => format!("{}/{}", top.trim_end_matches('/'), shown(path)),
    }
}

/// So many things by their name: that of one, or that of several.
pub fn counted<N: Copy + fmt::Display + PartialEq + From<u8>>(
    count: N,
    thing: &str,
    things: &str,
) -> String {
    let name = if count == N::from(1) { thing } else { things };
    format!("{count} {name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sheet_is_full_at_its_bounds() {
        let mut sheet = Sheet::default();
        for _ in 0..RESULT_LINES_MAX {
            assert_eq!(sheet.line("x"), Ok(()));
        }
        assert_eq!(sheet.line("x"), Err(Full));
        let mut sheet = Sheet::default();
        assert_eq!(sheet.line(&"x".repeat(Sheet::BYTES_MAX)), Err(Full));
        assert_eq!(sheet.line(&"x".repeat(Sheet::BYTES_MAX - 1)), Ok(()));
        assert_eq!(sheet.line("x"), Err(Full));
        assert_eq!(sheet.end(&[]).len(), Sheet::BYTES_MAX);
    }

    #[test]
    fn notes_stand_on_lines_of_their_own() {
        let mut sheet = Sheet::default();
        sheet.piece("half").unwrap();
        assert_eq!(sheet.end(&["One.".to_owned(), "Two.".to_owned()]), "half\n[One.]\n[Two.]\n");
        assert_eq!(Sheet::default().end(&["None.".to_owned()]), "[None.]\n");
    }

    #[test]
    fn names_stay_on_their_line_and_can_be_given_back() {
        assert_eq!(shown(Path::new("a\nb\u{7f}é")), "a\\nb\\u{7f}é");
        let below = |given: &str| shown_below(&Given::new(given), Path::new("a/b"));
        assert_eq!(below("."), "a/b");
        assert_eq!(below("src/"), "src/a/b");
        assert_eq!(below("/"), "/a/b");
    }
}
