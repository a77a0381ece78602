//! The two ways from a directory handle to something below it without following a link: the kernel
//! checks the whole path in one call, or the components are opened one by one. Both give the same
//! answers; neither ever leaves the tree below the handle.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::fs::{fstat, openat, openat2, statat};
use rustix::io::{Errno, Result, retry_on_intr};

#[derive(Clone, Copy)]
pub(super) enum Way {
    Openat2,
    Walk,
}

/// The names on a relative path; none for the directory itself.
pub(super) fn components(path: &Path) -> io::Result<Vec<&OsStr>> {
    let mut names = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => names.push(name),
            Component::CurDir => (),
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                return Err(io::ErrorKind::InvalidInput.into());
            }
        }
    }
    Ok(names)
}

const RESOLVE: ResolveFlags = ResolveFlags::NO_SYMLINKS.union(ResolveFlags::BENEATH);

impl Way {
    /// Whether this kernel, and the sandbox around us, has the call.
    pub(super) fn openat2_works() -> bool {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        openat2(CWD, ".", flags, Mode::empty(), RESOLVE).is_ok()
    }

    /// Opens what `names` lead to below `dir`; a link on the way or at the end is `LOOP`, except
    /// that exclusive creation over a link is `EXIST`.
    pub(super) fn open(
        self,
        dir: BorrowedFd<'_>,
        names: &[&OsStr],
        flags: OFlags,
        mode: Mode,
    ) -> Result<OwnedFd> {
        match self {
            Self::Openat2 => {
                let here = OsStr::new(".");
                let path: PathBuf =
                    if names.is_empty() { here.into() } else { names.iter().collect() };
                retry_on_intr(|| openat2(dir, &path, flags, mode, RESOLVE))
            }
            Self::Walk => walk(dir, names, flags, mode),
        }
    }
}

fn walk(dir: BorrowedFd<'_>, names: &[&OsStr], flags: OFlags, mode: Mode) -> Result<OwnedFd> {
    let Some((last, parents)) = names.split_last() else {
        return retry_on_intr(|| openat(dir, ".", flags, mode));
    };
    let mut reached: Option<OwnedFd> = None;
    for name in parents {
        let here = reached.as_ref().map_or(dir, AsFd::as_fd);
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        reached = Some(step(here, name, flags, Mode::empty())?);
    }
    step(reached.as_ref().map_or(dir, AsFd::as_fd), last, flags, mode)
}

fn step(dir: BorrowedFd<'_>, name: &OsStr, flags: OFlags, mode: Mode) -> Result<OwnedFd> {
    match retry_on_intr(|| openat(dir, name, flags | OFlags::NOFOLLOW, mode)) {
        // With PATH a link is not refused but opened itself.
        Ok(handle) if flags.contains(OFlags::PATH) && link(fstat(&handle)?.st_mode) => {
            Err(Errno::LOOP)
        }
        // With DIRECTORY a link is refused as no directory, before it is refused as a link.
        Err(Errno::NOTDIR) => match statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) if link(found.st_mode) => Err(Errno::LOOP),
            Ok(_) | Err(_) => Err(Errno::NOTDIR),
        },
        result => result,
    }
}

fn link(mode: u32) -> bool {
    FileType::from_raw_mode(mode) == FileType::Symlink
}
