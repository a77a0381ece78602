//! Reads the `[[model]]` entries of a scenario file; everything else in it is passed over.
//! It tells what is wrong with its place, and never plays anything.

use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::Spanned;

use super::{Entry, EntryProblem, Script};
use crate::limits::SCRIPT_BYTES_MAX;
use crate::world::{Access, Fs};

#[derive(Debug, thiserror::Error)]
pub enum ScriptFileError {
    #[error("cannot read the script {}", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{}: the script is not UTF-8 text", path.display())]
    NotText { path: PathBuf },
    /// Line and column count from 1, columns in characters.
    #[error("{}:{line}:{column}: {message}", path.display())]
    Syntax { path: PathBuf, line: usize, column: usize, message: String },
    #[error("{}:{line}: entry {number} of the script: {problem}", path.display())]
    Entry { path: PathBuf, line: usize, number: usize, problem: EntryProblem },
}

#[derive(Deserialize)]
struct Scenario {
    #[serde(default)]
    model: Vec<Spanned<Entry>>,
}

/// Reads the file at an absolute path, following links: it is the operator's own.
pub fn read(fs: &dyn Fs, path: &Path) -> Result<Script, ScriptFileError> {
    let content = content(fs, path)
        .map_err(|source| ScriptFileError::Read { path: path.to_owned(), source })?;
    let text = String::from_utf8(content)
        .map_err(|_| ScriptFileError::NotText { path: path.to_owned() })?;
    parse(path, &text)
}

fn content(fs: &dyn Fs, path: &Path) -> io::Result<Vec<u8>> {
    let resolved = fs.canonical(path)?;
    let (Some(parent), Some(name)) = (resolved.parent(), resolved.file_name()) else {
        return Err(io::ErrorKind::IsADirectory.into());
    };
    fs.dir(parent)?.open(Path::new(name), Access::Read)?.read_all(SCRIPT_BYTES_MAX)
}

fn parse(path: &Path, text: &str) -> Result<Script, ScriptFileError> {
    let scenario: Scenario = toml::from_str(text).map_err(|error| {
        let (line, column) = place(text, error.span().map_or(0, |span| span.start));
        let message = error.message().trim().replace('\n', ", ");
        ScriptFileError::Syntax { path: path.to_owned(), line, column, message }
    })?;
    let starts: Vec<usize> = scenario.model.iter().map(|entry| entry.span().start).collect();
    let entries = scenario.model.into_iter().map(Spanned::into_inner).collect();
    Script::new(entries).map_err(|error| ScriptFileError::Entry {
        path: path.to_owned(),
        line: place(text, starts[error.number - 1]).0,
        number: error.number,
        problem: error.problem,
    })
}

/// Line and column of a byte offset.
fn place(text: &str, offset: usize) -> (usize, usize) {
    let before = &text[..text.floor_char_boundary(offset)];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        parse(Path::new("/s.toml"), text).unwrap_err().to_string()
    }

    #[test]
    fn only_the_model_entries_of_a_scenario_are_read() {
        let text = "schema = 1\n[files]\nx = 1\n[[model]]\nsays = \"a\"\n\
                    [[step]]\nsleep = \"5s\"\n[[model]]\nsays = \"b\"\ntimes = 2\n";
        let script = parse(Path::new("/s.toml"), text).unwrap();
        assert_eq!(script.left_over(), [(1, 1), (2, 2)]);
        assert_eq!(parse(Path::new("/s.toml"), "").unwrap().left_over(), []);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        assert_eq!(
            refusal("[[model]]\nsays = \"a\"\n[[model]]\nsayz = \"b\"\n").split(',').next(),
            Some("/s.toml:4:1: unknown field `sayz`")
        );
        assert_eq!(
            refusal("\n[[model]]\nsays = \"a\"\n\n[[model]]\nwhen = \"(\"\n"),
            "/s.toml:5: entry 2 of the script: `when` is no regular expression: unclosed group"
        );
        assert_eq!(
            refusal("[[model]]\nsays = 5\n"),
            "/s.toml:2:8: expected a string or a list of strings"
        );
        assert_eq!(
            refusal("[[model]]\nfault = { stall = \"body\" }\n"),
            "/s.toml:2:19: expected \"headers\" or a number of chunks"
        );
        assert!(refusal("x = [\n").starts_with("/s.toml:1:"), "{}", refusal("x = [\n"));
    }
}
