//! The system prompt of an agent that was given none: layers, from what is true of all agents to what is
//! true of this one's directory, each with its source named. What changes most often stands last, so
//! that providers find the rest in their caches.
//! Reads small files, and few: to be called inside the blocking seam.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::config::directories;
use crate::event::iso;
use crate::limits::{PROMPT_FILE_BYTES_MAX, PROMPT_FILES_BYTES_MAX};
use crate::policy::Permissions;
use crate::world::{Access, Fs, World};

const BUILT_IN: &str = "You are an agent of NEXUS3, a server that runs teams of agents. You work for \
    whoever sends you messages: a person, a program or another agent. Answer briefly and precisely. Use \
    your tools when they help, and say so when you cannot do what is asked.\n";
const OWN_NAME: &str = "NEXUS.md";
/// What a project's instructions may be called; the first that is there counts.
const PROJECT_NAMES: [&str; 3] = [OWN_NAME, "AGENTS.md", "CLAUDE.md"];

/// A prompt and the nearest of the files it was made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layered {
    pub text: Arc<str>,
    pub path: Option<PathBuf>,
}

/// Instructions and where they stand.
#[derive(Debug)]
struct Layer {
    path: PathBuf,
    text: String,
}

/// The prompt of an agent that works in `cwd`, both paths without links. Of the project nothing is read
/// that is closed to the agent, or that its parent may not read.
pub fn layered(world: &World, home: &Path, permissions: &Permissions) -> Layered {
    let fs = world.fs.as_ref();
    let cwd = permissions.grant().cwd.as_path();
    let dirs = directories(fs, cwd);
    let root = dirs.last().copied().unwrap_or(cwd);
    let is_open = |path: &Path| {
        let above = permissions.ceiling();
        path.starts_with(root)
            && !permissions.rights().is_blocked(path)
            && above.is_none_or(|above| above.roots.covers(path))
    };
    // The nearest first: where there is too much, it is the farthest that goes.
    let of_project = dirs
        .iter()
        .filter_map(|dir| PROJECT_NAMES.iter().find_map(|name| found(fs, dir, name, is_open)));
    let of_home = || found(fs, home, OWN_NAME, |path| path.starts_with(home));
    let mut layers = Vec::new();
    let mut left = PROMPT_FILES_BYTES_MAX;
    for layer in of_project.chain(std::iter::once_with(of_home).flatten()) {
        let Some(rest) = left.checked_sub(layer.text.len()) else {
            tracing::warn!(path = %layer.path.display(), "no room for it in a system prompt");
            continue;
        };
        left = rest;
        layers.push(layer);
    }
    let path = layers.first().map(|nearest| nearest.path.clone());
    let instructions = layers.iter().rev().map(|Layer { path, text }| {
        format!("# Instructions from {}\n\n{}\n", path.display(), text.trim())
    });
    let (os, now) = (world.environment.os(), iso(world.clock.now()));
    let date = now.split('T').next().unwrap_or_default();
    let environment = format!(
        "# Environment\n\nWorking directory: {}\nOperating system: {os}\nDate: {date}\n",
        cwd.display()
    );
    let built_in = std::iter::once(BUILT_IN.to_owned());
    let text = built_in.chain(instructions).chain([environment]).collect::<Vec<_>>().join("\n");
    Layered { text: text.into(), path }
}

/// The file `name` of a directory. A link may lead to another file that is open, and nowhere else: a
/// project can come from anyone, and what it links to would be shown to a model.
fn found(fs: &dyn Fs, dir: &Path, name: &str, is_open: impl Fn(&Path) -> bool) -> Option<Layer> {
    let path = dir.join(name);
    match read(fs, &path, is_open) {
        Ok(text) => Some(Layer { path, text }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "not taken into a system prompt");
            None
        }
    }
}

fn read(fs: &dyn Fs, path: &Path, is_open: impl Fn(&Path) -> bool) -> io::Result<String> {
    let resolved = fs.canonical(path)?;
    if !is_open(&resolved) {
        return Err(io::Error::other("it is closed, or a link that leads elsewhere"));
    }
    // From the root of the disk no link is followed: one that was swapped in meanwhile is refused.
    let way = resolved.strip_prefix("/").map_err(|_| io::ErrorKind::InvalidInput)?;
    let file = fs.dir(Path::new("/"))?.open(way, Access::Read)?;
    let mut content = vec![0; PROMPT_FILE_BYTES_MAX + 1];
    let mut len = 0;
    while len < content.len() {
        match file.read_at(&mut content[len..], len as u64)? {
            0 => break,
            more => len += more,
        }
    }
    content.truncate(len);
    text(content)
}

/// The text, cut at a character where it is too long.
fn text(mut content: Vec<u8>) -> io::Result<String> {
    let is_cut = content.len() > PROMPT_FILE_BYTES_MAX;
    content.truncate(PROMPT_FILE_BYTES_MAX);
    if is_cut
        && let Err(error) = str::from_utf8(&content)
        && error.error_len().is_none()
    {
        content.truncate(error.valid_up_to());
    }
    let text = String::from_utf8(content).map_err(|_| io::Error::other("it is no UTF-8"))?;
    let text = text.trim_start_matches('\u{feff}');
    Ok(if is_cut {
        format!("{text}\n\n[Only the first {PROMPT_FILE_BYTES_MAX} bytes are shown.]")
    } else {
        text.to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_file_is_cut_at_a_character_and_says_so() {
        let whole = text(vec![b'x'; PROMPT_FILE_BYTES_MAX]).unwrap();
        assert_eq!(whole.len(), PROMPT_FILE_BYTES_MAX);
        let long = format!("x{}", "é".repeat(PROMPT_FILE_BYTES_MAX));
        let cut = text(long.into_bytes()).unwrap();
        let note = "\n\n[Only the first 65536 bytes are shown.]";
        assert_eq!(cut, format!("x{}{note}", "é".repeat(PROMPT_FILE_BYTES_MAX / 2 - 1)));
        assert!(text(vec![b'x', 0xff]).is_err());
    }
}
