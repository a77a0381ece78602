//! The database's files, besides what SQLite does to them: made for their owner alone, synced where a
//! killed server was not able to, set aside when damaged, and the log cut back by a batch. Never reads a
//! page.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;

use crate::event::iso;
use crate::limits::SET_ASIDE_NAMES_MAX;
use crate::world::{Access, Dir, Fs};

const MODE: u32 = 0o600;
const MAGIC: &[u8; 16] = b"SQLite format 3\0";
/// Where a database has its `user_version`, as four bytes with the highest first.
const VERSION_AT: usize = 60;
const HEADER_BYTES: usize = 100;
const PIECE_BYTES: usize = 64 * 1024;
/// The log, the journal that there is while a database is made, and the database itself, in the
/// order in which they are set aside: a new database must never meet the log of the old one.
const ENDINGS: [&str; 3] = ["-wal", "-journal", ""];

/// The format of write-ahead logs: <https://sqlite.org/fileformat2.html#walformat>.
const LOG_HEADER_BYTES: u64 = 32;
const LOG_FRAME_HEADER_BYTES: u64 = 24;
/// Where the header of a frame has how many pages there are after a commit: four bytes, which are zero
/// in all frames of a batch but its last.
const PAGES_AT: u64 = 4;

/// A write-ahead log: how many frames of it count, and how long the page of each is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Log {
    pub(super) frames: u64,
    pub(super) page_bytes: u64,
}

impl Log {
    /// Where it ends after so many of its frames.
    fn end_of(self, frames: u64) -> u64 {
        LOG_HEADER_BYTES + frames * (LOG_FRAME_HEADER_BYTES + self.page_bytes)
    }
}

/// The directory a database is in, and its name there.
pub(super) struct Files {
    dir: Arc<dyn Dir>,
    path: PathBuf,
    name: OsString,
}

impl Files {
    pub(super) fn of(fs: &dyn Fs, path: &Path) -> io::Result<Self> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        Ok(Self { dir: fs.dir(parent)?, path: path.to_owned(), name: name.to_owned() })
    }

    /// Makes the file where there is none, and sees to it that nobody else can read it: SQLite would
    /// make it as the umask allows, and gives its log the mode of the database.
    pub(super) fn make(&self) -> io::Result<()> {
        let name = Path::new(&self.name);
        let file = self.dir.open(name, Access::Create { mode: MODE })?;
        if file.stat()?.mode & 0o077 != 0 {
            self.dir.set_mode(name, MODE)?;
        }
        self.dir.sync()
    }

    /// Makes durable what a server that was killed had written and not synced: whoever opens the log finds
    /// it there, and tells it, and SQLite takes what it finds for durable.
    pub(super) fn sync_log(&self) -> io::Result<()> {
        let log = with_ending(&self.name, "-wal");
        match self.dir.open(Path::new(&log), Access::Write) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            opened => opened?.sync(),
        }
    }

    /// The version in the header, read past SQLite, which would make files of its own to tell it.
    /// None where it is no database yet, or a damaged one.
    pub(super) fn version(&self) -> io::Result<Option<u32>> {
        let mut header = [0; HEADER_BYTES];
        let file = match self.dir.open(Path::new(&self.name), Access::Read) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let count = file.read_at(&mut header, 0)?;
        if count < HEADER_BYTES || !header.starts_with(MAGIC) {
            return Ok(None);
        }
        let bytes = header[VERSION_AT..VERSION_AT + 4].try_into().expect("four bytes are four");
        Ok(Some(u32::from_be_bytes(bytes)))
    }

    /// Reads all there is, to see whether it can be read.
    pub(super) fn read_through(&self) -> io::Result<()> {
        let mut piece = vec![0; PIECE_BYTES];
        for ending in ENDINGS {
            let name = with_ending(&self.name, ending);
            let file = match self.dir.open(Path::new(&name), Access::Read) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                opened => opened?,
            };
            let mut offset = 0;
            loop {
                match file.read_at(&mut piece, offset)? {
                    0 => break,
                    count => offset += count as u64,
                }
            }
        }
        Ok(())
    }

    /// Renames what is there, so that it can be looked at and a new database can be made.
    pub(super) fn set_aside(&self, now: Timestamp) -> io::Result<PathBuf> {
        let stem = format!("{}{}", corrupt(&self.name), iso(now).replace(':', "-"));
        let free = (0..SET_ASIDE_NAMES_MAX).map(|number| match number {
            0 => stem.clone(),
            _ => format!("{stem}-{number}"),
        });
        let taken = |name: &String| self.dir.stat(Path::new(name)).is_ok();
        let aside =
            free.into_iter().find(|name| !taken(name)).ok_or(io::ErrorKind::AlreadyExists)?;
        for ending in ENDINGS {
            let from = with_ending(&self.name, ending);
            let to = with_ending(aside.as_ref(), ending);
            match self.dir.rename(Path::new(&from), Path::new(&to)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound && !ending.is_empty() => {}
                renamed => renamed?,
            }
        }
        self.dir.sync()?;
        Ok(self.path.with_file_name(aside))
    }

    /// Whether a database of this name was ever set aside here.
    pub(super) fn has_set_aside(&self) -> io::Result<bool> {
        let stem = corrupt(&self.name);
        let entries = self.dir.list()?;
        Ok(entries.iter().any(|entry| entry.name.to_string_lossy().starts_with(&stem)))
    }

    /// Cuts the last batch off the log, durably. No connection may be open.
    pub(super) fn cut_last_batch(&self, log: Log) -> io::Result<()> {
        let name = with_ending(&self.name, "-wal");
        let file = self.dir.open(Path::new(&name), Access::Write)?;
        let mut kept = log.frames.checked_sub(1).ok_or(io::ErrorKind::UnexpectedEof)?;
        while kept > 0 {
            let mut pages = [0; 4];
            let read = file.read_at(&mut pages, log.end_of(kept - 1) + PAGES_AT)?;
            if read < pages.len() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if pages != [0; 4] {
                break;
            }
            kept -= 1;
        }
        file.set_len(if kept == 0 { 0 } else { log.end_of(kept) })?;
        file.sync()
    }
}

/// How the names of damaged databases begin.
fn corrupt(name: &OsStr) -> String {
    format!("{}.corrupt-", name.display())
}

fn with_ending(name: &OsStr, ending: &str) -> OsString {
    let mut name = name.to_owned();
    name.push(ending);
    name
}
