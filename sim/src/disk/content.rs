//! The bytes of one file: as they read now, as a power cut would leave them, and the changes between.
//! Pure: it knows neither names nor faults; `state` decides when a change or a sync takes place.

use super::crash::{Chance, CrashMode, below};

/// What a disk writes whole or not at all.
pub(super) const SECTOR_BYTES: usize = 512;

/// What a file takes from the disk at a time: a full disk still has the rest of the last block.
const BLOCK_BYTES: usize = 4096;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Content {
    now: Vec<u8>,
    /// Not always `now` less `unsynced`: a failed sync forgets changes that still read as made.
    durable: Vec<u8>,
    unsynced: Vec<Change>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Change {
    Write { offset: usize, bytes: Vec<u8> },
    SetLen(usize),
}

impl Content {
    /// Bytes that were on the disk before anybody looked.
    pub(super) fn settled(bytes: Vec<u8>) -> Self {
        Self { durable: bytes.clone(), now: bytes, unsynced: Vec::new() }
    }

    pub(super) fn now(&self) -> &[u8] {
        &self.now
    }

    pub(super) fn durable(&self) -> &[u8] {
        &self.durable
    }

    /// The end of the last block the file already has.
    pub(super) fn allocated(&self) -> usize {
        self.now.len().next_multiple_of(BLOCK_BYTES)
    }

    pub(super) fn read(&self, bytes: &mut [u8], offset: usize) -> usize {
        let found = self.now.get(offset..).unwrap_or_default();
        let count = found.len().min(bytes.len());
        bytes[..count].copy_from_slice(&found[..count]);
        count
    }

    pub(super) fn write(&mut self, bytes: &[u8], offset: usize) {
        put(&mut self.now, bytes, offset);
        self.unsynced.push(Change::Write { offset, bytes: bytes.to_vec() });
    }

    pub(super) fn set_len(&mut self, len: usize) {
        self.now.resize(len, 0);
        self.unsynced.push(Change::SetLen(len));
    }

    pub(super) fn sync(&mut self) {
        for change in self.unsynced.drain(..) {
            change.keep(&mut self.durable);
        }
    }

    /// A sync failed as on Linux: the changes still read as made, and nobody will write them again.
    pub(super) fn forget_unsynced(&mut self) {
        self.unsynced.clear();
    }

    /// What the power cut leaves is all there is afterwards.
    pub(super) fn crash(&mut self, chance: &mut Chance<'_>, mode: CrashMode) {
        for change in self.unsynced.drain(..) {
            match mode {
                CrashMode::LoseAll => (),
                CrashMode::KeepAll => change.keep(&mut self.durable),
                CrashMode::Torn => match below(chance, 3) {
                    0 => (),
                    1 => change.keep(&mut self.durable),
                    _ => change.tear(&mut self.durable, chance),
                },
            }
        }
        self.now.clone_from(&self.durable);
    }
}

impl Change {
    fn keep(&self, durable: &mut Vec<u8>) {
        match self {
            Self::Write { offset, bytes } => put(durable, bytes, *offset),
            Self::SetLen(len) => durable.resize(*len, 0),
        }
    }

    /// Each sector arrives or not. The new length may arrive without the bytes, which then are zeros.
    fn tear(&self, durable: &mut Vec<u8>, chance: &mut Chance<'_>) {
        match self {
            // A length is one number in one sector.
            Self::SetLen(_) => self.keep(durable),
            Self::Write { offset, bytes } => {
                let end = offset + bytes.len();
                if durable.len() < end && below(chance, 2) == 0 {
                    durable.resize(end, 0);
                }
                let mut start = *offset;
                while start < end {
                    let next = (start + 1).next_multiple_of(SECTOR_BYTES).min(end);
                    if below(chance, 2) == 0 {
                        put(durable, &bytes[start - offset..next - offset], start);
                    }
                    start = next;
                }
            }
        }
    }
}

fn put(content: &mut Vec<u8>, bytes: &[u8], offset: usize) {
    let end = offset + bytes.len();
    if content.len() < end {
        content.resize(end, 0);
    }
    content[offset..end].copy_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crashed(content: &Content, draws: &[u64], mode: CrashMode) -> Vec<u8> {
        let mut content = content.clone();
        let mut draws = draws.iter().copied();
        content.crash(&mut || draws.next().expect("the test says every draw"), mode);
        assert_eq!(draws.next(), None, "every draw is used");
        assert_eq!(content, Content::settled(content.durable.clone()), "nothing is left to lose");
        content.durable
    }

    #[test]
    fn what_is_not_synced_is_lost_or_kept_as_the_mode_says() {
        let mut content = Content::settled(b"old".to_vec());
        content.write(b"new!", 0);
        assert_eq!((content.now(), content.durable()), (&b"new!"[..], &b"old"[..]));
        assert_eq!(crashed(&content, &[], CrashMode::LoseAll), b"old");
        assert_eq!(crashed(&content, &[], CrashMode::KeepAll), b"new!");
        content.sync();
        assert_eq!(crashed(&content, &[], CrashMode::LoseAll), b"new!");
    }

    #[test]
    fn each_unsynced_change_is_lost_or_kept_on_its_own() {
        let mut content = Content::settled(b"aaaa".to_vec());
        content.write(b"bb", 0);
        content.write(b"cc", 1);
        content.set_len(3);
        assert_eq!(content.now(), b"bcc");
        // 0 loses, 1 keeps.
        assert_eq!(crashed(&content, &[0, 1, 0], CrashMode::Torn), b"acca");
        assert_eq!(crashed(&content, &[1, 0, 1], CrashMode::Torn), b"bba");
        assert_eq!(crashed(&content, &[0, 0, 0], CrashMode::Torn), b"aaaa");
        // 2 tears: a length is one number, and these writes are within one sector.
        assert_eq!(crashed(&content, &[2, 0, 2, 1, 2], CrashMode::Torn), b"bba");
    }

    #[test]
    fn a_torn_write_is_torn_between_sectors() {
        let mut content = Content::settled(vec![b'a'; 1000]);
        content.write(&[b'b'; 1100], 500);
        // Torn; the length does not arrive first; of the four sectors the second and the third do.
        let found = crashed(&content, &[2, 1, 1, 0, 0, 1], CrashMode::Torn);
        assert_eq!(found, [vec![b'a'; 512], vec![b'b'; 1024]].concat());
        // The length arrives, and only the first sector.
        let found = crashed(&content, &[2, 0, 0, 1, 1, 1], CrashMode::Torn);
        let expected = [vec![b'a'; 500], vec![b'b'; 12], vec![b'a'; 488], vec![0; 600]].concat();
        assert_eq!(found, expected);
    }

    #[test]
    fn what_a_failed_sync_forgot_reads_as_made_until_the_crash() {
        let mut content = Content::settled(b"old".to_vec());
        content.write(b"new", 0);
        content.forget_unsynced();
        content.write(b"!", 3);
        content.sync();
        assert_eq!(content.now(), b"new!");
        assert_eq!(crashed(&content, &[], CrashMode::KeepAll), b"old!");
    }
}
