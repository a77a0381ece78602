//! The system's files through directory handles. Never follows a symbolic link below a handle,
//! and never waits for whoever holds the other end of a pipe or a device.

mod file;
mod way;

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use rustix::fs::{self as sys, AtFlags, CWD, FileType, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};

use crate::world::{Access, Dir, Entry, File, Fs, Kind, LinkRefused, Stat};
use file::OpenFile;
use way::{Way, components};

/// The system's disk, where the kernel itself refuses links; `None` where it cannot.
pub fn fs_by_openat2() -> Option<Arc<dyn Fs>> {
    Way::openat2_works().then(|| Arc::new(Disk { way: Way::Openat2 }) as Arc<dyn Fs>)
}

/// The system's disk, where links are refused by opening one component after another.
pub fn fs_by_walking() -> Arc<dyn Fs> {
    Arc::new(Disk { way: Way::Walk })
}

struct Disk {
    way: Way,
}

impl Fs for Disk {
    fn dir(&self, path: &Path) -> io::Result<Arc<dyn Dir>> {
        absolute(path)?;
        let handle = retry_on_intr(|| sys::openat(CWD, path, FOLDER, Mode::empty()))?;
        Ok(Arc::new(Folder { handle, way: self.way }))
    }

    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        absolute(path)?;
        std::fs::canonicalize(path)
    }
}

fn absolute(path: &Path) -> io::Result<()> {
    if path.is_absolute() { Ok(()) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

/// Readable, because a handle that is not can neither be listed nor synced.
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

struct Folder {
    handle: OwnedFd,
    way: Way,
}

impl Folder {
    fn open_at(&self, path: &Path, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
        let components = components(path)?;
        self.way.open(self.handle.as_fd(), &components, flags, mode).map_err(told)
    }

    /// Acts on the name at the end of `path` in the directory that holds it.
    fn at<T>(
        &self,
        path: &Path,
        act: impl FnOnce(BorrowedFd<'_>, &OsStr) -> rustix::io::Result<T>,
    ) -> io::Result<T> {
        let components = components(path)?;
        let (name, parents) = components.split_last().ok_or(io::ErrorKind::InvalidInput)?;
        if parents.is_empty() {
            return act(self.handle.as_fd(), name).map_err(told);
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let parent =
            self.way.open(self.handle.as_fd(), parents, flags, Mode::empty()).map_err(told)?;
        act(parent.as_fd(), name).map_err(told)
    }
}

impl Dir for Folder {
    fn dir(&self, path: &Path) -> io::Result<Arc<dyn Dir>> {
        let handle = self.open_at(path, FOLDER, Mode::empty())?;
        Ok(Arc::new(Folder { handle, way: self.way }))
    }

    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn File>> {
        let (flags, mode) = match access {
            Access::Read => (OFlags::RDONLY, 0),
            Access::Write => (OFlags::RDWR, 0),
            Access::Create { mode } => (OFlags::RDWR | OFlags::CREATE, mode),
            Access::CreateNew { mode } => (OFlags::RDWR | OFlags::CREATE | OFlags::EXCL, mode),
        };
        // NONBLOCK: opening a pipe or a device must not wait for its other end. It changes nothing
        // for a regular file, which is the only thing kept open.
        let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let handle = self.open_at(path, flags, Mode::from_raw_mode(mode))?;
        match kind(FileType::from_raw_mode(sys::fstat(&handle)?.st_mode)) {
            Kind::File => Ok(Arc::new(OpenFile::new(handle))),
            Kind::Dir => Err(io::ErrorKind::IsADirectory.into()),
            Kind::Link | Kind::Other => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    fn stat(&self, path: &Path) -> io::Result<Stat> {
        if components(path)?.is_empty() {
            return stat(&sys::fstat(&self.handle)?);
        }
        stat(&self.at(path, |parent, name| sys::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW))?)
    }

    fn list(&self) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for entry in sys::Dir::read_from(&self.handle)? {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let kind = match entry.file_type() {
                // This file system does not say; the entry may be gone by the time it is asked.
                FileType::Unknown => {
                    match sys::statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW) {
                        Ok(found) => kind(FileType::from_raw_mode(found.st_mode)),
                        Err(Errno::NOENT) => continue,
                        Err(error) => return Err(error.into()),
                    }
                }
                known => kind(known),
            };
            let name = OsStr::from_bytes(name.to_bytes()).to_owned();
            entries.push(Entry { name, kind });
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    fn read_link(&self, path: &Path) -> io::Result<PathBuf> {
        let target = self.at(path, |parent, name| sys::readlinkat(parent, name, Vec::new()))?;
        Ok(OsString::from_vec(target.into_bytes()).into())
    }

    fn make_dir(&self, path: &Path, mode: u32) -> io::Result<()> {
        let mode = Mode::from_raw_mode(mode);
        self.at(path, |parent, name| sys::mkdirat(parent, name, mode))
    }

    fn make_link(&self, path: &Path, target: &Path) -> io::Result<()> {
        self.at(path, |parent, name| sys::symlinkat(target, parent, name))
    }

    fn set_mode(&self, path: &Path, mode: u32) -> io::Result<()> {
        let handle = self.open_at(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        // No call changes the mode of a file it may not read, follows no link and is old enough to
        // rely on. The handle's entry in /proc leads to what was opened, whatever its name is now.
        let opened = format!("/proc/self/fd/{}", handle.as_raw_fd());
        Ok(sys::chmodat(CWD, opened, Mode::from_raw_mode(mode), AtFlags::empty())?)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        // Two handles at once: the inner closure runs while the outer one's parent is open.
        self.at(from, |from_parent, from_name| {
            Ok(self.at(to, |to_parent, to_name| {
                sys::renameat(from_parent, from_name, to_parent, to_name)
            }))
        })?
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.at(path, |parent, name| sys::unlinkat(parent, name, AtFlags::empty()))
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.at(path, |parent, name| sys::unlinkat(parent, name, AtFlags::REMOVEDIR))
    }

    fn sync(&self) -> io::Result<()> {
        Ok(retry_on_intr(|| sys::fsync(&self.handle))?)
    }
}

fn told(error: Errno) -> io::Error {
    match error {
        Errno::LOOP => LinkRefused.into(),
        // A socket, or a device that nobody drives: no regular file.
        Errno::NXIO => io::ErrorKind::InvalidInput.into(),
        error => error.into(),
    }
}

fn kind(found: FileType) -> Kind {
    match found {
        FileType::RegularFile => Kind::File,
        FileType::Directory => Kind::Dir,
        FileType::Symlink => Kind::Link,
        FileType::Fifo
        | FileType::Socket
        | FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Unknown => Kind::Other,
    }
}

fn stat(found: &sys::Stat) -> io::Result<Stat> {
    let nanoseconds = i32::try_from(found.st_mtime_nsec).map_err(io::Error::other)?;
    Ok(Stat {
        kind: kind(FileType::from_raw_mode(found.st_mode)),
        len: u64::try_from(found.st_size).map_err(io::Error::other)?,
        mode: found.st_mode & 0o7777,
        // A file system may hold any number here; one outside the calendar is an error.
        modified: Timestamp::new(found.st_mtime, nanoseconds).map_err(io::Error::other)?,
    })
}
