//! Where session files lie: `sessions/` in the server's home, and the one that follows the terminal
//! beside it. Each is replaced as a whole or not at all, and is its owner's alone. No link is followed.
//! Calls block for as long as the disk takes.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::SessionError;
use super::file::{SessionFile, Summary, check_not_newer};
use super::name::{LAST_SESSION, Session, SessionName};
use crate::event::iso;
use crate::limits::{SESSION_FILE_BYTES_MAX, SESSIONS_LISTED_MAX, SET_ASIDE_NAMES_MAX};
use crate::world::{Access, Dir, File, Kind, LinkRefused, Use, World};

const SESSIONS: &str = "sessions";
const ENDING: &str = ".json";
/// What is not yet in its place.
const TEMP: &str = ".session-";
const LAST_NAME: &str = "last-session-name";
const DIR_MODE: u32 = 0o700;
pub(super) const FILE_MODE: u32 = 0o600;
const TEMP_NAME_HEX: usize = 16;
const LAST_NAME_BYTES_MAX: u64 = 4096;

/// What becomes of a file that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overwrite {
    Replace,
    Refuse,
}

/// The directory of one server's sessions. Cloning shares it.
#[derive(Clone, Debug)]
pub struct Directory {
    world: World,
    home: PathBuf,
}

/// A file, and the directory that it was read from.
struct Found {
    dir: Arc<dyn Dir>,
    bytes: Vec<u8>,
}

impl Directory {
    /// `home` is absolute.
    pub fn new(world: World, home: PathBuf) -> Self {
        Self { world, home }
    }

    /// Reads a session; `None` where there is none. One that is damaged is set aside.
    pub fn read(&self, session: &Session) -> Result<Option<SessionFile>, SessionError> {
        let Some(Found { dir, bytes }) = self.bytes(session)? else {
            return Ok(None);
        };
        match SessionFile::parse(&bytes) {
            Ok(file) => Ok(Some(file)),
            Err(source) if source.is_damage() => {
                let session = session.clone();
                match self.set_aside(&session, dir.as_ref()) {
                    Ok(()) => Err(SessionError::Damaged { session, source }),
                    // It stays where it is, and is met again.
                    Err(_) => Err(SessionError::Unusable { session, source }),
                }
            }
            Err(source) => Err(SessionError::Unusable { session: session.clone(), source }),
        }
    }

    /// Writes a session. It is durable once this returns.
    pub fn write(
        &self,
        session: &Session,
        file: &SessionFile,
        overwrite: Overwrite,
    ) -> Result<(), SessionError> {
        let unusable = |source| SessionError::Unusable { session: session.clone(), source };
        let bytes = file.bytes().map_err(unusable)?;
        let failed = |source| disk(session, source);
        let dir = self.made(session).map_err(failed)?;
        let name = file_name(session);
        match (found(dir.as_ref(), &name).map_err(failed)?, overwrite) {
            (None, _) => {}
            (Some(Kind::File), Overwrite::Replace) => self.check_known(session)?,
            (Some(Kind::File), Overwrite::Refuse) => {
                return Err(SessionError::Exists { session: session.clone() });
            }
            (Some(Kind::Dir | Kind::Link | Kind::Other), _) => {
                return Err(SessionError::NotAFile { session: session.clone() });
            }
        }
        dir.replace(&name, &bytes, FILE_MODE, &self.temp_name()).map_err(failed)
    }

    /// Whether this server may write over what is there: what a newer one wrote says more than it knows.
    pub fn check_known(&self, session: &Session) -> Result<(), SessionError> {
        let Some(Found { bytes, .. }) = self.bytes(session)? else {
            return Ok(());
        };
        let unusable = |source| SessionError::Unusable { session: session.clone(), source };
        check_not_newer(&bytes).map_err(unusable)
    }

    /// Whether there is anything under the name of this session.
    pub fn has(&self, session: &Session) -> Result<bool, SessionError> {
        let failed = |source| disk(session, source);
        match self.open(session).map_err(failed)? {
            None => Ok(false),
            Some(dir) => Ok(found(dir.as_ref(), &file_name(session)).map_err(failed)?.is_some()),
        }
    }

    /// Removes a session durably; whether there was one.
    pub fn remove(&self, session: &Session) -> Result<bool, SessionError> {
        let failed = |source| disk(session, source);
        let Some(dir) = self.open(session).map_err(failed)? else {
            return Ok(false);
        };
        remove(dir.as_ref(), &file_name(session)).map_err(failed)
    }

    /// Gives a session another name, durably. What it says of itself inside stays as it is.
    pub fn rename(&self, from: &SessionName, to: &SessionName) -> Result<(), SessionError> {
        let (from, to) = (Session::from(from.clone()), Session::from(to.clone()));
        let failed = |source| disk(&from, source);
        let dir = self.made(&from).map_err(failed)?;
        if found(dir.as_ref(), &file_name(&to)).map_err(failed)?.is_some() {
            return Err(SessionError::Exists { session: to });
        }
        let renamed = dir.rename(&file_name(&from), &file_name(&to));
        renamed.and_then(|()| dir.sync()).map_err(failed)
    }

    /// The names of all saved sessions, sorted.
    pub fn names(&self) -> Result<Vec<SessionName>, SessionError> {
        let list = || match self.home()?.dir(Path::new(SESSIONS)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            opened => opened?.list(),
        };
        let entries = list().map_err(|source| SessionError::List { source })?;
        let named = entries.into_iter().filter(|entry| entry.kind == Kind::File);
        let named = named.filter_map(|entry| {
            let stem = entry.name.to_str()?.strip_suffix(ENDING)?.to_owned();
            SessionName::parse(&stem).ok()
        });
        Ok(named.take(SESSIONS_LISTED_MAX).collect())
    }

    /// What a list tells of a session; `None` of one that is gone or cannot be understood.
    pub fn summary(&self, name: &SessionName) -> Option<Summary> {
        let found = self.bytes(&Session::from(name.clone())).ok()??;
        Summary::parse(&found.bytes).ok()
    }

    /// Notes, for people, whose session the last one is.
    pub fn write_last_name(&self, name: &str) -> Result<(), SessionError> {
        let written = self.home().and_then(|home| {
            let (path, temp) = (Path::new(LAST_NAME), self.temp_name());
            home.replace(path, format!("{name}\n").as_bytes(), FILE_MODE, &temp)
        });
        written.map_err(|source| disk(&Session::Last, source))
    }

    /// Whose session the last one is, as far as it was noted.
    pub fn last_name(&self) -> Option<String> {
        let file = self.home().ok()?.open(Path::new(LAST_NAME), Access::Read).ok()?;
        let name = String::from_utf8(file.read_all(LAST_NAME_BYTES_MAX).ok()?).ok()?;
        Some(name.trim_end().to_owned())
    }

    /// Forgets the last session.
    pub fn remove_last(&self) -> Result<(), SessionError> {
        let removed = self.home().and_then(|home| remove(home.as_ref(), Path::new(LAST_NAME)));
        removed.map_err(|source| disk(&Session::Last, source))?;
        self.remove(&Session::Last).map(drop)
    }

    /// Removes what a server that died was about to put in place.
    pub fn tidy(&self) {
        let Ok(home) = self.home() else { return };
        for dir in [home.dir(Path::new(SESSIONS)), Ok(home)].into_iter().flatten() {
            let names = dir.list().unwrap_or_default().into_iter().map(|entry| entry.name);
            for name in
                names.filter(|name| name.to_str().is_some_and(|name| name.starts_with(TEMP)))
            {
                // It is in nobody's way.
                let _ = dir.remove_file(Path::new(&name));
            }
        }
    }

    fn home(&self) -> io::Result<Arc<dyn Dir>> {
        self.world.fs.dir(&self.home)
    }

    /// The directory that a session lies in, if it is there.
    pub(super) fn open(&self, session: &Session) -> io::Result<Option<Arc<dyn Dir>>> {
        let home = self.home()?;
        match session {
            Session::Last => Ok(Some(home)),
            Session::Named(_) => match home.dir(Path::new(SESSIONS)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                opened => opened.map(Some),
            },
        }
    }

    /// The directory that a session lies in, made where there is none, and closed to others.
    pub(super) fn made(&self, session: &Session) -> io::Result<Arc<dyn Dir>> {
        if let Some(dir) = self.open(session)? {
            if dir.stat(Path::new("."))?.mode & 0o077 != 0 {
                dir.set_mode(Path::new("."), DIR_MODE)?;
            }
            return Ok(dir);
        }
        let home = self.home()?;
        home.make_dir(Path::new(SESSIONS), DIR_MODE)?;
        home.sync()?;
        home.dir(Path::new(SESSIONS))
    }

    fn bytes(&self, session: &Session) -> Result<Option<Found>, SessionError> {
        let Some(dir) = self.open(session).map_err(|source| disk(session, source))? else {
            return Ok(None);
        };
        let read = dir
            .open(&file_name(session), Access::Read)
            .and_then(|file: Arc<dyn File>| file.read_all(SESSION_FILE_BYTES_MAX as u64));
        match read {
            Ok(bytes) => Ok(Some(Found { dir, bytes })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(unread(session, error)),
        }
    }

    /// Renames a file that is of no use, so that it can be looked at.
    fn set_aside(&self, session: &Session, dir: &dyn Dir) -> Result<(), SessionError> {
        let from = file_name(session);
        let at = iso(self.world.clock.now()).replace(':', "-");
        let stem = format!("{}.corrupt-{at}", from.display());
        let names = (0..SET_ASIDE_NAMES_MAX).map(|number| match number {
            0 => stem.clone(),
            _ => format!("{stem}-{number}"),
        });
        let is_free = |name: &String| dir.stat(Path::new(name)).is_err();
        let failed = |source| disk(session, source);
        let aside = names.into_iter().find(is_free).ok_or(io::ErrorKind::AlreadyExists);
        let aside = aside.map_err(|kind| failed(kind.into()))?;
        let renamed = dir.rename(&from, Path::new(&aside)).and_then(|()| dir.sync());
        renamed.map_err(failed)?;
        tracing::error!(%session, "its session file was damaged: it is now {aside}");
        Ok(())
    }

    pub(super) fn temp_name(&self) -> String {
        format!("{TEMP}{}", self.world.chance.hex(Use::TempName, TEMP_NAME_HEX))
    }
}

fn file_name(session: &Session) -> PathBuf {
    match session {
        Session::Named(name) => format!("{name}{ENDING}").into(),
        Session::Last => format!("{LAST_SESSION}{ENDING}").into(),
    }
}

fn found(dir: &dyn Dir, name: &Path) -> io::Result<Option<Kind>> {
    match dir.stat(name) {
        Ok(stat) => Ok(Some(stat.kind)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

pub(super) fn remove(dir: &dyn Dir, name: &Path) -> io::Result<bool> {
    match dir.remove_file(name) {
        Ok(()) => dir.sync().map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

pub(super) fn disk(session: &Session, source: io::Error) -> SessionError {
    SessionError::Disk { session: session.clone(), source }
}

fn unread(session: &Session, error: io::Error) -> SessionError {
    let is_no_file =
        matches!(error.kind(), io::ErrorKind::IsADirectory | io::ErrorKind::InvalidInput);
    if is_no_file || LinkRefused::is(&error) {
        return SessionError::NotAFile { session: session.clone() };
    }
    if error.kind() == io::ErrorKind::FileTooLarge {
        let source = super::error::ContentError::TooLarge;
        return SessionError::Unusable { session: session.clone(), source };
    }
    disk(session, error)
}
