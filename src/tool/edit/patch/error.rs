//! What can be wrong with a diff, in words from which a model can write a better one.

use std::fmt;

use crate::limits::PATCH_OFFSET_LINES_MAX;
use crate::tool::edit::endings::TooLarge;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    #[error(
        "`diff` has no hunk: it must be a unified diff, in which each begins with a line like \
         `@@ -3,4 +3,5 @@`"
    )]
    NoHunks,
    #[error("`diff` is for several files: call patch once for each")]
    SeveralFiles,
    #[error("`diff` is binary, and only text can be patched")]
    Binary,
    #[error("`diff` deletes the file, which patch does not")]
    Deletes,
    #[error(
        "`diff` renames or copies the file: use rename or copy_file, and patch its lines alone"
    )]
    Renames,
    #[error("`diff` makes a new file (`--- /dev/null`), but there is one with {count} lines")]
    NotNew { count: usize },
    #[error(
        "hunk {number} begins with `{header}`, which must be like `@@ -3,4 +3,5 @@`: first line and \
         count of the old lines, then of the new"
    )]
    Header { number: usize, header: String },
    #[error(
        "hunk {number} says that it has {old_said} old and {new_said} new lines, but it has {old} and \
         {new} (context counts as both): its header should be `{header}`, unless lines are missing"
    )]
    Counts {
        number: usize,
        old_said: usize,
        new_said: usize,
        old: usize,
        new: usize,
        header: String,
    },
    #[error("hunk {number} adds and removes nothing")]
    Unchanging { number: usize },
    #[error("hunk {number} begins before hunk {} ends: hunks must be in order and apart", .number - 1)]
    OutOfOrder { number: usize },
    #[error("hunk {number} has `\\ No newline at end of file` where it is not the end")]
    MisplacedMark { number: usize },
    #[error("hunk {number} says that the file's last line has no line end, but it has one")]
    LastLineEnds { number: usize },
    #[error(
        "hunk {number} does not fit at line {line}, nor within {PATCH_OFFSET_LINES_MAX} lines of it\
         {misfit}\nexpected:\n{expected}\nfound:\n{found}"
    )]
    Mismatch { number: usize, line: usize, misfit: Misfit, expected: String, found: String },
    #[error("hunk {number} begins at line {line}, but the file has {count} lines")]
    Beyond { number: usize, line: usize, count: usize },
    #[error(
        "hunk {number} does not fit at line {line}, and fits equally near at lines {before} and \
         {after}: correct its line number or give more context"
    )]
    Ambiguous { number: usize, line: usize, before: usize, after: usize },
    #[error("`diff` changes nothing")]
    NoChange,
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
}

/// In what a hunk and the file differ where it should fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// The new lines are there already.
    Applied,
    Whitespace,
    /// The lines are there, but the hunk says that they are the file's last.
    NotAtEnd,
    /// The first line that differs, counted from 1.
    From {
        line: usize,
    },
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Applied => f.write_str("; it is applied already"),
            Self::Whitespace => f.write_str("; only whitespace differs"),
            Self::NotAtEnd => {
                f.write_str("; its lines are there, but not at the end of the file as it says")
            }
            Self::From { line } => write!(f, "; line {line} is the first that differs"),
        }
    }
}
