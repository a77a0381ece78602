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

/// A directory held open. Paths are relative, with any number of plain components; `..` and a root
/// are refused with `InvalidInput`, a symbolic link on the way to the last component with
/// [`LinkRefused`]. At the last component `dir`, `open` and `set_mode` refuse a link too; the other
/// methods are about the link itself.
/// The path `.`, or an empty one, is the directory itself, which `dir`, `stat` and `set_mode` take.
/// New files and directories have the given mode less the process's umask.
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

/// A symbolic link was in the way. `io::ErrorKind` has no stable word for it, so this is the inner
/// error of the `io::Error` that refuses one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a symbolic link is in the way")]
pub struct LinkRefused;

impl LinkRefused {
    /// Whether `error` is the refusal of a link.
    pub fn is(error: &io::Error) -> bool {
        matches!(error.get_ref(), Some(inner) if inner.is::<Self>())
    }
}

impl From<LinkRefused> for io::Error {
    fn from(refused: LinkRefused) -> Self {
        Self::other(refused)
    }
}

/// How a file is opened. What is no regular file is refused: a directory with `IsADirectory`, a
/// pipe, socket or device with `InvalidInput`, and without waiting for its other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Read,
    /// Reads and writes what exists.
    Write,
    /// Reads and writes; created with this mode where there is none.
    Create {
        mode: u32,
    },
    /// Created with this mode; `AlreadyExists` where there is anything, a link included.
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

impl dyn File + '_ {
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

impl dyn Dir + '_ {
    /// Replaces the file at `path`, or a link there, such that a crash leaves all of the old or all
    /// of the new. Durable once it returns. `temp_name` must be new in the directory of `path`; what
    /// a crash left there under such a name is for its owner to remove.
    pub fn replace(
        &self,
        path: &Path,
        content: &[u8],
        mode: u32,
        temp_name: &str,
    ) -> io::Result<()> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let temp = Path::new(temp_name);
        if temp.file_name() != Some(temp.as_os_str()) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // One handle for all steps: they happen in the same directory, whatever its name is by then.
        let parent = self.dir(path.parent().unwrap_or(Path::new(".")))?;
        // Nobody else reads what is not yet in place; the umask has no say in the mode it ends with.
        let file = parent.open(temp, Access::CreateNew { mode: 0o600 })?;
        let written = file
            .write_at(content, 0)
            .and_then(|()| parent.set_mode(temp, mode))
            .and_then(|()| file.sync())
            .and_then(|()| parent.rename(temp, Path::new(name)));
        if let Err(error) = written {
            // The first error is the one to tell; a disk that failed may fail here as well.
            let _ = parent.remove_file(temp);
            return Err(error);
        }
        parent.sync()
    }
}
