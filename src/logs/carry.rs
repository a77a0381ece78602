//! The files of an agent that got another id: they become those of the new id. Where there are some of
//! that id already, of an earlier agent, they are continued, as they would have been by a new agent.
//! It blocks for as long as the disk takes.

use std::io::{self, ErrorKind};
use std::path::Path;

use super::queue::LogFile;
use crate::id::AgentId;
use crate::limits::LOG_CARRY_BYTES;
use crate::world::{Access, Dir, Fs};

pub(super) fn carry(fs: &dyn Fs, logs: &Path, from: &AgentId, to: &AgentId) -> io::Result<()> {
    let root = match fs.dir(logs) {
        // Nothing was ever written.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        found => found?,
    };
    let [from, to] = [from, to].map(|agent| Path::new(agent.as_str()));
    if !exists(root.as_ref(), from)? {
        return Ok(());
    }
    if !exists(root.as_ref(), to)? {
        return root.rename(from, to);
    }
    for file in LogFile::ALL {
        let [from, to] = [from, to].map(|agent| agent.join(file.name()));
        if !exists(root.as_ref(), &from)? {
            continue;
        }
        if exists(root.as_ref(), &to)? {
            append(root.as_ref(), &from, &to)?;
            root.remove_file(&from)?;
        } else {
            root.rename(&from, &to)?;
        }
    }
    root.remove_dir(from)
}

fn exists(root: &dyn Dir, path: &Path) -> io::Result<bool> {
    match root.stat(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn append(root: &dyn Dir, from: &Path, to: &Path) -> io::Result<()> {
    let (from, to) = (root.open(from, Access::Read)?, root.open(to, Access::Write)?);
    let end = to.stat()?.len;
    let mut piece = vec![0; LOG_CARRY_BYTES];
    let mut done = 0;
    loop {
        let count = from.read_at(&mut piece, done)?;
        if count == 0 {
            return Ok(());
        }
        let written = to.write_at(&piece[..count], end + done);
        if written.is_err() {
            // All of it stays where it was; half of it twice would be worth less.
            let _ = to.set_len(end);
            return written;
        }
        done += count as u64;
    }
}
