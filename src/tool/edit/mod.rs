//! What stands behind the tools that change files: a file's content and what a model asks for go in,
//! the new content and a report come out, or an error in words that help the model to do better.
//! Pure but for `save`: nothing here decides whether a file may be changed, and no engine opens one.
//!
//! Engines see text whose lines end with a line feed, whatever the file has; `endings` takes a file's
//! own shape off and puts it back. Each gives a list of changes, and everything outside of them stays
//! as it is to the byte.

mod strings; // edit_file, edit_file_batch
mod near; // what comes close to a text that is not there
mod lines; // edit_lines
mod pattern; // regex_replace
mod template; // the replacement of regex_replace
mod patch; // patch
mod snippet; // what a model is shown of a text
mod endings; // how lines end, and other shape
pub mod save; // from content to a file

use std::ops::Range;

pub use endings::{TooLarge, in_shape_of};
pub use lines::{LinesEdit, LinesError, edit_lines};
pub use near::Near;
pub use patch::{Misfit, PatchError, Patched, Placed, patch};
pub use pattern::{PatternEdit, PatternError, regex_replace};
pub use snippet::LineNumbers;
pub use strings::{BatchError, Edit, EditError, edit_file, edit_file_batch};
pub use template::TemplateError;

use endings::Text;

/// What became of a file's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edited {
    pub content: String,
    /// For the model: what was done, and the lines around it as they are now.
    pub report: String,
}

impl Edited {
    /// `spans` are where the text is new.
    fn new(text: &Text, summary: &str, spans: &[Range<usize>]) -> Result<Self, TooLarge> {
        let content = text.render()?;
        let report = format!("{summary}\n{}", snippet::around(text.body(), spans));
        Ok(Self { content, report })
    }
}
