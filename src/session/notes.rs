//! What is still to be done to files, noted beside them: one whose agent gets another name is to follow it.
//! The name of an agent is in the database and the file is not, so no commit holds both. Calls block for as
//! long as the disk takes.

use std::path::{Path, PathBuf};

use super::directory::{Directory, FILE_MODE, disk, remove};
use super::error::SessionError;
use super::name::{Session, SessionName};
use crate::limits::AGENT_ID_CHARS_MAX;
use crate::world::Access;

/// Before the name that a session had.
const NOTE: &str = ".renaming-";

impl Directory {
    /// Notes durably that the file of `from` is to have the name `to`, once its agent has.
    pub fn note_rename(&self, from: &SessionName, to: &SessionName) -> Result<(), SessionError> {
        let session = Session::from(from.clone());
        let written = self.made(&session).and_then(|dir| {
            dir.replace(&note(from), to.as_str().as_bytes(), FILE_MODE, &self.temp_name())
        });
        written.map_err(|source| disk(&session, source))
    }

    pub fn forget_rename(&self, from: &SessionName) -> Result<(), SessionError> {
        let session = Session::from(from.clone());
        let forgotten = self.open(&session).and_then(|dir| match dir {
            Some(dir) => remove(dir.as_ref(), &note(from)).map(drop),
            None => Ok(()),
        });
        forgotten.map_err(|source| disk(&session, source))
    }

    /// What a server that died has noted: the names that sessions had, and those they are to have.
    pub fn noted_renames(&self) -> Vec<(SessionName, SessionName)> {
        // Which session it is makes no difference: all lie in one directory.
        let any = SessionName::parse("a").expect("it is a name").into();
        let Ok(Some(dir)) = self.open(&any) else { return Vec::new() };
        let entries = dir.list().unwrap_or_default().into_iter();
        let noted = entries.filter_map(|entry| {
            let from = SessionName::parse(entry.name.to_str()?.strip_prefix(NOTE)?).ok()?;
            let file = dir.open(Path::new(&entry.name), Access::Read).ok()?;
            let to = String::from_utf8(file.read_all(AGENT_ID_CHARS_MAX as u64).ok()?).ok()?;
            Some((from, SessionName::parse(&to).ok()?))
        });
        noted.collect()
    }
}

fn note(from: &SessionName) -> PathBuf {
    PathBuf::from(format!("{NOTE}{from}"))
}
