//! Texts to the ends of files, through directory handles that follow no link below the logs'
//! directory. It blocks for as long as the disk takes.
//! Every file is opened, appended to and closed: three handles at a time suffice for any number of
//! agents, and a file that was moved away or removed meanwhile is simply made again.

use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;

use super::queue::Place;
use crate::home;
use crate::world::{Access, Dir, Fs, LinkRefused};

/// What was not written, and whose fault it is.
#[derive(Debug)]
pub(super) struct Trouble {
    pub(super) blame: Blame,
    pub(super) error: io::Error,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blame {
    /// The disk: other files fare no better.
    Disk,
    /// What lies in the place of this one file.
    File,
}

/// Appends each text to its file; returns what came of each, in their order.
pub(super) fn append_all(
    fs: &dyn Fs,
    logs: &Path,
    texts: &[(Place, String)],
) -> Vec<Result<(), Trouble>> {
    let mut found: Option<Arc<dyn Dir>> = None;
    let result = |(place, text): &(Place, String)| {
        let root = match found.take() {
            Some(root) => root,
            None => root(fs, logs).map_err(|error| Trouble { blame: Blame::Disk, error })?,
        };
        append(root.as_ref(), place, text.as_bytes())
            .map_err(|error| Trouble { blame: blame(&error), error })?;
        // It may be what failed, so it is looked for again after a failure.
        found = Some(root);
        Ok(())
    };
    texts.iter().map(result).collect()
}

/// The directory of all logs. The path to it is the operator's and may have links.
fn root(fs: &dyn Fs, logs: &Path) -> io::Result<Arc<dyn Dir>> {
    match fs.dir(logs) {
        Err(error) if error.kind() == ErrorKind::NotFound => home::make(fs, logs),
        found => found,
    }
}

fn append(root: &dyn Dir, place: &Place, text: &[u8]) -> io::Result<()> {
    let name = Path::new(place.agent.as_str());
    let dir = match root.dir(name) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            root.make_dir(name, 0o700)?;
            root.dir(name)?
        }
        found => found?,
    };
    let file = dir.open(Path::new(place.file.name()), Access::Create { mode: 0o600 })?;
    let end = file.stat()?.len;
    // A crash may have left half an entry; the next one still begins on a line of its own.
    let mut last = [b'\n'];
    if let Some(before_end) = end.checked_sub(1) {
        file.read_at(&mut last, before_end)?;
    }
    let written = match last {
        [b'\n'] => file.write_at(text, end),
        _ => file.write_at(&[b"\n", text].concat(), end),
    };
    if written.is_err() {
        // A full disk takes what fits: half an entry is worth less than none. The first error is
        // the one to tell.
        let _ = file.set_len(end);
    }
    written
}

fn blame(error: &io::Error) -> Blame {
    let of_file = matches!(
        error.kind(),
        ErrorKind::IsADirectory
            | ErrorKind::NotADirectory
            | ErrorKind::InvalidInput
            | ErrorKind::PermissionDenied
    );
    if of_file || LinkRefused::is(error) { Blame::File } else { Blame::Disk }
}
