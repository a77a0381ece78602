//! What is still to be done to files, noted beside them: one whose agent gets another name is to follow it.
//! The name of an agent is in the database and the file is not, so no commit holds both. Calls block for as
//! long as the disk takes.

use std::path::{Path, PathBuf};

use super::directory::{Directory, FILE_MODE, disk, remove};
use super::error::SessionError;
use super::name::{Session, SessionName};
use crate::limits::NOTE_BYTES_MAX;
use crate::world::Access;

/// Before the name that a session had.
const NOTE: &str = ".renaming-";

/// The file of a session is to follow its agent to another name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rename {
    pub from: SessionName,
    pub to: SessionName,
    /// The number of its agent: by the time that it is done, another may have one of the names.
    pub agent: u64,
}

/// A note that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Noted {
    Rename(Rename),
    /// Of nobody that can be read, beside the session of this name.
    Nonsense(SessionName),
}

impl Noted {
    pub fn from(&self) -> &SessionName {
        match self {
            Self::Rename(Rename { from, .. }) | Self::Nonsense(from) => from,
        }
    }
}

impl Directory {
    /// Notes durably what is to be done once the agent has its new name.
    pub fn note_rename(&self, rename: &Rename) -> Result<(), SessionError> {
        let Rename { from, to, agent } = rename;
        let session = Session::from(from.clone());
        let text = format!("{to} {agent}");
        let written = self.made(&session).and_then(|dir| {
            dir.replace(&note(from), text.as_bytes(), FILE_MODE, &self.temp_name())
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

    /// What was noted and is not forgotten.
    pub fn noted_renames(&self) -> Vec<Noted> {
        // Which session it is makes no difference: all lie in one directory.
        let any = SessionName::parse("a").expect("it is a name").into();
        let Ok(Some(dir)) = self.open(&any) else { return Vec::new() };
        let entries = dir.list().unwrap_or_default().into_iter();
        let noted = entries.filter_map(|entry| {
            let from = SessionName::parse(entry.name.to_str()?.strip_prefix(NOTE)?).ok()?;
            let file = dir.open(Path::new(&entry.name), Access::Read).ok()?;
            let text = String::from_utf8(file.read_all(NOTE_BYTES_MAX).ok()?).unwrap_or_default();
            Some(read(&text, &from).map_or(Noted::Nonsense(from), Noted::Rename))
        });
        noted.collect()
    }
}

fn read(text: &str, from: &SessionName) -> Option<Rename> {
    let (to, agent) = text.split_once(' ')?;
    let (to, agent) = (SessionName::parse(to).ok()?, agent.parse().ok()?);
    Some(Rename { from: from.clone(), to, agent })
}

fn note(from: &SessionName) -> PathBuf {
    PathBuf::from(format!("{NOTE}{from}"))
}
