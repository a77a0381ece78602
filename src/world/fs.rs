//! Files, reached through directory handles that never follow a symbolic link.
//! Calls block for as long as the disk takes: use them inside `world.blocking`, or for small files.
//! Nothing is durable before it is synced: a file's content by [`File::sync`], its name by
//! [`Dir::sync`] of the directory that holds it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;

pub trait Fs: Send + Sync {
    /// Opens the directory at an absolute path, following links on the way to it.
    fn dir(&self, path: &Path) -> io::Result<Arc<dyn Dir>>;

    /// Resolves every link, `.` and `..` of an absolute path to something that exists.
    fn canonical(&self, path: &Path) -> io::Result<PathBuf>;
}

/// A directory held open. Paths are relative, with any number of plain components (no `..`, no
/// root); a symbolic link anywhere on the way is refused with `ErrorKind::FilesystemLoop`.
/// The path `.` is the directory itself.
pub trait Dir: Send + Sync {
    fn dir(&self, path: &Path) -> io::Result<Arc<dyn Dir>>;
    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn File>>;
    /// What is at `path`, without following a link there.
    fn stat(&self, path: &Path) -> io::Result<Stat>;
    /// The entries, sorted by name, without `.` and `..`.
    fn list(&self) -> io::Result<Vec<Entry>>;
    fn read_link(&self, path: &Path) -> io::Result<PathBuf>;
    fn make_dir(&self, path: &Path, mode: u32) -> io::Result<()>;
    fn make_link(&self, path: &Path, target: &Path) -> io::Result<()>;
    fn set_mode(&self, path: &Path, mode: u32) -> io::Result<()>;
    /// Renames atomically within this directory's tree, replacing a file at `to`.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    /// Removes an empty directory.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;
    /// Makes creations, renames and removals directly in this directory durable.
    fn sync(&self) -> io::Result<()>;
}

pub trait File: Send + Sync {
    /// Reads up to `bytes.len()` bytes at `offset`; 0 at the end of the file.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes all of `bytes` at `offset`; a gap before it reads as zeros.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    fn set_len(&self, len: u64) -> io::Result<()>;
    fn stat(&self) -> io::Result<Stat>;
    /// Makes the content durable.
    fn sync(&self) -> io::Result<()>;
    /// Takes the file's exclusive lock until the last handle is dropped or its process ends.
    /// `ErrorKind::WouldBlock` when somebody else holds it.
    fn try_lock(&self) -> io::Result<()>;
}

/// How a file is opened. A path that is no regular file is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Read,
    /// Reads and writes what exists.
    Write,
    /// Reads and writes; created with this mode where there is none.
    Create {
        mode: u32,
    },
    /// Created with this mode; `AlreadyExists` where there is one.
    CreateNew {
        mode: u32,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    File,
    Dir,
    Link,
    Other,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    pub kind: Kind,
    pub len: u64,
    /// The permission bits.
    pub mode: u32,
    pub modified: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub name: std::ffi::OsString,
    pub kind: Kind,
}

impl dyn File {
    /// Reads from the start, at most `bytes_max` bytes; one more and it is `FileTooLarge`.
    pub fn read_all(&self, bytes_max: u64) -> io::Result<Vec<u8>> {
        let mut content = Vec::new();
        let mut piece = [0; 16 * 1024];
        loop {
            let count = self.read_at(&mut piece, content.len() as u64)?;
            if count == 0 {
                return Ok(content);
            }
            content.extend_from_slice(&piece[..count]);
            if content.len() as u64 > bytes_max {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
        }
    }
}
