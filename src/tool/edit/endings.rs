//! What a file has besides its text: a byte order mark, the way its lines end, and whether the last
//! one ends at all. The one place that takes these off and puts them back; it never touches a line
//! that no change touches, so a file with both kinds of line ends keeps both where they are.

use std::borrow::Cow;
use std::ops::Range;

use crate::limits::EDIT_RESULT_BYTES_MAX;

const BYTE_ORDER_MARK: char = '\u{feff}';

/// What an edit would make of a file is more than can be read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the file would grow beyond {bytes_max} bytes")]
pub struct TooLarge {
    pub bytes_max: usize,
}

const TOO_LARGE: TooLarge = TooLarge { bytes_max: EDIT_RESULT_BYTES_MAX };

/// A stretch of a text and what takes its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change<'a> {
    pub(super) range: Range<usize>,
    pub(super) with: Cow<'a, str>,
}

/// A file's content, its shape apart from its text.
#[derive(Clone, Debug)]
pub(super) struct Text {
    marked: bool,
    /// The text, each line of which ends with a line feed.
    body: String,
    ends: Ends,
    last_line: LastLine,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LastLine {
    /// It ends in the file as it does in the body.
    AsInBody,
    /// It ends in the body, and has no end in the file.
    Open,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    LineFeed,
    CarriageReturnLineFeed,
}

impl End {
    fn text(self) -> &'static str {
        match self {
            Self::LineFeed => "\n",
            Self::CarriageReturnLineFeed => "\r\n",
        }
    }
}

/// How the lines of a file end.
#[derive(Clone, Debug)]
enum Ends {
    All(End),
    /// One for each line feed of the body.
    Mixed(Vec<End>),
}

impl Ends {
    fn of(content: &[u8]) -> Self {
        let before = |index: usize| index.checked_sub(1).map(|index| content[index]);
        let feeds = content.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        let ends = feeds.map(|(index, _)| match before(index) {
            Some(b'\r') => End::CarriageReturnLineFeed,
            Some(_) | None => End::LineFeed,
        });
        let first = ends.clone().next().unwrap_or(End::LineFeed);
        if ends.clone().all(|end| end == first) {
            Self::All(first)
        } else {
            Self::Mixed(ends.collect())
        }
    }
}

impl Text {
    pub(super) fn parse(content: &str) -> Self {
        let unmarked = content.strip_prefix(BYTE_ORDER_MARK);
        let body = unmarked.unwrap_or(content);
        Self {
            marked: unmarked.is_some(),
            body: as_line_feeds(body).into_owned(),
            ends: Ends::of(body.as_bytes()),
            last_line: LastLine::AsInBody,
        }
    }

    pub(super) fn body(&self) -> &str {
        &self.body
    }

    /// Gives the last line an end in the body where it has none, so that engines that count in lines
    /// know only whole ones. The file goes without it as before.
    pub(super) fn close_last_line(&mut self) {
        if self.body.is_empty() || self.body.ends_with('\n') {
            return;
        }
        self.body.push('\n');
        self.last_line = LastLine::Open;
        if let Ends::Mixed(ends) = &mut self.ends {
            ends.push(ends.last().copied().unwrap_or(End::LineFeed));
        }
    }

    pub(super) fn last_line(&self) -> LastLine {
        self.last_line
    }

    /// Says of a body of whole lines whether the file has its last line end.
    pub(super) fn set_last_line(&mut self, last_line: LastLine) {
        self.last_line = last_line;
    }

    /// The text after `changes`, which are in order and apart, and where in it each of them is.
    pub(super) fn apply(
        &self,
        changes: &[Change<'_>],
    ) -> Result<(Self, Vec<Range<usize>>), TooLarge> {
        let removed: usize = changes.iter().map(|change| change.range.len()).sum();
        let added: usize = changes.iter().map(|change| change.with.len()).sum();
        let length = self.body.len() + added - removed;
        if length > EDIT_RESULT_BYTES_MAX {
            return Err(TOO_LARGE);
        }
        let mut body = String::with_capacity(length);
        let mut spans = Vec::with_capacity(changes.len());
        let mut done = 0;
        for Change { range, with } in changes {
            assert!(done <= range.start, "changes are in order and apart");
            body.push_str(&self.body[done..range.start]);
            let start = body.len();
            body.push_str(with);
            spans.push(start..body.len());
            done = range.end;
        }
        body.push_str(&self.body[done..]);
        assert_eq!(body.len(), length, "the length is known before");
        let ends = match &self.ends {
            Ends::All(end) => Ends::All(*end),
            Ends::Mixed(ends) => Ends::Mixed(self.changed_ends(ends, changes)),
        };
        let text = Self { marked: self.marked, body, ends, last_line: self.last_line };
        Ok((text, spans))
    }

    /// New lines end as those they replace, further ones as the last of these.
    fn changed_ends(&self, ends: &[End], changes: &[Change<'_>]) -> Vec<End> {
        let mut result = Vec::with_capacity(ends.len());
        let (mut done, mut next) = (0, 0);
        for Change { range, with } in changes {
            let kept = line_feeds(&self.body[done..range.start]);
            result.extend_from_slice(&ends[next..next + kept]);
            next += kept;
            let removed = line_feeds(&self.body[range.clone()]);
            let like = |index: usize| ends.get(next + index.min(removed.saturating_sub(1)));
            let like = |index| like(index).or(ends.last()).copied().unwrap_or(End::LineFeed);
            result.extend((0..line_feeds(with)).map(like));
            next += removed;
            done = range.end;
        }
        result.extend_from_slice(&ends[next..]);
        result
    }

    /// The content of the file.
    pub(super) fn render(&self) -> Result<String, TooLarge> {
        let body = match self.last_line {
            LastLine::AsInBody => &self.body,
            LastLine::Open => self.body.strip_suffix('\n').unwrap_or(&self.body),
        };
        let mut content = String::with_capacity(body.len());
        if self.marked {
            content.push(BYTE_ORDER_MARK);
        }
        match &self.ends {
            Ends::All(End::LineFeed) => content.push_str(body),
            Ends::All(end @ End::CarriageReturnLineFeed) => {
                content.push_str(&body.replace('\n', end.text()));
            }
            Ends::Mixed(ends) => {
                let mut ends = ends.iter();
                for piece in body.split_inclusive('\n') {
                    let Some(line) = piece.strip_suffix('\n') else {
                        content.push_str(piece);
                        break;
                    };
                    let end = ends.next().expect("every line feed of a mixed text has its end");
                    content.push_str(line);
                    content.push_str(end.text());
                }
            }
        }
        if content.len() > EDIT_RESULT_BYTES_MAX { Err(TOO_LARGE) } else { Ok(content) }
    }
}

/// What a model wrote, in the line ends that engines see. It cannot see a file's, and means none.
pub(super) fn as_line_feeds(given: &str) -> Cow<'_, str> {
    if given.contains("\r\n") {
        Cow::Owned(given.replace("\r\n", "\n"))
    } else {
        Cow::Borrowed(given)
    }
}

/// New content for a whole file, with the byte order mark and the line ends of the old.
pub fn in_shape_of(old: &str, new: &str) -> String {
    let mark = if old.starts_with(BYTE_ORDER_MARK) && !new.starts_with(BYTE_ORDER_MARK) {
        "\u{feff}"
    } else {
        ""
    };
    format!("{mark}{}", in_ends_of(old.as_bytes(), new))
}

/// `new` with line ends as in `sample`, a part of a file. Content that has carriage returns of its
/// own means them, and a sample with both kinds, or none, says nothing.
pub(super) fn in_ends_of<'a>(sample: &[u8], new: &'a str) -> Cow<'a, str> {
    match Ends::of(sample) {
        Ends::All(end @ End::CarriageReturnLineFeed) if !new.contains("\r\n") => {
            Cow::Owned(new.replace('\n', end.text()))
        }
        Ends::All(_) | Ends::Mixed(_) => Cow::Borrowed(new),
    }
}

pub(super) fn line_feeds(text: &str) -> usize {
    text.bytes().filter(|byte| *byte == b'\n').count()
}

#[cfg(test)]
#[path = "endings_tests.rs"]
mod tests;
