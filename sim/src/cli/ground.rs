//! The ground a scenario stands on outside the simulation: a directory of this machine in place of
//! `/project`, with the scenario's files in it.

use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use anyhow::Context;
use toml::{Table, Value};

use super::{Verdict, output};
use crate::disk::Item;
use crate::machine::PROJECT;
use crate::play::file_differs;
use crate::scenario::{Document, FileSpec, Files, Scenario, Wire};

/// A scenario whose paths are those of this machine.
#[derive(Debug)]
pub struct Ground {
    pub scenario: Scenario,
    /// What stands for `/project`.
    pub root: PathBuf,
    /// Removed at the end, where nobody named a directory.
    _made: Option<tempfile::TempDir>,
}

impl Ground {
    /// Reads a scenario for a directory, or for one that is made for it, and puts its files there. What
    /// is wrong with the scenario is told and counts as usage.
    pub fn prepare(file: &Path, root: Option<&Path>) -> anyhow::Result<Result<Self, Verdict>> {
        let written = match super::read(file) {
            Ok(written) => written,
            Err(verdict) => return Ok(Err(verdict)),
        };
        let made = match root {
            Some(_) => None,
            None => Some(tempfile::tempdir().context("cannot make a directory for /project")?),
        };
        let root = root.or_else(|| made.as_ref().map(tempfile::TempDir::path)).unwrap_or(file);
        std::fs::create_dir_all(root)
            .with_context(|| format!("cannot make the directory {}", root.display()))?;
        let root = root.canonicalize().context("the directory for /project is gone")?;
        let shown =
            root.to_str().context("the directory for /project has a name that is no text")?;
        let text = std::fs::read_to_string(file)?;
        let mut document = Document::parse(&text)?;
        *document.root_mut() = moved_table(document.root(), shown);
        let scenario = Scenario::parse(&file.display().to_string(), &document.text());
        let mut scenario = match scenario {
            Ok(scenario) => scenario,
            Err(problems) => anyhow::bail!("{} cannot be moved: {}", file.display(), problems[0]),
        };
        for (step, written) in scenario.steps.iter_mut().zip(written.steps) {
            // People know it by its place in their own file.
            step.line = written.line;
        }
        if scenario.wire == Wire::Script {
            // A script is read by the server itself; over a socket any wire has the same answers.
            scenario.wire = Wire::Openai;
        }
        put(&scenario.files, &root).with_context(|| format!("cannot fill {}", root.display()))?;
        Ok(Ok(Self { scenario, root, _made: made }))
    }

    /// Whether something in it is about what stands for `/project`.
    pub fn uses_project(&self) -> bool {
        let root = self.root.to_str().unwrap_or_default();
        self.scenario.text.contains(root)
    }

    /// What of the files that are expected at the end is not as it should be, a line each.
    pub fn unexpected(&self) -> Vec<String> {
        let mut found = Vec::new();
        for (path, spec) in &self.scenario.expect.files {
            if !path.starts_with(&self.root) {
                output::note(&format!("left out: {} is not in {PROJECT}", path.display()));
                continue;
            }
            let problem = match item(path) {
                Ok(item) => file_differs(spec, item.as_ref()),
                Err(error) => Some(format!("cannot be read: {error}")),
            };
            found.extend(problem.map(|problem| format!("{}: {problem}", path.display())));
        }
        found
    }
}

/// What there is under a path of this machine.
fn item(path: &Path) -> io::Result<Option<Item>> {
    let found = match std::fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mode = found.permissions().mode() & 0o7777;
    Ok(Some(if found.is_symlink() {
        Item::Link { target: std::fs::read_link(path)? }
    } else if found.is_dir() {
        Item::Dir { mode }
    } else {
        Item::File { content: std::fs::read(path)?, mode }
    }))
}

/// Puts files there; what lies outside is told and left out.
pub fn put(files: &Files, root: &Path) -> io::Result<()> {
    for (path, spec) in files {
        if path.starts_with(root) {
            put_one(path, spec)?;
        } else {
            output::note(&format!("left out: {} is not in {PROJECT}", path.display()));
        }
    }
    Ok(())
}

fn put_one(path: &Path, spec: &FileSpec) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    match spec {
        FileSpec::Directory { mode } => {
            std::fs::create_dir_all(path)?;
            set_mode(path, *mode)
        }
        FileSpec::Symlink(target) => {
            remove(path)?;
            symlink(target, path)
        }
        FileSpec::Remove => remove(path),
        FileSpec::Text { mode, .. } | FileSpec::Bytes { mode, .. } => {
            std::fs::write(path, spec.content().expect("a file has a content"))?;
            set_mode(path, *mode)
        }
    }
}

fn set_mode(path: &Path, mode: Option<u32>) -> io::Result<()> {
    let permissions = mode.map(std::fs::Permissions::from_mode);
    permissions.map_or(Ok(()), |permissions| std::fs::set_permissions(path, permissions))
}

/// A directory with something in it stays: it is not ours to empty.
fn remove(path: &Path) -> io::Result<()> {
    let removed = match std::fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => std::fs::remove_dir(path),
        Ok(_) => std::fs::remove_file(path),
        Err(error) => Err(error),
    };
    removed.or_else(|error| match error.kind() {
        io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    })
}

fn moved_table(table: &Table, root: &str) -> Table {
    table.iter().map(|(key, value)| (moved_text(key, root), moved(value, root))).collect()
}

fn moved(value: &Value, root: &str) -> Value {
    match value {
        Value::String(text) => Value::String(moved_text(text, root)),
        Value::Array(items) => Value::Array(items.iter().map(|item| moved(item, root)).collect()),
        Value::Table(table) => Value::Table(moved_table(table, root)),
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) | Value::Datetime(_) => {
            value.clone()
        }
    }
}

/// A text with the directory in place of `/project`, wherever that is a whole name.
fn moved_text(text: &str, root: &str) -> String {
    let goes_on = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let mut pieces = text.split(PROJECT);
    let mut moved = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let inside = piece.starts_with(goes_on) || moved.ends_with(goes_on);
        moved.push_str(if inside { PROJECT } else { root });
        moved.push_str(piece);
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_stands_for_the_project_wherever_that_is_a_whole_name() {
        let moved = |text| moved_text(text, "/tmp/x");
        assert_eq!(moved("/project"), "/tmp/x");
        assert_eq!(moved("cat /project/a /project"), "cat /tmp/x/a /tmp/x");
        assert_eq!(moved("re:^/project/.*"), "re:^/tmp/x/.*");
        assert_eq!(moved("/projects and /home/project"), "/projects and /home/project");
        assert_eq!(moved("nothing"), "nothing");
    }
}
