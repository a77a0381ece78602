//! `patch`: a unified diff for one file. Every hunk must fit to the letter, at its line or nearby; one
//! that does not is shown with what is there instead, and then nothing is changed at all.
//! Never guesses past context lines: no fuzz.

mod error;
mod parse; // from a diff to hunks
mod place; // where a hunk fits

use std::borrow::Cow;

use super::endings::{Change, LastLine, Text, as_line_feeds};
use super::snippet;
use crate::limits::SNIPPET_NUMBERS_MAX;
pub use error::{Misfit, PatchError};

use parse::{Diff, Hunk, Line, Origin};
use place::Lines;

/// What a diff makes of a file's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patched {
    pub content: String,
    /// For the model, in words that suit a dry run too.
    pub report: String,
    pub hunks: Vec<Placed>,
}

/// Where a hunk fits in the old content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Counted from 1.
    pub line: usize,
    /// How many lines below where its header says.
    pub offset: isize,
}

/// What `diff` makes of `content`, which is empty where there is no file yet.
pub fn patch(content: &str, diff: &str) -> Result<Patched, PatchError> {
    let diff = as_line_feeds(diff);
    let diff = Diff::parse(&diff)?;
    let mut text = Text::parse(content);
    text.close_last_line();
    let lines = Lines::of(text.body());
    match diff.origin {
        Origin::Nothing if lines.count() > 0 => {
            return Err(PatchError::NotNew { count: lines.count() });
        }
        Origin::Nothing | Origin::File => {}
    }
    let mut changes = Vec::new();
    let mut hunks: Vec<Placed> = Vec::with_capacity(diff.hunks.len());
    let (mut from, mut offset) = (0, 0);
    for hunk in &diff.hunks {
        if hunk.old_last == LastLine::Open && text.last_line() != LastLine::Open {
            return Err(PatchError::LastLineEnds { number: hunk.number });
        }
        let at = lines.place(hunk, from, offset)?;
        offset = at.wrapping_sub(hunk.at).cast_signed();
        changes.extend(hunk_changes(hunk, &lines, at));
        from = at + hunk.old_count;
        hunks.push(Placed { line: at + 1, offset });
    }
    let (mut patched, spans) = text.apply(&changes)?;
    if let Some(last_line) = diff.last_line() {
        patched.set_last_line(last_line);
    }
    let new = patched.render()?;
    if new == content {
        return Err(PatchError::NoChange);
    }
    let report = format!("{}\n{}", summary(&hunks), snippet::around(patched.body(), &spans));
    Ok(Patched { content: new, report, hunks })
}

/// The changes of a hunk that fits at the line `at`. Context is in none of them: such a line stays as
/// it is, with its own line end.
fn hunk_changes(hunk: &Hunk<'_>, lines: &Lines<'_>, at: usize) -> Vec<Change<'static>> {
    let begun = |line: usize| {
        let start = lines.offset(line);
        Change { range: start..start, with: Cow::Borrowed("") }
    };
    let mut changes = Vec::new();
    let mut run: Option<Change<'static>> = None;
    let mut next = at;
    for line in &hunk.lines {
        match line {
            Line::Context(_) => {
                changes.extend(run.take());
                next += 1;
            }
            Line::Removed(_) => {
                let change = run.get_or_insert_with(|| begun(next));
                next += 1;
                change.range.end = lines.offset(next);
            }
            Line::Added(line) => {
                let with = run.get_or_insert_with(|| begun(next)).with.to_mut();
                with.push_str(line);
                with.push('\n');
            }
        }
    }
    changes.extend(run);
    changes
}

fn summary(hunks: &[Placed]) -> String {
    let plural = if hunks.len() == 1 { " fits" } else { "s fit" };
    let mut text = format!("{} hunk{plural}.", hunks.len());
    let shifted: Vec<String> = (1..)
        .zip(hunks)
        .filter(|(_, placed)| placed.offset != 0)
        .map(|(number, Placed { line, offset })| {
            format!("Hunk {number} is at line {line}, {offset:+} from where it says.")
        })
        .collect();
    for told in shifted.iter().take(SNIPPET_NUMBERS_MAX) {
        text = format!("{text} {told}");
    }
    if let Some(more @ 1..) = shifted.len().checked_sub(SNIPPET_NUMBERS_MAX) {
        text = format!("{text} So are {more} more.");
    }
    text
}

#[cfg(test)]
#[path = "patch_tests.rs"]
mod tests;
