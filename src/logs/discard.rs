//! The files of an id that nobody has any more: how many bytes they have, and their end. What is not ours
//! in their directory stays, and the directory with it. It blocks for as long as the disk takes.

use std::io::{self, ErrorKind};
use std::path::Path;

use super::queue::LogFile;
use crate::id::AgentId;
use crate::world::{Fs, Kind};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Discard {
    Measure,
    Remove,
}

/// Returns how many bytes there are, or were.
pub(super) fn discard(fs: &dyn Fs, logs: &Path, agent: &AgentId, what: Discard) -> io::Result<u64> {
    let name = Path::new(agent.as_str());
    let opened = fs.dir(logs).and_then(|root| Ok((root.dir(name)?, root)));
    let (dir, root) = match opened {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(0),
        opened => opened?,
    };
    let mut bytes = 0;
    for file in LogFile::ALL.map(|file| Path::new(file.name())) {
        let found = match dir.stat(file) {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            found => found?,
        };
        if found.kind != Kind::File {
            continue;
        }
        bytes += found.len;
        if what == Discard::Remove {
            dir.remove_file(file)?;
        }
    }
    if what == Discard::Remove && dir.list()?.is_empty() {
        root.remove_dir(name)?;
    }
    Ok(bytes)
}
