//! What was on the disk, and who changed it: what is older than the recording was there before; what
//! changed while a program ran is that program's doing; the rest is somebody else's.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;

use super::runs::Runs;
use crate::record::form::{File, Files, Yes};
use crate::record::hidden::{Hidden, PROJECT};
use crate::record::note::{Found, Sighting};

#[derive(Debug)]
pub(super) struct Disk {
    began: Timestamp,
    /// What was there before.
    pub(super) first: Files,
    known: BTreeMap<PathBuf, Known>,
    /// What somebody read that is not here: files that are too large, and bytes with a key in them.
    blank: BTreeSet<String>,
}

/// What is known of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    /// In this state, and whether its content was seen.
    File {
        state: FileState,
        is_whole: bool,
    },
    /// A directory or a link.
    Other,
    Nothing,
}

/// By what is known without a look inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileState {
    modified: Timestamp,
    len: u64,
    mode: u32,
}

/// By how much the times of files may lag behind the clock.
const LAG: Duration = Duration::from_millis(10);
/// How many files are told of by their names.
const NAMED_MAX: usize = 8;
/// What stands in files that nobody read.
const UNREAD: &str = " ";
/// A configuration of a project is read by the server of a replay, and has taken effect already.
const CONFIGURATION: &str = ".nexus3/config.json";

impl Disk {
    pub(super) fn new(began: Timestamp) -> Self {
        Self { began, first: Files::new(), known: BTreeMap::new(), blank: BTreeSet::new() }
    }

    /// What is not as it was in a replay.
    pub(super) fn unlike(&self) -> Option<String> {
        let mut names: Vec<&str> = self.blank.iter().map(String::as_str).take(NAMED_MAX).collect();
        if self.blank.len() > names.len() {
            names.push("and others");
        }
        let what = "Files that are too large, or have a key among their bytes, and are blank here";
        (!names.is_empty()).then(|| format!("{what}: {}.", names.join(", ")))
    }

    /// Takes in what was seen, and when. Returns what somebody else has changed, and when.
    pub(super) fn saw(
        &mut self,
        (at, sighting): (Duration, Sighting),
        runs: &mut Runs,
        hidden: &Hidden,
    ) -> Option<(Duration, String, File)> {
        let Sighting { path, found, len, mode, modified } = sighting;
        let state = FileState { modified, len, mode };
        let known = self.known.get(&path).copied();
        let name = hidden.path(&path);
        if let Found::Content(content) = &found
            && is_blank(content, hidden)
        {
            self.blank.insert(name.clone());
        }
        let now = match &found {
            Found::Content(_) => Known::File { state, is_whole: true },
            Found::Large => {
                self.blank.insert(name.clone());
                Known::File { state, is_whole: true }
            }
            Found::File | Found::Ours => {
                let is_same = matches!(known, Some(Known::File { state: before, .. })
                    if before == state);
                if is_same && found == Found::File {
                    return None;
                }
                Known::File { state, is_whole: found == Found::Ours }
            }
            Found::Dir | Found::Link(_) | Found::OurDir => Known::Other,
            Found::Nothing | Found::OurRemoval => Known::Nothing,
        };
        self.known.insert(path.clone(), now);
        let file = match (known, &found) {
            (_, Found::Ours | Found::OurDir | Found::OurRemoval)
            | (None | Some(Known::Nothing), Found::Nothing) => return None,
            (Some(before), _) if before == now => return None,
            (Some(_), Found::Nothing) => {
                // When it went is not known; who may have removed it is.
                if let Some(writes) = runs.last() {
                    writes.insert(name, File::Remove { remove: Yes });
                }
                return None;
            }
            (_, Found::Dir) if hidden.is_around(&path) && name != PROJECT => return None,
            (_, found) => file(&path, found, &state, hidden),
        };
        if let Some(Known::File { state: before, is_whole }) = known
            && (before.modified, before.len) == (modified, len)
        {
            if before.mode != mode {
                return self.remoded(name, unusual(mode, FILE_MODE), runs, at);
            }
            if !is_whole {
                return self.completed(name, file, runs, modified);
            }
        }
        self.changed(known, name, file, runs, modified)
    }

    /// Has a file of which only the permission bits are other ones get them: from the program that ran
    /// last, since the time of such a change is not known.
    fn remoded(
        &self,
        name: String,
        mode: Option<u32>,
        runs: &mut Runs,
        at: Duration,
    ) -> Option<(Duration, String, File)> {
        let file = runs.written_last(&name).or_else(|| self.first.get(&name))?;
        let file = file.clone().with_mode(mode);
        if let Some(writes) = runs.last() {
            writes.insert(name, file);
            return None;
        }
        Some((at, name, file))
    }

    /// Puts the content of a file where the file was put down without.
    fn completed(
        &mut self,
        name: String,
        file: File,
        runs: &mut Runs,
        modified: Timestamp,
    ) -> Option<(Duration, String, File)> {
        if let Some(first) = self.first.get_mut(&name) {
            *first = file;
            return None;
        }
        if let Some(writes) = runs.author(modified) {
            writes.insert(name, file);
            return None;
        }
        Some((self.since(modified), name, file))
    }

    fn changed(
        &mut self,
        known: Option<Known>,
        name: String,
        file: File,
        runs: &mut Runs,
        modified: Timestamp,
    ) -> Option<(Duration, String, File)> {
        let is_file = !matches!(file, File::Dir { .. } | File::Symlink { .. });
        if known.is_none()
            && (modified <= self.began || !is_file && runs.author(modified).is_none())
        {
            self.first.insert(name, file);
            return None;
        }
        if let Some(writes) = runs.author(modified) {
            writes.insert(name, file);
            return None;
        }
        // What nobody reads may change elsewhere as it likes.
        if matches!(file, File::Repeated { .. }) && !name.starts_with(PROJECT) {
            return None;
        }
        Some((self.since(modified), name, file))
    }

    fn since(&self, modified: Timestamp) -> Duration {
        let since = Duration::try_from(modified.duration_since(self.began)).unwrap_or_default();
        since + LAG
    }
}

fn file(path: &Path, found: &Found, state: &FileState, hidden: &Hidden) -> File {
    let FileState { len, mode, .. } = *state;
    let of_file = unusual(mode, FILE_MODE);
    match found {
        Found::Dir => File::Dir { dir: Yes, mode: unusual(mode, DIR_MODE) },
        Found::Link(target) => File::Symlink { symlink: hidden.path(target) },
        Found::Content(content) => match str::from_utf8(content) {
            Ok(text) => File::text(hidden.text(text), of_file),
            Err(_) if is_blank(content, hidden) => {
                File::Repeated { text: UNREAD, repeat: len.min(FILE_BYTES_MAX), mode: of_file }
            }
            Err(_) => File::Base64 { base64: base64(content), mode: of_file },
        },
        Found::File if path.ends_with(CONFIGURATION) => File::text("{}".to_owned(), of_file),
        Found::File if len == 0 => File::text(String::new(), of_file),
        Found::File | Found::Large => {
            File::Repeated { text: UNREAD, repeat: len.min(FILE_BYTES_MAX), mode: of_file }
        }
        Found::Nothing | Found::Ours | Found::OurDir | Found::OurRemoval => {
            File::Remove { remove: Yes }
        }
    }
}

/// Whether these are bytes that nobody may have: a key in them cannot be taken out.
fn is_blank(content: &[u8], hidden: &Hidden) -> bool {
    str::from_utf8(content).is_err() && hidden.has_key(content)
}

/// What a scenario gives to files and directories that have no mode of their own there.
const FILE_MODE: u32 = 0o644;
const DIR_MODE: u32 = 0o755;

fn unusual(mode: u32, usual: u32) -> Option<u32> {
    (mode != usual).then_some(mode)
}

/// A scenario's files are no longer.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The standard alphabet with padding.
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |index: usize| u32::from(group.get(index).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let index = (bits >> (18 - 6 * place)) & 63;
            let is_filled = place <= group.len();
            let digit = char::from(ALPHABET[index as usize]);
            text.push(if is_filled { digit } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_has_padding() {
        let written = [&b""[..], b"a", b"ab", b"abc", &[0xfb, 0xff]].map(base64);
        assert_eq!(written, ["", "YQ==", "YWI=", "YWJj", "+/8="]);
    }
}
