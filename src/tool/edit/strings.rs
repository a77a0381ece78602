//! `edit_file` and `edit_file_batch`: an exact text is replaced by another.
//! Nothing is guessed: a text that is not there, or there more than once, is refused with what helps
//! to name it better. Only the way lines end is not compared, since a model does not see it.

use std::borrow::Cow;
use std::ops::Range;

use schemars::JsonSchema;
use serde::Deserialize;

use super::Edited;
use super::endings::{Change, Text, TooLarge, as_line_feeds};
use super::near::Near;
use super::snippet::LineNumbers;
use crate::limits::{BATCH_EDITS_MAX, EDIT_PLACES_MAX};
use crate::tool::text::counted;

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    /// The text to replace, exactly as it is in the file, indentation included.
    pub old_string: String,
    /// What takes its place.
    pub new_string: String,
    /// Replace every occurrence; otherwise there must be exactly one.
    #[serde(default)]
    pub replace_all: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    #[error("`old_string` is empty: give the text to replace, or use write_file for a new file")]
    EmptyOld,
    #[error(
        "`old_string` and `new_string` are the same (lines end as they do in the file), so nothing \
         would change"
    )]
    NoChange,
    #[error("`old_string` is not in the file{near}")]
    NotFound { near: Near },
    #[error(
        "`old_string` is in the file {count} times, at {lines}: give more context to make it \
         unique, or set `replace_all`"
    )]
    Ambiguous { count: usize, lines: LineNumbers },
    #[error("`old_string` is in the file more than {places_max} times")]
    TooManyPlaces { places_max: usize },
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    #[error("`edits` is empty, so nothing would change")]
    Empty,
    #[error("there are {count} edits, and at most {edits_max} in one call")]
    TooMany { count: usize, edits_max: usize },
    #[error("edit {number} of {count} does not apply, and none was made")]
    Edit {
        number: usize,
        count: usize,
        #[source]
        source: EditError,
    },
    #[error("the edits undo each other, so nothing would change")]
    NoChange,
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
}

pub fn edit_file(content: &str, edit: &Edit) -> Result<Edited, EditError> {
    let text = Text::parse(content);
    let wanted = Wanted::of(edit)?;
    let (text, spans) = text.apply(&wanted.changes(text.body())?)?;
    Ok(Edited::new(&text, &replaced(spans.len()), &spans)?)
}

/// All edits one after another, each on what the one before it made; or none.
pub fn edit_file_batch(content: &str, edits: &[Edit]) -> Result<Edited, BatchError> {
    let count = edits.len();
    if edits.is_empty() {
        return Err(BatchError::Empty);
    }
    if count > BATCH_EDITS_MAX {
        return Err(BatchError::TooMany { count, edits_max: BATCH_EDITS_MAX });
    }
    let mut text = Text::parse(content);
    // The first place of each edit is shown, wherever later edits move it.
    let mut shown: Vec<Range<usize>> = Vec::with_capacity(count);
    let mut places = 0;
    for (index, edit) in edits.iter().enumerate() {
        let failed = |source| BatchError::Edit { number: index + 1, count, source };
        let wanted = Wanted::of(edit).map_err(failed)?;
        let changes = wanted.changes(text.body()).map_err(failed)?;
        let (next, spans) = text.apply(&changes).map_err(|error| failed(error.into()))?;
        for span in &mut shown {
            *span = moved(span, &changes, &spans);
        }
        places += spans.len();
        shown.extend(spans.into_iter().take(1));
        text = next;
    }
    shown.sort_by_key(|span| (span.start, span.end));
    let summary = format!("Made {count} edits. {}", replaced(places));
    let edited = Edited::new(&text, &summary, &shown)?;
    if edited.content == content { Err(BatchError::NoChange) } else { Ok(edited) }
}

fn replaced(places: usize) -> String {
    format!("Replaced {}.", counted(places, "place", "places"))
}

/// An edit in the line ends that engines see.
struct Wanted<'a> {
    old: Cow<'a, str>,
    new: Cow<'a, str>,
    places: Places,
}

#[derive(Clone, Copy)]
enum Places {
    One,
    All,
}

impl<'a> Wanted<'a> {
    fn of(edit: &'a Edit) -> Result<Self, EditError> {
        let old = as_line_feeds(&edit.old_string);
        let new = as_line_feeds(&edit.new_string);
        if old.is_empty() {
            return Err(EditError::EmptyOld);
        }
        if old == new {
            return Err(EditError::NoChange);
        }
        let places = if edit.replace_all { Places::All } else { Places::One };
        Ok(Self { old, new, places })
    }

    fn changes(&self, body: &str) -> Result<Vec<Change<'_>>, EditError> {
        let old: &str = &self.old;
        let Some(first) = body.find(old) else {
            return Err(EditError::NotFound { near: Near::find(body, old) });
        };
        match self.places {
            Places::One => only_place(body, old, first)?,
            Places::All => {}
        }
        let change = |(at, old): (usize, &str)| Change {
            range: at..at + old.len(),
            with: Cow::Borrowed(&*self.new),
        };
        let changes: Vec<Change<'_>> =
            body.match_indices(old).map(change).take(EDIT_PLACES_MAX + 1).collect();
        if changes.len() > EDIT_PLACES_MAX {
            return Err(EditError::TooManyPlaces { places_max: EDIT_PLACES_MAX });
        }
        Ok(changes)
    }
}

/// Refuses a text that is in the file again after its `first` place, be it overlapping.
fn only_place(body: &str, old: &str, first: usize) -> Result<(), EditError> {
    let step = old.chars().next().map_or(1, char::len_utf8);
    let Some(second) = body[first + step..].find(old).map(|at| first + step + at) else {
        return Ok(());
    };
    let apart = body.matches(old).count();
    let lines = if apart == 1 {
        LineNumbers::of(body, [first, second])
    } else {
        LineNumbers::of(body, body.match_indices(old).map(|(at, _)| at))
    };
    Err(EditError::Ambiguous { count: apart.max(2), lines })
}

/// Where a span of a text is after `changes` of it, which are now at `spans`.
fn moved(span: &Range<usize>, changes: &[Change<'_>], spans: &[Range<usize>]) -> Range<usize> {
    let before = |position: usize| {
        let index = changes.partition_point(|change| change.range.end <= position);
        let shifted = match index.checked_sub(1) {
            Some(last) => spans[last].end + (position - changes[last].range.end),
            None => position,
        };
        // A change that reaches over the position took its place.
        let over = changes.get(index).filter(|change| change.range.start < position);
        (shifted, over.map(|_| spans[index].clone()))
    };
    let start = match before(span.start) {
        (_, Some(over)) => over.start,
        (shifted, None) => shifted,
    };
    let end = match before(span.end) {
        (_, Some(over)) => over.end,
        (shifted, None) => shifted,
    };
    start..end.max(start)
}

#[cfg(test)]
#[path = "strings_tests.rs"]
mod tests;
