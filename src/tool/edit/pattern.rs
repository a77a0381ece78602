//! `regex_replace`: what a regular expression matches is replaced by a template.
//! The engine has no backtracking, so that no pattern takes more than time in the length of the text
//! for one match, and what a pattern compiles to has a bound. Between two matches it asks whether
//! somebody still waits: all of them together may take longer than anybody does.

use std::borrow::Cow;

use regex::{Regex, RegexBuilder};

use super::Edited;
use super::endings::{Change, Text, TooLarge, as_line_feeds};
use super::template::{Template, TemplateError};
use crate::limits::{
    EDIT_PATTERN_BYTES_MAX, EDIT_PLACES_MAX, EDIT_RESULT_BYTES_MAX, PATTERN_COMPILED_BYTES_MAX,
};
use crate::tool::text::counted;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PatternEdit {
    pub pattern: String,
    /// May refer to groups: `$1`, `${name}`.
    pub replacement: String,
    /// How many matches are replaced, from the first on; all where there is none.
    pub count: Option<usize>,
    pub ignore_case: bool,
    /// `^` and `$` match at every line.
    pub multiline: bool,
    /// `.` matches line ends too.
    pub dotall: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    #[error("`pattern` has more than {bytes_max} bytes")]
    TooLong { bytes_max: usize },
    #[error(
        "`pattern` is too large: what it repeats takes more than {bytes_max} bytes once compiled"
    )]
    TooBig { bytes_max: usize },
    #[error("`pattern` is no regular expression: {problem}")]
    Syntax { problem: String },
    #[error(transparent)]
    Template(#[from] TemplateError),
    #[error("`count` must be at least 1; leave it out to replace all matches")]
    CountZero,
    #[error("`pattern` matches nowhere{hint}")]
    NoMatch { hint: &'static str },
    #[error("`pattern` matches at more than {places_max} places: narrow it, or give a `count`")]
    TooManyPlaces { places_max: usize },
    #[error("`pattern` matches {matches} times, but what replaces it is the same text")]
    NoChange { matches: usize },
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    #[error("nobody waits for the result any more")]
    Unwanted,
}

pub fn regex_replace(
    content: &str,
    edit: &PatternEdit,
    is_wanted: impl Fn() -> bool,
) -> Result<Edited, PatternError> {
    if edit.count == Some(0) {
        return Err(PatternError::CountZero);
    }
    let regex = compile(edit)?;
    let replacement = as_line_feeds(&edit.replacement);
    let template = Template::parse(&replacement, &regex)?;
    let text = Text::parse(content);
    let changes = changes(text.body(), edit, &regex, &template, is_wanted)?;
    let matches = changes.len();
    let (edited, spans) = text.apply(&changes)?;
    if edited.body() == text.body() {
        return Err(PatternError::NoChange { matches });
    }
    let replaced = counted(matches, "match", "matches");
    Ok(Edited::new(&edited, &format!("Replaced {replaced}."), &spans)?)
}

fn changes(
    body: &str,
    edit: &PatternEdit,
    regex: &Regex,
    template: &Template<'_>,
    is_wanted: impl Fn() -> bool,
) -> Result<Vec<Change<'static>>, PatternError> {
    let mut changes = Vec::new();
    let mut added = 0;
    for captures in regex.captures_iter(body).take(edit.count.unwrap_or(usize::MAX)) {
        if !is_wanted() {
            return Err(PatternError::Unwanted);
        }
        if changes.len() == EDIT_PLACES_MAX {
            return Err(PatternError::TooManyPlaces { places_max: EDIT_PLACES_MAX });
        }
        let mut with = String::new();
        template.expand(&captures, &mut with);
        added += with.len();
        // Before it is kept: what all matches make together is not in memory yet. At most the whole
        // text goes, so less than this may still be too much, which `Text` sees.
        if added > EDIT_RESULT_BYTES_MAX {
            return Err(TooLarge { bytes_max: EDIT_RESULT_BYTES_MAX }.into());
        }
        changes.push(Change { range: captures.get_match().range(), with: Cow::Owned(with) });
    }
    if changes.is_empty() {
        Err(PatternError::NoMatch { hint: hint(body, edit) })
    } else {
        Ok(changes)
    }
}

fn compile(edit: &PatternEdit) -> Result<Regex, PatternError> {
    let pattern = as_line_feeds(&edit.pattern);
    if pattern.len() > EDIT_PATTERN_BYTES_MAX {
        return Err(PatternError::TooLong { bytes_max: EDIT_PATTERN_BYTES_MAX });
    }
    let built = RegexBuilder::new(&pattern)
        .case_insensitive(edit.ignore_case)
        .multi_line(edit.multiline)
        .dot_matches_new_line(edit.dotall)
        .size_limit(PATTERN_COMPILED_BYTES_MAX)
        .dfa_size_limit(PATTERN_COMPILED_BYTES_MAX)
        .build();
    built.map_err(|error| match error {
        regex::Error::CompiledTooBig(bytes_max) => PatternError::TooBig { bytes_max },
        regex::Error::Syntax(told) => PatternError::Syntax { problem: problem(&told) },
        other => PatternError::Syntax { problem: other.to_string() },
    })
}

/// What is wrong, from the library's drawing of the pattern with marks below it.
fn problem(told: &str) -> String {
    let last = told.lines().last().unwrap_or(told).trim();
    let problem = last.strip_prefix("error: ").unwrap_or(last);
    if problem.contains("look-around") || problem.contains("backreference") {
        return "it has no look-around and no backreferences here; match the surroundings as groups \
                and put them back with `$1`"
            .to_owned();
    }
    problem.to_owned()
}

/// What would have made a pattern match.
fn hint(body: &str, edit: &PatternEdit) -> &'static str {
    let matches = |edit: PatternEdit| compile(&edit).is_ok_and(|regex| regex.is_match(body));
    if matches(PatternEdit { multiline: true, ..edit.clone() }) {
        "; with `multiline` it does: without, `^` and `$` mean the whole file's start and end"
    } else if matches(PatternEdit { dotall: true, ..edit.clone() }) {
        "; with `dotall` it does: without, `.` matches no line end"
    } else if matches(PatternEdit { ignore_case: true, ..edit.clone() }) {
        "; with `ignore_case` it does"
    } else if edit.pattern.contains("\\r") {
        "; line ends are always matched by `\\n` alone, whatever the file has"
    } else {
        ""
    }
}

#[cfg(test)]
#[path = "pattern_tests.rs"]
mod tests;
