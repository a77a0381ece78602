//! The text of a configuration file and the name it is shown by; offsets become lines and columns
//! here. It never looks at what the text says.

use std::io;
use std::path::Path;

use super::ConfigError;
use crate::limits;
use crate::world::{Access, Fs};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// What errors call it.
    pub name: String,
    pub text: String,
}

impl Source {
    /// Reads the file at an absolute path. Links are followed: people keep their configuration
    /// under version control elsewhere and link to it.
    pub fn read(fs: &dyn Fs, path: &Path) -> Result<Self, ConfigError> {
        let fault = |source: io::Error| match source.kind() {
            io::ErrorKind::NotFound => ConfigError::Missing { path: path.to_owned() },
            io::ErrorKind::FileTooLarge => {
                ConfigError::TooLarge { path: path.to_owned(), bytes_max: limits::CONFIG_BYTES_MAX }
            }
            _ => ConfigError::Read { path: path.to_owned(), source },
        };
        let resolved = fs.canonical(path).map_err(fault)?;
        let (Some(parent), Some(name)) = (resolved.parent(), resolved.file_name()) else {
            return Err(fault(io::ErrorKind::IsADirectory.into()));
        };
        let bytes = fs
            .dir(parent)
            .and_then(|dir| dir.open(Path::new(name), Access::Read))
            .and_then(|file| file.read_all(limits::CONFIG_BYTES_MAX))
            .map_err(fault)?;
        Self::of(path, bytes)
    }

    /// The bytes of the file at `path` as text.
    pub fn of(path: &Path, bytes: Vec<u8>) -> Result<Self, ConfigError> {
        let name = path.display().to_string();
        String::from_utf8(bytes)
            .map(|text| {
                // Some editors put a byte order mark there, which nobody can see.
                let text = text.trim_start_matches('\u{feff}').to_owned();
                Self { name, text }
            })
            .map_err(|error| not_text(path, error.as_bytes(), error.utf8_error().valid_up_to()))
    }
}

fn not_text(path: &Path, bytes: &[u8], valid_bytes: usize) -> ConfigError {
    let text = str::from_utf8(&bytes[..valid_bytes]).expect("text is valid up to its first fault");
    let Position { line, column } = position(text, valid_bytes);
    ConfigError::NotText { path: path.to_owned(), line, column }
}

/// Both count from 1, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    pub line: usize,
    pub column: usize,
}

/// Where a byte offset lies; one past the end is the end.
pub fn position(text: &str, offset: usize) -> Position {
    let before = &text[..text.floor_char_boundary(offset)];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    Position {
        line: before.matches('\n').count() + 1,
        column: before[line_start..].chars().count() + 1,
    }
}

#[cfg(test)]
#[path = "source_tests.rs"]
mod tests;
