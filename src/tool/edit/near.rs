//! What comes close to a text that is not in a file: the same with other whitespace, or a place where
//! it begins in the same way. Only ever for an error message: nothing is edited on its word.

use std::fmt;

use super::snippet::{line_at, numbered};
use crate::limits::NEAR_COMPARISONS_MAX;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Near {
    /// The file's last line has no end, and the text asks for one.
    OpenLastLine {
        line: usize,
    },
    /// From `line` on the file has the same text but for its whitespace.
    Whitespace {
        line: usize,
        shown: String,
    },
    /// From `line` on the file is as the text begins, up to `differs`.
    Begins {
        line: usize,
        differs: usize,
        shown: String,
    },
    Nothing,
}

impl fmt::Display for Near {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OpenLastLine { line } => write!(
                f,
                ": it ends with a line end, and line {line}, which is the last, has none; leave it out"
            ),
            Self::Whitespace { line, shown } => write!(
                f,
                ", but from line {line} on it is, with other whitespace; copy it from there:\n{shown}"
            ),
            Self::Begins { line, differs, shown } => write!(
                f,
                ": line {line} is like its first line, but line {differs} differs:\n{shown}"
            ),
            Self::Nothing => {
                f.write_str(", and no line is like its first: read the file to see what it has")
            }
        }
    }
}

impl Near {
    /// What is nearest to `text`, which is not in `body`.
    pub(super) fn find(body: &str, text: &str) -> Self {
        Self::open_last_line(body, text)
            .or_else(|| Self::whitespace(body, text))
            .or_else(|| Self::begins(body, text))
            .unwrap_or(Self::Nothing)
    }

    fn open_last_line(body: &str, text: &str) -> Option<Self> {
        let without = text.strip_suffix('\n').filter(|without| !without.is_empty())?;
        body.ends_with(without).then(|| Self::OpenLastLine { line: body.lines().count() })
    }

    fn whitespace(body: &str, text: &str) -> Option<Self> {
        let dense = |text: &str| text.split_whitespace().collect::<String>();
        let wanted = dense(text);
        if wanted.is_empty() {
            return None;
        }
        let skipped = dense(body).find(&wanted)?;
        let start = offset_of_dense(body, skipped);
        let end = offset_of_dense(body, skipped + wanted.len() - 1);
        let line = line_at(body, start);
        let lines = line_at(body, end) + 1 - line;
        let shown = numbered(line, body.lines().skip(line - 1).take(lines));
        Some(Self::Whitespace { line, shown })
    }

    /// The place where most lines are like those the text begins with, the first of several.
    fn begins(body: &str, text: &str) -> Option<Self> {
        let wanted: Vec<&str> =
            text.lines().map(str::trim).skip_while(|line| line.is_empty()).collect();
        let first = wanted.first()?;
        let mut comparisons_left = NEAR_COMPARISONS_MAX;
        let mut best: Option<(usize, usize)> = None;
        let mut offset = 0;
        for (number, line) in (1..).zip(body.split_inclusive('\n')) {
            if line.trim() == *first {
                let here = body[offset..].lines().map(str::trim).zip(&wanted);
                let alike = here.take(comparisons_left).take_while(|(a, b)| a == *b).count();
                comparisons_left -= alike;
                if alike > best.map_or(0, |(_, alike)| alike) {
                    best = Some((number, alike));
                }
            }
            offset += line.len();
        }
        let (line, alike) = best?;
        let shown = numbered(line, body.lines().skip(line - 1).take(alike + 1));
        Some(Self::Begins { line, differs: line + alike, shown })
    }
}

/// Where in `body` the byte is that has so many bytes before it that are no whitespace.
fn offset_of_dense(body: &str, skipped: usize) -> usize {
    let mut left = skipped;
    for (at, character) in body.char_indices().filter(|(_, character)| !character.is_whitespace()) {
        if left < character.len_utf8() {
            return at;
        }
        left -= character.len_utf8();
    }
    body.len()
}
