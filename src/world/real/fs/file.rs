//! An open regular file. Positional calls only: handles are shared, a cursor would be too.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

use rustix::io::retry_on_intr;

use super::stat;
use crate::world::{self, Stat};

pub(super) struct OpenFile {
    file: File,
}

impl OpenFile {
    pub(super) fn new(handle: OwnedFd) -> Self {
        Self { file: handle.into() }
    }
}

impl world::File for OpenFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        loop {
            match self.file.read_at(bytes, offset) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
                result => return result,
            }
        }
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn stat(&self) -> io::Result<Stat> {
        stat(&rustix::fs::fstat(&self.file)?)
    }

    fn sync(&self) -> io::Result<()> {
        // With the metadata: a secret's file must not come back from a crash with another mode.
        Ok(retry_on_intr(|| rustix::fs::fsync(&self.file))?)
    }

    fn try_lock(&self) -> io::Result<()> {
        Ok(self.file.try_lock()?)
    }
}
