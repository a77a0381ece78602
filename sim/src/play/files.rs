//! A scenario's files on the simulated disk: put there, and looked at when it ends.

use std::io;
use std::path::Path;

use serde_json::Value;

use crate::disk::{Disk, Item, View};
use crate::machine::HOME;
use crate::scenario::{FileSpec, Files, matches};

const FILE_MODE: u32 = 0o644;
const DIR_MODE: u32 = 0o755;
/// A server refuses to start in a home that others can enter, whoever has made it.
const HOME_MODE: u32 = 0o700;

/// Puts files on the disk as somebody outside the server would: at once and for good.
pub fn put(disk: &Disk, files: &Files) -> io::Result<()> {
    for (path, spec) in files {
        if is_below(path, HOME) && !disk.tree(View::Now).contains_key(Path::new(HOME)) {
            disk.put(Path::new(HOME), Item::Dir { mode: HOME_MODE })?;
        }
        match spec {
            FileSpec::Remove => remove(disk, path)?,
            FileSpec::Directory { mode } => {
                disk.put(path, Item::Dir { mode: mode.unwrap_or(DIR_MODE) })?;
            }
            FileSpec::Symlink(target) => {
                remove(disk, path)?;
                disk.put(path, Item::Link { target: target.clone() })?;
            }
            FileSpec::Text { mode, .. } | FileSpec::Bytes { mode, .. } => {
                disk.put(path, file(spec, mode.unwrap_or(FILE_MODE)))?;
            }
        }
    }
    Ok(())
}

/// Writes the home's mcp.json, unless the scenario has one of its own or no servers for it.
pub fn configure_mcp(disk: &Disk, servers: impl Iterator<Item = (String, Value)>) {
    let path = Path::new(HOME).join("mcp.json");
    let servers: serde_json::Map<String, Value> = servers.collect();
    if servers.is_empty() || disk.tree(View::Now).contains_key(&path) {
        return;
    }
    let text = serde_json::json!({"mcpServers": servers}).to_string();
    let spec = FileSpec::Text { text, repeat: 1, mode: Some(0o600) };
    put(disk, &[(path, spec)].into()).expect("a new disk takes a file");
}

fn remove(disk: &Disk, path: &Path) -> io::Result<()> {
    match disk.remove(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

fn file(spec: &FileSpec, mode: u32) -> Item {
    Item::File { content: spec.content().expect("a file has a content"), mode }
}

/// What of the expected files is not as it should be, a line each.
pub fn unexpected(disk: &Disk, expected: &Files) -> Vec<String> {
    let tree = disk.tree(View::Now);
    let differs = |(path, spec): (&std::path::PathBuf, &FileSpec)| {
        let problem = differs(spec, tree.get(path))?;
        Some(format!("{}: {problem}", path.display()))
    };
    expected.iter().filter_map(differs).collect()
}

/// What of a file is not as it should be.
pub fn differs(expected: &FileSpec, found: Option<&Item>) -> Option<String> {
    match (expected, found) {
        (FileSpec::Remove, None) | (FileSpec::Directory { .. }, Some(Item::Dir { .. })) => None,
        (FileSpec::Symlink(target), Some(Item::Link { target: found })) if target == found => None,
        (FileSpec::Text { text, repeat: 1, .. }, Some(Item::File { content, .. })) => {
            let found = String::from_utf8_lossy(content);
            let (text, found) = (Value::from(text.as_str()), Value::from(found));
            matches(&text, &found).err().map(|mismatch| mismatch.to_string())
        }
        (FileSpec::Text { .. } | FileSpec::Bytes { .. }, Some(Item::File { content, .. })) => {
            (expected.content().as_ref() != Some(content)).then(|| "other bytes".to_owned())
        }
        (FileSpec::Remove, Some(_)) => Some("there is something".to_owned()),
        (_, None) => Some("there is nothing".to_owned()),
        (_, Some(_)) => Some("there is something else".to_owned()),
    }
}

/// Whether a path lies in a directory.
pub fn is_below(path: &Path, directory: &str) -> bool {
    path.starts_with(directory)
}
