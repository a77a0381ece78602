//! What is wrong with a configuration, in our own words: where, what, and what to do about it.
//! It never decides what is wrong; the readers do.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::io;
use std::path::PathBuf;

use super::layer::{Form, Layer};
use super::tree::At;
use super::{Position, Source, position};
use crate::limits;

#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("there is no configuration file {}", path.display())]
    Missing { path: PathBuf },
    #[error("cannot read the configuration file {}", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error(
        "{}: the file is larger than the {bytes_max} bytes a configuration may have",
        path.display()
    )]
    TooLarge { path: PathBuf, bytes_max: u64 },
    #[error(
        "{}:{line}:{column}: the file is not UTF-8 text\n  hint: save it again as UTF-8",
        path.display()
    )]
    NotText { path: PathBuf, line: usize, column: usize },
    /// The problems in the order of the sources; `untold` more were found than are listed.
    #[error("{}", Report { problems, untold: *untold })]
    Invalid { problems: Vec<Problem>, untold: usize },
}

/// One thing that is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file, the variable or the flag that says it.
    pub source: String,
    /// Where in a file; what a variable or a flag says is one value.
    pub position: Option<Position>,
    pub message: String,
    pub hint: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { source, position, message, hint } = self;
        write!(f, "{source}:")?;
        if let Some(Position { line, column }) = position {
            write!(f, "{line}:{column}:")?;
        }
        write!(f, " {message}\n  hint: {hint}")
    }
}

struct Report<'a> {
    problems: &'a [Problem],
    untold: usize,
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{problem}")?;
        }
        if self.untold > 0 {
            write!(f, "\nand {} more", self.untold)?;
        }
        Ok(())
    }
}

/// Collects the problems of all sources. Many readers hold it at once and only add to it.
#[derive(Debug)]
pub(super) struct Problems<'a> {
    layers: &'a [Layer],
    found: RefCell<Vec<(At, Problem)>>,
    untold: Cell<usize>,
}

impl<'a> Problems<'a> {
    pub(super) fn new(layers: &'a [Layer]) -> Self {
        Self { layers, found: RefCell::default(), untold: Cell::default() }
    }

    pub(super) fn add(&self, at: At, message: String, hint: String) {
        let mut found = self.found.borrow_mut();
        if found.len() == limits::CONFIG_PROBLEMS_MAX {
            self.untold.set(self.untold.get() + 1);
            return;
        }
        let Layer { source: Source { name, text }, form } = &self.layers[at.source];
        let position = match form {
            Form::File | Form::Project { .. } => Some(position(text, at.offset)),
            Form::Value { .. } => None,
        };
        let problem = Problem { source: name.clone(), position, message, hint };
        found.push((at, problem));
    }

    /// The value, unless there were problems.
    pub(super) fn settle<T>(self, value: T) -> Result<T, ConfigError> {
        let mut found = self.found.into_inner();
        if found.is_empty() {
            return Ok(value);
        }
        found.sort_by_key(|(at, _)| *at);
        Err(ConfigError::Invalid {
            problems: found.into_iter().map(|(_, problem)| problem).collect(),
            untold: self.untold.get(),
        })
    }
}
