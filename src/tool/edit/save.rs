//! From content to a file, in a directory that is held open. A file is replaced whole or not at all:
//! who reads it meanwhile, or after a crash, has all of the old or all of the new. Blocks for as long
//! as the disk takes; it never decides where to write, and follows no link: it replaces one.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use super::endings::in_ends_of;
use crate::limits::{APPEND_SAMPLE_BYTES, COPY_BYTES_MAX, COPY_PIECE_BYTES};
use crate::world::{Access, Chance, Dir, File, Use};

const NEW_FILE_MODE: u32 = 0o644;
const TEMP_NAME_HEX: usize = 16;

/// What a file is written over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    New,
    /// A file with these permission bits, which stay.
    Existing {
        mode: u32,
    },
}

impl Target {
    fn mode(self) -> u32 {
        match self {
            Self::New => NEW_FILE_MODE,
            Self::Existing { mode } => mode,
        }
    }
}

/// What becomes of a file that is in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overwrite {
    /// `AlreadyExists`, whatever it is.
    Refuse,
    Replace,
}

/// Writes all of a file. Durable once it returns.
pub fn replace(
    dir: &dyn Dir,
    chance: &dyn Chance,
    name: &OsStr,
    target: Target,
    content: &[u8],
) -> io::Result<()> {
    dir.replace(Path::new(name), content, target.mode(), &temp_name(chance))
}

/// Writes `content` to the end of a file, in its own line ends, and makes the file where there is
/// none. Returns how many bytes it then has. Durable once it returns; a crash may leave a part of the
/// new content, and never changes the old.
pub fn append(dir: &dyn Dir, chance: &dyn Chance, name: &OsStr, content: &str) -> io::Result<u64> {
    let file = match dir.open(Path::new(name), Access::Write) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            replace(dir, chance, name, Target::New, content.as_bytes())?;
            return Ok(content.len() as u64);
        }
        opened => opened?,
    };
    let len = file.stat()?.len;
    let content = in_ends_of(&sample_of_end(&*file, len)?, content);
    let written = file.write_at(content.as_bytes(), len).and_then(|()| file.sync());
    if let Err(error) = written {
        // The first error is the one to tell; a disk that failed may fail here as well.
        let _ = file.set_len(len).and_then(|()| file.sync());
        return Err(error);
    }
    Ok(len + content.len() as u64)
}

/// Copies a file's content and mode, a piece at a time. Returns how many bytes it has.
/// `FileTooLarge` for one that has, or grows to, more than the limit.
pub fn copy(
    from: &dyn File,
    dir: &dyn Dir,
    chance: &dyn Chance,
    name: &OsStr,
    overwrite: Overwrite,
) -> io::Result<u64> {
    let mode = from.stat()?.mode;
    let (name, temp) = (Path::new(name), temp_name(chance));
    match overwrite {
        // Takes the name, so that of two copies to one place one is refused. It costs that a crash
        // may leave an empty file there.
        Overwrite::Refuse => drop(dir.open(name, Access::CreateNew { mode: 0o600 })?),
        Overwrite::Replace => {}
    }
    let copied = copy_by(from, dir, Path::new(&temp), mode).and_then(|len| {
        dir.rename(Path::new(&temp), name)?;
        Ok(len)
    });
    if copied.is_err() {
        // The first error is the one to tell; a disk that failed may fail here as well.
        let _ = dir.remove_file(Path::new(&temp));
        match overwrite {
            Overwrite::Refuse => drop(dir.remove_file(name)),
            Overwrite::Replace => {}
        }
    }
    let len = copied?;
    dir.sync()?;
    Ok(len)
}

/// Copies to a new file, durably but for its name.
fn copy_by(from: &dyn File, dir: &dyn Dir, temp: &Path, mode: u32) -> io::Result<u64> {
    // Nobody else reads what is not yet in place; the umask has no say in the mode it ends with.
    let to = dir.open(temp, Access::CreateNew { mode: 0o600 })?;
    let mut piece = vec![0; COPY_PIECE_BYTES];
    let mut len = 0;
    loop {
        let count = from.read_at(&mut piece, len)?;
        if count == 0 {
            break;
        }
        if len + count as u64 > COPY_BYTES_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        to.write_at(&piece[..count], len)?;
        len += count as u64;
    }
    dir.set_mode(temp, mode)?;
    to.sync()?;
    Ok(len)
}

/// The end of a file, without a line feed that it may have cut from its carriage return.
fn sample_of_end(file: &dyn File, len: u64) -> io::Result<Vec<u8>> {
    let start = len.saturating_sub(APPEND_SAMPLE_BYTES as u64);
    let mut sample = vec![0; APPEND_SAMPLE_BYTES];
    let mut filled = 0;
    while filled < sample.len() {
        match file.read_at(&mut sample[filled..], start + filled as u64)? {
            0 => break,
            count => filled += count,
        }
    }
    sample.truncate(filled);
    if start > 0 && sample.first() == Some(&b'\n') {
        sample.remove(0);
    }
    Ok(sample)
}

/// Short, whatever the file's own name is: with that in it, it might be too long for the disk.
fn temp_name(chance: &dyn Chance) -> String {
    format!(".nexus3-{}", chance.hex(Use::TempName, TEMP_NAME_HEX))
}
