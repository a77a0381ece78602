//! What can be wrong with the files that a call names, in the words its model gets.
//! A message names the path as it was given and never another path of the host.

use std::fmt::{self, Write};
use std::io;

use super::seen::Stale;
use super::{UNCONFIRMED, WITHDRAWN};
use crate::limits::{FILE_READ_BYTES_MAX, PATH_CHARS_SHOWN_MAX};
use crate::world::LinkRefused;

/// A path as the model gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given(String);

impl Given {
    pub fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    pub fn text(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('`')?;
        for c in self.0.chars().take(PATH_CHARS_SHOWN_MAX) {
            write_plain(f, c)?;
        }
        let more = self.0.chars().nth(PATH_CHARS_SHOWN_MAX).is_some();
        f.write_str(if more { "…`" } else { "`" })
    }
}

/// Writes a character of a name such that the name stays on its line.
pub(super) fn write_plain(to: &mut impl Write, c: char) -> fmt::Result {
    if c.is_control() { write!(to, "{}", c.escape_default()) } else { to.write_char(c) }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    #[error("{given} is no path: it {why}")]
    NoPath { given: Given, why: &'static str },
    #[error("{given} is outside the working directory")]
    Outside { given: Given },
    #[error("{given} is outside of what is open to you")]
    NotOpen { given: Given },
    #[error("{given} is closed to agents of this server")]
    Closed { given: Given },
    #[error("{given} is where you may not write")]
    NotWritable { given: Given },
    #[error("{given} was left alone: {UNCONFIRMED}")]
    Unconfirmed { given: Given },
    #[error("{given} was left alone: it leads elsewhere than when it was confirmed")]
    LeadsElsewhere { given: Given },
    #[error("{given} exists already: set `overwrite` to replace it")]
    Exists { given: Given },
    #[error("{given} is the working directory itself, or holds it")]
    WorkingDir { given: Given },
    #[error("{destination} is {given} itself, or lies in it")]
    Same { given: Given, destination: Given },
    #[error("{given} was left as it is: {stale}")]
    Stale { given: Given, stale: Stale },
    #[error("{given} was left as it is: {why}")]
    NotEdited { given: Given, why: String },
    #[error("{given} does not exist")]
    Missing { given: Given },
    #[error("the directory of {given} does not exist")]
    NoParent { given: Given },
    #[error("{given} is not a directory, or leads through something that is none")]
    NotDir { given: Given },
    #[error("{given} is a directory, not a file")]
    IsDir { given: Given },
    #[error("{given} is no regular file")]
    Special { given: Given },
    #[error("{given} may not be used by the user of this server")]
    Denied { given: Given },
    #[error("{given} has a name that is too long")]
    LongName { given: Given },
    #[error("{given} leads through links that never end")]
    Circle { given: Given },
    #[error("{given} kept changing while it was opened")]
    Unsettled { given: Given },
    #[error("{given} is larger than {FILE_READ_BYTES_MAX} bytes, the most that is read of a file")]
    TooLarge { given: Given },
    #[error("{given} is not UTF-8 text: byte {at} belongs to no character")]
    NotText { given: Given, at: usize },
    #[error("{given} ends after line {lines}: there is no line {offset}")]
    PastEnd { given: Given, lines: usize, offset: u64 },
    #[error("{given} cannot be used: {kind}")]
    Failed { given: Given, kind: io::ErrorKind },
    #[error("`{argument}` is not valid: {why}")]
    Pattern { argument: &'static str, why: String },
    #[error("{WITHDRAWN}")]
    Withdrawn,
    /// Seen by nobody.
    #[error("nobody waits for this call any more")]
    Unwanted,
}

impl FileError {
    /// Whether this is a decision about a path, and not what the disk makes of it.
    pub fn is_refusal(&self) -> bool {
        match self {
            Self::NoPath { .. }
            | Self::Outside { .. }
            | Self::NotOpen { .. }
            | Self::Closed { .. }
            | Self::NotWritable { .. }
            | Self::Unconfirmed { .. }
            | Self::LeadsElsewhere { .. }
            | Self::Circle { .. } => true,
            Self::Exists { .. }
            | Self::WorkingDir { .. }
            | Self::Same { .. }
            | Self::Stale { .. }
            | Self::NotEdited { .. }
            | Self::Missing { .. }
            | Self::NoParent { .. }
            | Self::NotDir { .. }
            | Self::IsDir { .. }
            | Self::Special { .. }
            | Self::Denied { .. }
            | Self::LongName { .. }
            | Self::Unsettled { .. }
            | Self::TooLarge { .. }
            | Self::NotText { .. }
            | Self::PastEnd { .. }
            | Self::Failed { .. }
            | Self::Pattern { .. }
            | Self::Withdrawn
            | Self::Unwanted => false,
        }
    }

    /// What an error of the disk means for the path that met it.
    pub fn of(given: &Given, error: &io::Error) -> Self {
        let given = given.clone();
        if LinkRefused::is(error) {
            return Self::Unsettled { given };
        }
        match error.kind() {
            io::ErrorKind::NotFound => Self::Missing { given },
            io::ErrorKind::AlreadyExists => Self::Exists { given },
            // Said by nobody but us, of a path that leads elsewhere than a moment ago.
            io::ErrorKind::Interrupted => Self::Unsettled { given },
            io::ErrorKind::NotADirectory => Self::NotDir { given },
            io::ErrorKind::IsADirectory => Self::IsDir { given },
            io::ErrorKind::InvalidInput => Self::Special { given },
            io::ErrorKind::PermissionDenied => Self::Denied { given },
            io::ErrorKind::InvalidFilename => Self::LongName { given },
            io::ErrorKind::FileTooLarge => Self::TooLarge { given },
            kind => Self::Failed { given, kind },
        }
    }
}
