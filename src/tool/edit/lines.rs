//! `edit_lines`: some lines, by their numbers, are replaced by others. Lines are whole: new content
//! needs no line end of its own, and the last line of a file that has none keeps none.

use std::borrow::Cow;
use std::ops::Range;

use super::Edited;
use super::endings::{Change, Text, TooLarge, as_line_feeds, line_feeds};
use crate::tool::text::counted;

/// Lines from `start_line` to `end_line`, both counted from 1 and included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinesEdit {
    /// One more than the file has lines appends.
    pub start_line: usize,
    /// The same line where there is none.
    pub end_line: Option<usize>,
    /// Whole lines; empty to delete.
    pub new_content: String,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LinesError {
    #[error("lines are counted from 1")]
    LineZero,
    #[error("`end_line` {end_line} is before `start_line` {start_line}")]
    Backwards { start_line: usize, end_line: usize },
    #[error(
        "there is no line {line}: the file has {count} lines (`start_line` {} without `end_line` \
         appends)",
        .count + 1
    )]
    Beyond { line: usize, count: usize },
    #[error("the lines are already so, and nothing would change")]
    NoChange,
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
}

pub fn edit_lines(content: &str, edit: &LinesEdit) -> Result<Edited, LinesError> {
    let mut text = Text::parse(content);
    text.close_last_line();
    let count = line_feeds(text.body());
    let lines = chosen(edit, count)?;
    let new = whole_lines(&edit.new_content);
    let range = offsets(text.body(), &lines);
    if text.body()[range.clone()] == *new {
        return Err(LinesError::NoChange);
    }
    let summary = summary(&lines, line_feeds(&new), count);
    let (text, spans) = text.apply(&[Change { range, with: new }])?;
    Ok(Edited::new(&text, &summary, &spans)?)
}

/// The lines to replace, counted from 0, the end excluded.
fn chosen(edit: &LinesEdit, count: usize) -> Result<Range<usize>, LinesError> {
    let start_line = edit.start_line;
    let end_line = edit.end_line.unwrap_or(start_line);
    if start_line == 0 || end_line == 0 {
        return Err(LinesError::LineZero);
    }
    if end_line < start_line {
        return Err(LinesError::Backwards { start_line, end_line });
    }
    if start_line == count + 1 && end_line == start_line {
        return Ok(count..count);
    }
    if end_line > count {
        let line = if start_line > count { start_line } else { end_line };
        return Err(LinesError::Beyond { line, count });
    }
    Ok(start_line - 1..end_line)
}

/// What was given as lines that all end; nothing stays nothing.
fn whole_lines(given: &str) -> Cow<'_, str> {
    let given = as_line_feeds(given);
    if given.is_empty() || given.ends_with('\n') { given } else { given + "\n" }
}

/// The bytes of whole lines, counted from 0.
fn offsets(body: &str, lines: &Range<usize>) -> Range<usize> {
    let all = || body.split_inclusive('\n').map(str::len);
    let start: usize = all().take(lines.start).sum();
    let inside: usize = all().skip(lines.start).take(lines.len()).sum();
    start..start + inside
}

fn summary(lines: &Range<usize>, new: usize, count: usize) -> String {
    let counted = |count: usize| counted(count, "line", "lines");
    let total = count + new - lines.len();
    let done = if lines.is_empty() {
        format!("Appended {}", counted(new))
    } else if new == 0 {
        format!("Deleted {}", told(lines))
    } else {
        format!("Replaced {} with {}", told(lines), counted(new))
    };
    format!("{done}; the file now has {}.", counted(total))
}

fn told(lines: &Range<usize>) -> String {
    if lines.len() == 1 {
        format!("line {}", lines.end)
    } else {
        format!("lines {} to {}", lines.start + 1, lines.end)
    }
}

#[cfg(test)]
#[path = "lines_tests.rs"]
mod tests;
