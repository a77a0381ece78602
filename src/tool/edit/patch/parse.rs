//! From the text of a unified diff to its hunks. Knows nothing of the file: whether they fit is
//! `place`. What stands around the hunks, mail, fences or git's own lines, is passed over unless it
//! asks for what a patch of one file's text cannot do.

use super::error::PatchError;
use crate::tool::edit::endings::LastLine;
use crate::tool::edit::snippet::cut;

#[derive(Debug)]
pub(super) struct Diff<'a> {
    pub(super) origin: Origin,
    pub(super) hunks: Vec<Hunk<'a>>,
}

/// What the diff says it is against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    File,
    Nothing,
}

#[derive(Debug)]
pub(super) struct Hunk<'a> {
    pub(super) number: usize,
    /// Where it begins in the old lines, counted from 0.
    pub(super) at: usize,
    pub(super) old_count: usize,
    pub(super) lines: Vec<Line<'a>>,
    /// Whether its last old line is marked as the last of the file, without an end.
    pub(super) old_last: LastLine,
    pub(super) new_last: LastLine,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    Context(&'a str),
    Removed(&'a str),
    Added(&'a str),
}

impl<'a> Diff<'a> {
    pub(super) fn parse(diff: &'a str) -> Result<Self, PatchError> {
        let lines: Vec<&str> = diff.strip_suffix('\n').unwrap_or(diff).split('\n').collect();
        let mut parsed = Self { origin: Origin::File, hunks: Vec::new() };
        let mut names = Names::default();
        let mut next = 0;
        // The last hunk, while nothing but empty lines stands after it.
        let mut open: Option<usize> = None;
        while let Some(line) = lines.get(next) {
            if line.starts_with("@@") {
                let (hunk, length) = Hunk::parse(&lines[next..], parsed.hunks.len() + 1)?;
                parsed.add(hunk)?;
                open = Some(next);
                next += length;
                continue;
            }
            // A mail's signature follows its patch.
            if !parsed.hunks.is_empty() && matches!(*line, "-- " | "--") {
                break;
            }
            if !parsed.hunks.is_empty() && names_file(&lines[next..]) {
                return Err(PatchError::SeveralFiles);
            }
            if let Some(start) = open.filter(|_| line.starts_with([' ', '+', '-'])) {
                let header = Header::parse(lines[start]).expect("the hunk was read from it");
                return Err(header.counts_error(&lines[start..], parsed.hunks.len()));
            }
            open = open.filter(|_| line.is_empty());
            next += names.read(&lines[next..])?;
        }
        if names.old == Some("/dev/null") {
            parsed.origin = Origin::Nothing;
        }
        if parsed.hunks.is_empty() { Err(PatchError::NoHunks) } else { Ok(parsed) }
    }

    fn add(&mut self, hunk: Hunk<'a>) -> Result<(), PatchError> {
        let number = hunk.number;
        if let Some(before) = self.hunks.last() {
            if before.marked() {
                return Err(PatchError::MisplacedMark { number: before.number });
            }
            if hunk.at < before.at + before.old_count {
                return Err(PatchError::OutOfOrder { number });
            }
        }
        self.hunks.push(hunk);
        Ok(())
    }

    /// What the diff says of the end of the file's last line, if anything.
    pub(super) fn last_line(&self) -> Option<LastLine> {
        let last = self.hunks.last().filter(|hunk| hunk.marked())?;
        Some(last.new_last)
    }
}

/// Which files the lines outside of hunks name.
#[derive(Default)]
struct Names<'a> {
    git: usize,
    old: Option<&'a str>,
}

impl<'a> Names<'a> {
    /// Reads what is at the start of `lines`, outside of any hunk, and returns how many lines it is.
    fn read(&mut self, lines: &[&'a str]) -> Result<usize, PatchError> {
        let line = lines[0];
        if let Some((old, new)) = file_names(lines) {
            if new == "/dev/null" {
                return Err(PatchError::Deletes);
            }
            if self.old.replace(old).is_some() {
                return Err(PatchError::SeveralFiles);
            }
            return Ok(2);
        }
        let begins = |words: &[&str]| words.iter().any(|word| line.starts_with(word));
        if begins(&["diff --git "]) {
            self.git += 1;
            if self.git > 1 {
                return Err(PatchError::SeveralFiles);
            }
        }
        if begins(&["GIT binary patch", "Binary files "]) {
            return Err(PatchError::Binary);
        }
        if begins(&["deleted file mode "]) {
            return Err(PatchError::Deletes);
        }
        if begins(&["rename from ", "copy from "]) {
            return Err(PatchError::Renames);
        }
        Ok(1)
    }
}

/// Whether a file's part of a diff begins here.
fn names_file(lines: &[&str]) -> bool {
    file_names(lines).is_some() || lines[0].starts_with("diff --git ")
}

/// The old and the new name, where `lines` begin with both. A time may follow a name.
fn file_names<'a>(lines: &[&'a str]) -> Option<(&'a str, &'a str)> {
    let name = |line: &'a str, sign: &str| {
        let name = line.strip_prefix(sign)?;
        Some(name.split('\t').next().unwrap_or(name).trim())
    };
    Some((name(lines.first()?, "--- ")?, name(lines.get(1)?, "+++ ")?))
}

impl<'a> Hunk<'a> {
    /// Reads the hunk at the start of `lines`, and returns how many lines it is.
    fn parse(lines: &[&'a str], number: usize) -> Result<(Self, usize), PatchError> {
        let refused = || PatchError::Header { number, header: cut(lines[0]) };
        let header = Header::parse(lines[0]).ok_or_else(refused)?;
        let at = header.at().ok_or_else(refused)?;
        let mut hunk = Self {
            number,
            at,
            old_count: header.old,
            lines: Vec::new(),
            old_last: LastLine::AsInBody,
            new_last: LastLine::AsInBody,
        };
        let (mut old, mut new) = (0, 0);
        let mut next = 1;
        while old < header.old || new < header.new {
            let line = match lines.get(next).map(|line| (line.chars().next(), *line)) {
                Some((Some('\\'), _)) => {
                    hunk.mark();
                    next += 1;
                    continue;
                }
                // Editors and models lose the space of an empty context line.
                Some((None, _)) => Line::Context(""),
                Some((Some(' '), line)) => Line::Context(&line[1..]),
                Some((Some('-'), line)) => Line::Removed(&line[1..]),
                Some((Some('+'), line)) => Line::Added(&line[1..]),
                Some((Some(_), _)) | None => return Err(header.counts_error(lines, number)),
            };
            old += usize::from(line.in_old().is_some());
            new += usize::from(line.in_new().is_some());
            if old > header.old || new > header.new {
                return Err(header.counts_error(lines, number));
            }
            hunk.push(line)?;
            next += 1;
        }
        if lines.get(next).is_some_and(|line| line.starts_with('\\')) {
            hunk.mark();
            next += 1;
        }
        if hunk.lines.iter().all(|line| matches!(line, Line::Context(_))) {
            return Err(PatchError::Unchanging { number });
        }
        Ok((hunk, next))
    }

    fn push(&mut self, line: Line<'a>) -> Result<(), PatchError> {
        let after_old = line.in_old().is_some() && self.old_last == LastLine::Open;
        let after_new = line.in_new().is_some() && self.new_last == LastLine::Open;
        if after_old || after_new {
            return Err(PatchError::MisplacedMark { number: self.number });
        }
        self.lines.push(line);
        Ok(())
    }

    /// The line before is the last of the file, without an end.
    fn mark(&mut self) {
        match self.lines.last() {
            Some(Line::Context(_)) => {
                self.old_last = LastLine::Open;
                self.new_last = LastLine::Open;
            }
            Some(Line::Removed(_)) => self.old_last = LastLine::Open,
            Some(Line::Added(_)) => self.new_last = LastLine::Open,
            None => {}
        }
    }

    /// Whether it says of a line that it is the file's last.
    pub(super) fn marked(&self) -> bool {
        self.old_last == LastLine::Open || self.new_last == LastLine::Open
    }

    pub(super) fn old_lines(&self) -> impl Iterator<Item = &'a str> {
        self.lines.iter().filter_map(|line| line.in_old())
    }

    pub(super) fn new_lines(&self) -> impl Iterator<Item = &'a str> {
        self.lines.iter().filter_map(|line| line.in_new())
    }
}

impl<'a> Line<'a> {
    fn in_old(self) -> Option<&'a str> {
        match self {
            Self::Context(line) | Self::Removed(line) => Some(line),
            Self::Added(_) => None,
        }
    }

    fn in_new(self) -> Option<&'a str> {
        match self {
            Self::Context(line) | Self::Added(line) => Some(line),
            Self::Removed(_) => None,
        }
    }
}

/// `@@ -{old_start},{old} +{new_start},{new} @@`; a count of 1 may be left out.
#[derive(Clone, Copy)]
struct Header {
    old_start: usize,
    old: usize,
    new_start: usize,
    new: usize,
}

impl Header {
    fn parse(line: &str) -> Option<Self> {
        let (ranges, _section) = line.strip_prefix("@@ ")?.split_once(" @@")?;
        let (old, new) = ranges.split_once(' ')?;
        let (old_start, old) = range(old.strip_prefix('-')?)?;
        let (new_start, new) = range(new.strip_prefix('+')?)?;
        Some(Self { old_start, old, new_start, new })
    }

    /// The first old line, counted from 0. Where there is none, the header names the line before.
    fn at(self) -> Option<usize> {
        if self.old == 0 { Some(self.old_start) } else { self.old_start.checked_sub(1) }
    }

    /// What is wrong with the counts of the hunk at the start of `lines`: how many there are, up to
    /// the next hunk or what can be no line of one.
    fn counts_error(self, lines: &[&str], number: usize) -> PatchError {
        let ends = |index: &usize| {
            let line = lines[*index];
            let body = line.is_empty() || line.starts_with([' ', '+', '-', '\\']);
            !body || line == "-- " || file_names(&lines[*index..]).is_some()
        };
        let end = (1..lines.len()).find(ends).unwrap_or(lines.len());
        let mut body = &lines[1..end];
        while let [rest @ .., ""] = body {
            body = rest;
        }
        let count = |signs: [char; 2]| {
            body.iter().filter(|line| line.is_empty() || line.starts_with(signs)).count()
        };
        let (old, new) = (count([' ', '-']), count([' ', '+']));
        let header = format!("@@ -{},{old} +{},{new} @@", self.old_start, self.new_start);
        PatchError::Counts { number, old_said: self.old, new_said: self.new, old, new, header }
    }
}

/// A first line and a count. No file has as many lines as would not fit.
fn range(text: &str) -> Option<(usize, usize)> {
    let number = |text: &str| text.parse::<u32>().ok().and_then(|number| number.try_into().ok());
    match text.split_once(',') {
        Some((start, count)) => Some((number(start)?, number(count)?)),
        None => Some((number(text)?, 1)),
    }
}
