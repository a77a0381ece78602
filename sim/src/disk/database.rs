//! What SQLite asks of a file system, answered by a simulated disk as SQLite's own `os_unix.c` would
//! on a real one. Errors are SQLite's result codes.

use std::ffi::{OsString, c_int};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nexus3::world::{Access, Dir, File, Fs, Kind};
use rusqlite::ffi;

use super::Disk;
use super::fault::{Errno, Gone};
use super::levels::{Holder, Level, Levels};

/// An error code of SQLite, never `SQLITE_OK`.
pub(super) type Code = c_int;

/// What SQLite makes its files with; their journals get the mode of the database.
const MODE: u32 = 0o644;

/// A disk as databases see it.
pub(super) struct Base {
    pub(super) disk: Disk,
    chance: Mutex<Box<dyn FnMut() -> u64 + Send>>,
    levels: Mutex<Levels>,
}

impl Base {
    pub(super) fn new(disk: Disk, chance: impl FnMut() -> u64 + Send + 'static) -> Self {
        Self { disk, chance: Mutex::new(Box::new(chance)), levels: Mutex::default() }
    }

    /// The owner's next random number.
    pub(super) fn draw(&self) -> u64 {
        self.chance.lock().unwrap_or_else(PoisonError::into_inner)()
    }

    /// Milliseconds since noon in Greenwich on November 24, 4714 B.C., which is how SQLite counts.
    pub(super) fn julian_ms(&self) -> i64 {
        const UNIX_EPOCH_JULIAN_MS: i64 = 210_866_760_000_000;
        UNIX_EPOCH_JULIAN_MS + (self.disk.shared.clock)().as_millisecond()
    }

    /// Opens a file, and says whether it can be written.
    pub(super) fn open(self: &Arc<Self>, path: &Path, flags: c_int) -> Result<DatabaseFile, Code> {
        let (parent, name) = split(path).ok_or(ffi::SQLITE_CANTOPEN)?;
        let dir = self.disk.dir(parent).map_err(|_| ffi::SQLITE_CANTOPEN)?;
        let creates = flags & ffi::SQLITE_OPEN_CREATE != 0;
        let mode = if is_journal(flags) { owner_mode(&*dir, name) } else { MODE };
        let wanted = match (creates, flags & ffi::SQLITE_OPEN_READWRITE != 0) {
            (true, _) if flags & ffi::SQLITE_OPEN_EXCLUSIVE != 0 => Access::CreateNew { mode },
            (true, _) => Access::Create { mode },
            (false, true) => Access::Write,
            (false, false) => Access::Read,
        };
        let (file, access) = match dir.open(name, wanted) {
            Ok(file) => (file, wanted),
            // As on the real disk: what cannot be written may still be read.
            Err(error) if refuses_writing(&error) => {
                let file = dir.open(name, Access::Read).map_err(|_| ffi::SQLITE_CANTOPEN)?;
                (file, Access::Read)
            }
            Err(_) => return Err(ffi::SQLITE_CANTOPEN),
        };
        if flags & ffi::SQLITE_OPEN_DELETEONCLOSE != 0 {
            dir.remove_file(name).map_err(|_| ffi::SQLITE_CANTOPEN)?;
        }
        // A new journal that is not found after a crash is one that does not roll anything back.
        let dir_to_sync = (creates && is_journal(flags)).then_some(dir);
        Ok(self.opened(file, access, dir_to_sync, path.to_owned()))
    }

    /// Opens a file that never gets a name.
    pub(super) fn open_nameless(self: &Arc<Self>) -> Result<DatabaseFile, Code> {
        let file = self.disk.nameless().map_err(|_| ffi::SQLITE_CANTOPEN)?;
        Ok(self.opened(file, Access::Write, None, PathBuf::new()))
    }

    fn opened(
        self: &Arc<Self>,
        file: Arc<dyn File>,
        access: Access,
        dir_to_sync: Option<Arc<dyn Dir>>,
        path: PathBuf,
    ) -> DatabaseFile {
        let (generation, number) = {
            let mut state = self.disk.lock();
            (state.generation, state.number())
        };
        let holder = Holder { generation, number };
        DatabaseFile { base: self.clone(), file, access, dir_to_sync, path, holder }
    }

    pub(super) fn delete(&self, path: &Path, sync_dir: bool) -> Result<(), Code> {
        let (parent, name) = split(path).ok_or(ffi::SQLITE_IOERR_DELETE)?;
        let dir = self.disk.dir(parent).map_err(|_| ffi::SQLITE_IOERR_DELETE)?;
        dir.remove_file(name).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => ffi::SQLITE_IOERR_DELETE_NOENT,
            _ => ffi::SQLITE_IOERR_DELETE,
        })?;
        if sync_dir { dir.sync().map_err(|_| ffi::SQLITE_IOERR_DIR_FSYNC) } else { Ok(()) }
    }

    /// Whether there is something; an empty file is nothing to SQLite.
    pub(super) fn exists(&self, path: &Path) -> Result<bool, Code> {
        let found = split(path).map(|(parent, name)| self.disk.dir(parent)?.stat(name));
        match found {
            Some(Ok(stat)) => Ok(stat.kind != Kind::File || stat.len > 0),
            Some(Err(error)) => match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Ok(false),
                _ => Err(ffi::SQLITE_IOERR_ACCESS),
            },
            None => Ok(true),
        }
    }

    pub(super) fn is_writable(&self, path: &Path) -> bool {
        split(path).is_some_and(|(parent, name)| {
            let opened = self.disk.dir(parent).and_then(|dir| dir.open(name, Access::Write));
            opened.is_ok()
        })
    }

    /// The path without links, also of a file that is yet to be made.
    pub(super) fn full_path(&self, path: &Path) -> PathBuf {
        self.disk.canonical(path).unwrap_or_else(|_| match split(path) {
            Some((parent, name)) => match self.disk.canonical(parent) {
                Ok(parent) => parent.join(name),
                Err(_) => path.to_owned(),
            },
            None => path.to_owned(),
        })
    }

    fn levels(&self) -> MutexGuard<'_, Levels> {
        self.levels.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One file that SQLite has open: a database, a journal, a log, or scratch without a name.
pub(super) struct DatabaseFile {
    base: Arc<Base>,
    file: Arc<dyn File>,
    access: Access,
    /// The directory of a new journal, until the first sync makes its name durable.
    dir_to_sync: Option<Arc<dyn Dir>>,
    path: PathBuf,
    holder: Holder,
}

impl DatabaseFile {
    pub(super) fn is_read_only(&self) -> bool {
        self.access == Access::Read
    }

    /// Fills `bytes`; what the file does not have is zeros, and a short read.
    pub(super) fn read(&self, bytes: &mut [u8], offset: u64) -> Result<(), Code> {
        let count = self.file.read_at(bytes, offset).map_err(|error| {
            if is_io_error(&error) { ffi::SQLITE_IOERR_CORRUPTFS } else { ffi::SQLITE_IOERR_READ }
        })?;
        bytes[count..].fill(0);
        if count == bytes.len() { Ok(()) } else { Err(ffi::SQLITE_IOERR_SHORT_READ) }
    }

    pub(super) fn write(&self, bytes: &[u8], offset: u64) -> Result<(), Code> {
        self.file.write_at(bytes, offset).map_err(|error| match error.kind() {
            io::ErrorKind::StorageFull => ffi::SQLITE_FULL,
            _ => ffi::SQLITE_IOERR_WRITE,
        })
    }

    pub(super) fn truncate(&self, len: u64) -> Result<(), Code> {
        self.file.set_len(len).map_err(|_| ffi::SQLITE_IOERR_TRUNCATE)
    }

    pub(super) fn sync(&mut self) -> Result<(), Code> {
        self.file.sync().map_err(|_| ffi::SQLITE_IOERR_FSYNC)?;
        match self.dir_to_sync.take().map(|dir| dir.sync()) {
            // The power went at this very sync: nobody may be told that it is done.
            Some(Err(error)) if Gone::is(&error) => Err(ffi::SQLITE_IOERR_DIR_FSYNC),
            // Other failures are ignored by SQLite on the real disk, too.
            Some(Ok(()) | Err(_)) | None => Ok(()),
        }
    }

    pub(super) fn len(&self) -> Result<u64, Code> {
        Ok(self.file.stat().map_err(|_| ffi::SQLITE_IOERR_FSTAT)?.len)
    }

    pub(super) fn lock(&self, level: Level) -> Result<(), Code> {
        if self.base.disk.is_off() || self.base.disk.generation() != self.holder.generation {
            return Err(ffi::SQLITE_IOERR_LOCK);
        }
        let locked = self.base.levels().lock(&self.path, self.holder, level);
        locked.map_err(|_busy| ffi::SQLITE_BUSY)
    }

    pub(super) fn unlock(&self, level: Level) {
        self.base.levels().unlock(&self.path, self.holder, level);
    }

    pub(super) fn is_reserved(&self) -> bool {
        self.base.levels().is_reserved(&self.path, self.holder.generation)
    }
}

impl Drop for DatabaseFile {
    fn drop(&mut self) {
        self.unlock(Level::None);
    }
}

/// The directory of an absolute path and the name in it.
fn split(path: &Path) -> Option<(&Path, &Path)> {
    Some((path.parent()?, Path::new(path.file_name()?)))
}

fn is_journal(flags: c_int) -> bool {
    let journals =
        ffi::SQLITE_OPEN_WAL | ffi::SQLITE_OPEN_MAIN_JOURNAL | ffi::SQLITE_OPEN_SUPER_JOURNAL;
    flags & journals != 0
}

/// The mode of the database that a journal of this name belongs to.
fn owner_mode(dir: &dyn Dir, journal: &Path) -> u32 {
    let name = journal.as_os_str().as_bytes();
    let owner = ["-wal", "-journal"].iter().find_map(|end| name.strip_suffix(end.as_bytes()));
    let stat = owner.map(|name| dir.stat(Path::new(&OsString::from_vec(name.to_vec()))));
    stat.and_then(Result::ok).map_or(MODE, |stat| stat.mode)
}

fn refuses_writing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

fn is_io_error(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::Io as i32)
}
