//! What was on the disk, and who changed it: what is older than the recording was there before; what
//! changed while a program ran is that program's doing; the rest is somebody else's.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::runs::Runs;
use crate::record::form::{FILE_BYTES_MAX, File, Files, Yes};
use crate::record::hidden::{Hidden, PROJECT};
use crate::record::note::{Found, Listing, Sighting};

#[derive(Debug)]
pub(super) struct Disk {
    began: Timestamp,
    /// What was there before.
    pub(super) first: Files,
    /// With when it was seen last.
    known: BTreeMap<PathBuf, (Known, Duration)>,
    /// What somebody read that is not here: files that are too large, and bytes with a key in them.
    blank: BTreeSet<String>,
    /// What is longer or shorter here than it was.
    resized: BTreeSet<String>,
    /// What was seen again as it was, and is not kept twice.
    again: Again,
}

/// How much memory was not needed, in all and for the contents of files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Again {
    pub(super) bytes: usize,
    pub(super) content: usize,
}

/// What somebody other than the server and its programs has changed.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) when: When,
    pub(super) path: String,
    pub(super) file: File,
}

/// When a change was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    /// At the first of these times or a little later, and after the other, when it was seen the last time.
    At(Duration, Duration),
    /// After it was seen the last time, and before it was missed.
    Between(Duration, Duration),
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

/// How many files are told of by their names.
const NAMED_MAX: usize = 8;
/// What stands in files that nobody read.
const UNREAD: &str = " ";
/// A configuration of a project is read by the server of a replay, and has taken effect already.
const CONFIGURATION: &str = ".nexus3/config.json";

impl Disk {
    pub(super) fn new(began: Timestamp) -> Self {
        Self {
            began,
            first: Files::new(),
            known: BTreeMap::new(),
            blank: BTreeSet::new(),
            resized: BTreeSet::new(),
            again: Again::default(),
        }
    }

    /// What is not as it was in a replay.
    pub(super) fn unlike(&self) -> impl Iterator<Item = String> {
        let blank = "Files that are too large, or have a key among their bytes, and are blank here";
        let resized = "Files in which a key or a place of the machine stood, and which are of another \
                       size here";
        let told = [(blank, &self.blank), (resized, &self.resized)];
        told.into_iter().filter(|(_, files)| !files.is_empty()).map(|(what, files)| {
            let mut names: Vec<&str> = files.iter().map(String::as_str).take(NAMED_MAX).collect();
            if files.len() > names.len() {
                names.push("and others");
            }
            format!("{what}: {}.", names.join(", "))
        })
    }

    /// What was seen again since this was asked the last time.
    pub(super) fn again(&mut self) -> Again {
        std::mem::take(&mut self.again)
    }

    /// Takes in what is in a directory: what was there, and is not any more, is gone.
    pub(super) fn listed(
        &mut self,
        at: Duration,
        listing: Listing,
        runs: &mut Runs,
        hidden: &Hidden,
    ) -> Vec<Change> {
        let Listing { directory, seen, unseen } = listing;
        let there = seen.iter().map(|sighting| &sighting.path).chain(&unseen);
        let there: BTreeSet<&PathBuf> = there.collect();
        let below = self.known.range(directory.clone()..);
        let below = below.take_while(|(path, _)| path.starts_with(&directory));
        let is_gone = |(path, (known, _)): &(&PathBuf, &(Known, Duration))| {
            let is_inside = path.parent() == Some(&directory) && *known != Known::Nothing;
            is_inside && !there.contains(path)
        };
        let gone: Vec<PathBuf> = below.filter(is_gone).map(|(path, _)| path.clone()).collect();
        let gone = gone.into_iter().map(Sighting::nothing);
        let changes = gone.chain(seen).filter_map(|sighting| self.saw(at, sighting, runs, hidden));
        changes.collect()
    }

    /// Takes in what was seen, and when. Returns what somebody else has changed.
    pub(super) fn saw(
        &mut self,
        at: Duration,
        sighting: Sighting,
        runs: &mut Runs,
        hidden: &Hidden,
    ) -> Option<Change> {
        let bytes = sighting.bytes();
        let Sighting { path, found, len, mode, modified } = sighting;
        let state = FileState { modified, len, mode };
        let before = self.known.get(&path).copied();
        let (known, last) =
            (before.map(|(known, _)| known), before.map_or(Duration::ZERO, |(_, last)| last));
        let is_same = matches!(known, Some(Known::File { state: before, .. }) if before == state);
        let now = match &found {
            Found::Content(_) | Found::Large | Found::Ours => Known::File { state, is_whole: true },
            Found::File if is_same => known?,
            Found::File => Known::File { state, is_whole: false },
            Found::Dir | Found::Link(_) | Found::OurDir => Known::Other,
            Found::Nothing | Found::OurRemoval => Known::Nothing,
        };
        self.known.insert(path.clone(), (now, at));
        if now == Known::Nothing {
            self.forget_below(&path);
        }
        let file = match (known, &found) {
            (Some(before), _) if before == now => {
                self.again.bytes += bytes;
                if let Found::Content(content) = &found {
                    self.again.content += content.len();
                }
                return None;
            }
            (_, Found::Ours | Found::OurDir | Found::OurRemoval) | (None, Found::Nothing) => {
                return None;
            }
            (Some(_), Found::Nothing) => {
                let gone = File::Remove { remove: Yes };
                return self.done(hidden.path(&path), gone, (last, at), runs);
            }
            (_, Found::Dir) if hidden.is_around(&path) && hidden.path(&path) != PROJECT => {
                return None;
            }
            (_, found) => file(&path, found, &state, hidden),
        };
        let name = hidden.path(&path);
        self.tell_apart(&name, &found, len, hidden);
        if let Some(Known::File { state: before, is_whole }) = known
            && (before.modified, before.len) == (modified, len)
        {
            if before.mode != mode {
                return self.remoded(name, unusual(mode, FILE_MODE), runs, (last, at));
            }
            if !is_whole {
                return self.completed(name, file, runs, (modified, last));
            }
        }
        self.changed(known, name, file, runs, (modified, last))
    }

    /// What was in a directory that is gone is gone with it.
    fn forget_below(&mut self, directory: &Path) {
        let below = self.known.range_mut(directory.to_owned()..).skip(1);
        for (_, (known, _)) in below.take_while(|(path, _)| path.starts_with(directory)) {
            *known = Known::Nothing;
        }
    }

    /// Notes what cannot be here as it was.
    fn tell_apart(&mut self, name: &str, found: &Found, len: u64, hidden: &Hidden) {
        match found {
            Found::Large => {
                self.blank.insert(name.to_owned());
            }
            Found::Content(content) => match str::from_utf8(content) {
                Ok(text) if hidden.text(text).len() != text.len() => {
                    self.resized.insert(name.to_owned());
                }
                Err(_) if is_blank(content, hidden) => {
                    self.blank.insert(name.to_owned());
                }
                Ok(_) | Err(_) => {}
            },
            Found::File if len > FILE_BYTES_MAX => {
                self.resized.insert(name.to_owned());
            }
            Found::Dir
            | Found::Link(_)
            | Found::File
            | Found::Nothing
            | Found::Ours
            | Found::OurDir
            | Found::OurRemoval => {}
        }
    }

    /// Something was done since a path was seen the last time: by the last program that has run since then,
    /// or else by somebody.
    fn done(
        &self,
        name: String,
        file: File,
        (last, at): (Duration, Duration),
        runs: &mut Runs,
    ) -> Option<Change> {
        let since = SignedDuration::try_from(last).unwrap_or(SignedDuration::MAX);
        if let Some(writes) = runs.since(self.began.saturating_add(since).unwrap_or(self.began)) {
            writes.insert(name, file);
            return None;
        }
        Some(Change { when: When::Between(last, at), path: name, file })
    }

    /// Has a file of which only the permission bits are other ones get them, from whoever may have done it:
    /// the time of such a change is not known.
    fn remoded(
        &self,
        name: String,
        mode: Option<u32>,
        runs: &mut Runs,
        (last, at): (Duration, Duration),
    ) -> Option<Change> {
        let file = runs.written_last(&name).or_else(|| self.first.get(&name))?;
        let file = file.clone().with_mode(mode);
        self.done(name, file, (last, at), runs)
    }

    /// Puts the content of a file where the file was put down without.
    fn completed(
        &mut self,
        name: String,
        file: File,
        runs: &mut Runs,
        (modified, last): (Timestamp, Duration),
    ) -> Option<Change> {
        if let Some(first) = self.first.get_mut(&name) {
            *first = file;
            return None;
        }
        if let Some(writes) = runs.author(modified) {
            writes.insert(name, file);
            return None;
        }
        Some(Change { when: When::At(self.since(modified), last), path: name, file })
    }

    fn changed(
        &mut self,
        known: Option<Known>,
        name: String,
        file: File,
        runs: &mut Runs,
        (modified, last): (Timestamp, Duration),
    ) -> Option<Change> {
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
        Some(Change { when: When::At(self.since(modified), last), path: name, file })
    }

    fn since(&self, modified: Timestamp) -> Duration {
        Duration::try_from(modified.duration_since(self.began)).unwrap_or_default()
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
#[path = "disk_tests.rs"]
mod disk_tests;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_has_padding() {
        let written = [&b""[..], b"a", b"ab", b"abc", &[0xfb, 0xff]].map(base64);
        assert_eq!(written, ["", "YQ==", "YWI=", "YWJj", "+/8="]);
    }
}
