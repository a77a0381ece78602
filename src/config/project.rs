//! The projects whose files a configuration may be made of: which directories they are, and what lies
//! there. Anybody can have written it, so that no link is followed, and what is hashed is what is
//! parsed. Whether it counts is for `trust` to say.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use ring::digest::{Context, SHA256};

use super::Source;
use crate::limits::{CONFIG_BYTES_MAX, PROJECT_DIRS_MAX};
use crate::world::{Access, Dir, Fs};

pub const FOLDER: &str = ".nexus3";
pub const CONFIG_FILE: &str = "config.json";
pub const MCP_FILE: &str = "mcp.json";

/// The directories from `cwd` up to the root of its repository; `cwd` alone where it is in none.
pub fn directories<'a>(fs: &dyn Fs, cwd: &'a Path) -> Vec<&'a Path> {
    let is_root = |dir: &Path| fs.dir(dir).and_then(|dir| dir.stat(Path::new(".git"))).is_ok();
    let up: Vec<&Path> = cwd.ancestors().take(PROJECT_DIRS_MAX).collect();
    match up.iter().position(|dir| is_root(dir)) {
        Some(root) => up[..=root].to_vec(),
        None => vec![cwd],
    }
}

/// What a directory brings along.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    /// Without links.
    pub dir: PathBuf,
    pub config: Option<Source>,
    /// The MCP servers that it offers, as its file has them.
    pub mcp: Option<Source>,
    /// Of everything that has to be trusted.
    pub hash: String,
}

#[derive(Debug, thiserror::Error)]
#[error("cannot read {}", path.display())]
pub struct Unreadable {
    pub path: PathBuf,
    #[source]
    pub source: io::Error,
}

impl Project {
    /// What lies in a directory, which is a path without links; None where there is nothing.
    pub fn read(fs: &dyn Fs, dir: &Path) -> Result<Option<Self>, Unreadable> {
        let unreadable = |name: &str, source| {
            let path = dir.join(FOLDER).join(name);
            Unreadable { path, source }
        };
        let opened = fs.dir(dir).map_err(|source| unreadable("", source))?;
        let read = |name| file(opened.as_ref(), name).map_err(|source| unreadable(name, source));
        let (config, mcp) = (read(CONFIG_FILE)?, read(MCP_FILE)?);
        if config.is_none() && mcp.is_none() {
            return Ok(None);
        }
        let hash = hash([&config, &mcp]);
        let text = |name: &str, bytes: Option<Vec<u8>>| {
            let path = dir.join(FOLDER).join(name);
            let text = bytes.map(|bytes| Source::of(&path, bytes)).transpose();
            text.map_err(|error| unreadable(name, io::Error::other(error)))
        };
        let (config, mcp) = (text(CONFIG_FILE, config)?, text(MCP_FILE, mcp)?);
        Ok(Some(Self { dir: dir.to_owned(), config, mcp, hash }))
    }
}

fn file(dir: &dyn Dir, name: &str) -> io::Result<Option<Vec<u8>>> {
    let path = Path::new(FOLDER).join(name);
    match dir.open(&path, Access::Read).and_then(|file| file.read_all(CONFIG_BYTES_MAX)) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Ok(None),
            _ => Err(error),
        },
    }
}

/// No two pairs of files run together: each has its length before it, and none is not empty.
fn hash(files: [&Option<Vec<u8>>; 2]) -> String {
    let mut context = Context::new(&SHA256);
    for file in files {
        let bytes = file.as_deref().unwrap_or_default();
        context.update(&[u8::from(file.is_some())]);
        context.update(&(bytes.len() as u64).to_be_bytes());
        context.update(bytes);
    }
    let digits = context.finish();
    digits.as_ref().iter().fold("sha256:".to_owned(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes text");
        text
    })
}
