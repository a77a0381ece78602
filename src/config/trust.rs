//! Which projects are trusted: by their directory and the hash of what they bring along, in
//! `trusted.json` of the home. Only the command line writes it; nothing of a server does.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::project::Project;
use crate::limits::TRUSTED_BYTES_MAX;
use crate::world::{Access, Dir, Fs, LinkRefused, Use, World};

const FILE: &str = "trusted.json";
const LOCK: &str = "trusted.lock";
const TEMP_PREFIX: &str = ".trusted.json.";
const TEMP_NAME_HEX: usize = 16;
const PRIVATE: u32 = 0o600;

/// What somebody said about a project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    Trusted,
    /// It was trusted, and is not what it was.
    Changed,
    Unknown,
}

/// Directory → hash. One whose name is no text cannot be written down, and is never trusted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trusted {
    pub directories: BTreeMap<String, String>,
}

#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    #[error("cannot read {}", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("others can change {}: run `chmod 600 {}`", path.display(), path.display())]
    Open { path: PathBuf },
    #[error("{} is no list of trusted projects: remove it, and trust them again", path.display())]
    Damaged { path: PathBuf },
    #[error("cannot write {}", path.display())]
    Write {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("another `nexus3 trust` is at work: try again")]
    Busy,
}

impl Trusted {
    /// Reads the list of a home; an empty one where there is none.
    pub fn read(fs: &dyn Fs, home: &Path) -> Result<Self, TrustError> {
        let path = home.join(FILE);
        let unreadable = |source| TrustError::Read { path: path.clone(), source };
        let file = fs.dir(home).and_then(|dir| dir.open(Path::new(FILE), Access::Read));
        let file = match file {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            file => file.map_err(unreadable)?,
        };
        if file.stat().map_err(unreadable)?.mode & 0o022 != 0 {
            return Err(TrustError::Open { path });
        }
        let bytes = file.read_all(TRUSTED_BYTES_MAX).map_err(unreadable)?;
        serde_json::from_slice(&bytes).map_err(|_| TrustError::Damaged { path })
    }

    pub fn standing(&self, project: &Project) -> Standing {
        match project.dir.to_str().and_then(|dir| self.directories.get(dir)) {
            None => Standing::Unknown,
            Some(hash) if *hash == project.hash => Standing::Trusted,
            Some(_) => Standing::Changed,
        }
    }

    /// Changes the list on the disk, all of it or nothing, and one after another: a change that is
    /// lost could be the one that takes trust away. The home is there already.
    pub fn change<T>(
        world: &World,
        home: &Path,
        change: impl FnOnce(&mut Self) -> T,
    ) -> Result<T, TrustError> {
        let unwritable = |source| TrustError::Write { path: home.join(FILE), source };
        let dir = world.fs.dir(home).map_err(unwritable)?;
        let lock = dir.open(Path::new(LOCK), Access::Create { mode: PRIVATE });
        let lock = lock.map_err(unwritable)?;
        lock.try_lock().map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => TrustError::Busy,
            _ => unwritable(error),
        })?;
        let mut trusted = Self::read(world.fs.as_ref(), home)?;
        let changed = change(&mut trusted);
        remove_leftovers(dir.as_ref());
        let mut text = serde_json::to_string_pretty(&trusted).expect("texts are JSON");
        text.push('\n');
        let temp = format!("{TEMP_PREFIX}{}", world.chance.hex(Use::TempName, TEMP_NAME_HEX));
        dir.replace(Path::new(FILE), text.as_bytes(), PRIVATE, &temp).map_err(unwritable)?;
        Ok(changed)
    }
}

/// What a change that died left behind. Only the holder of the lock makes such files.
fn remove_leftovers(dir: &dyn Dir) {
    for entry in dir.list().unwrap_or_default() {
        if entry.name.to_str().is_some_and(|name| name.starts_with(TEMP_PREFIX)) {
            // It is in nobody's way.
            let _ = dir.remove_file(Path::new(&entry.name));
        }
    }
}

/// Why something of a project cannot be read, for people.
pub(super) fn reason(error: &io::Error) -> String {
    if LinkRefused::is(error) {
        return "a link is not followed there".to_owned();
    }
    match error.kind() {
        io::ErrorKind::FileTooLarge => "it is too large".to_owned(),
        io::ErrorKind::InvalidInput | io::ErrorKind::IsADirectory => "it is no file".to_owned(),
        io::ErrorKind::PermissionDenied => "it may not be read".to_owned(),
        _ => error.to_string(),
    }
}
