//! A small write-ahead log, right and with three mistakes that every such program has made once.
//! The right one survives every crash point in every mode; each mistake is caught.

use std::io;
use std::sync::Arc;

use nexus3::world::{Access, Dir, File};
use nexus3_sim::disk::{CrashMode, Disk};

use super::{chance, dir, disk, p};

const RECORDS: u8 = 6;
const SEEDS: u64 = 8;

/// More than a sector, so that a record can be torn.
const PAYLOAD_BYTES: usize = 700;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mistake {
    None,
    NoFileSync,
    NoDirSync,
    RenameBeforeSync,
}

/// A record is its payload and the sum of it; the log is one record after another.
fn record(number: u8) -> Vec<u8> {
    let payload: Vec<u8> = (0..=250).cycle().take(PAYLOAD_BYTES).map(|at| number ^ at).collect();
    [sum(&payload).to_le_bytes().to_vec(), payload].concat()
}

fn sum(payload: &[u8]) -> u64 {
    payload.iter().fold(7, |sum, byte| sum * 31 % 1_000_003 + u64::from(*byte))
}

/// The whole records at the start of a log.
fn records(log: &[u8]) -> Vec<Vec<u8>> {
    let whole = |record: &&[u8]| {
        let (told, payload) = record.split_at(8);
        payload.len() == PAYLOAD_BYTES && told == sum(payload).to_le_bytes()
    };
    log.chunks(8 + PAYLOAD_BYTES)
        .take_while(|record| record.len() > 8 && whole(record))
        .map(<[u8]>::to_vec)
        .collect()
}

struct Log {
    dir: Arc<dyn Dir>,
    file: Arc<dyn File>,
    mistake: Mistake,
}

impl Log {
    fn create(disk: &Disk, mistake: Mistake) -> io::Result<Self> {
        let dir = dir(disk);
        let file = dir.open(p("log"), Access::CreateNew { mode: 0o600 })?;
        if mistake != Mistake::NoDirSync {
            dir.sync()?;
        }
        Ok(Self { dir, file, mistake })
    }

    /// Acknowledges the record by returning.
    fn append(&self, record: &[u8]) -> io::Result<()> {
        self.file.write_at(record, self.file.stat()?.len)?;
        if self.mistake == Mistake::NoFileSync { Ok(()) } else { self.file.sync() }
    }

    /// Writes the log anew, as a program does that drops what it no longer needs.
    fn compact(&mut self) -> io::Result<()> {
        let whole = self.file.read_all(1 << 20)?;
        self.file = self.dir.open(p("log.new"), Access::CreateNew { mode: 0o600 })?;
        self.file.write_at(&whole, 0)?;
        if self.mistake != Mistake::RenameBeforeSync {
            self.file.sync()?;
        }
        self.dir.rename(p("log.new"), p("log"))?;
        self.dir.sync()?;
        self.file.sync()
    }
}

/// Runs until the disk fails, and returns how many records were acknowledged.
fn run(disk: &Disk, mistake: Mistake) -> u8 {
    let mut acknowledged = 0;
    let _ended_by_the_power_cut = (|| {
        let mut log = Log::create(disk, mistake)?;
        for number in 1..=RECORDS {
            log.append(&record(number))?;
            acknowledged = number;
            if number == 3 {
                log.compact()?;
            }
        }
        io::Result::Ok(())
    })();
    acknowledged
}

/// What is wrong after a crash at that point, if anything.
fn violation(mistake: Mistake, point: u64, mode: CrashMode, seed: u64) -> Option<String> {
    let disk = disk();
    disk.power_off_in(point);
    let acknowledged = run(&disk, mistake);
    disk.power_off();
    disk.crash(&mut chance(seed), mode);
    disk.power_on();
    let found = match dir(&disk).open(p("log"), Access::Read) {
        Ok(file) => records(&file.read_all(1 << 20).expect("it is read")),
        Err(_) => Vec::new(),
    };
    let count = found.len();
    if count < usize::from(acknowledged) {
        return Some(format!("{acknowledged} were acknowledged and {count} are left"));
    }
    let written = (1..=RECORDS).map(record);
    let same = written.zip(&found).all(|(written, found)| written == *found);
    (!same || count > usize::from(RECORDS)).then(|| "a record is not what was written".to_owned())
}

/// How many of all crashes at all points are violations.
fn sweep(mistake: Mistake) -> (usize, usize) {
    let whole = disk();
    assert_eq!(run(&whole, mistake), RECORDS, "nothing fails without a crash");
    let mut crashes = 0;
    let mut violations = 0;
    // One more than there are: a crash after everything was done.
    for point in 1..=whole.operations() + 1 {
        for mode in CrashMode::ALL {
            for seed in 0..SEEDS {
                crashes += 1;
                violations += usize::from(violation(mistake, point, mode, seed).is_some());
            }
        }
    }
    (crashes, violations)
}

#[test]
fn a_correct_log_survives_every_crash() {
    // 1 for the name, 2 for each of 6 records, 4 for the compaction, and the end.
    assert_eq!(sweep(Mistake::None), (18 * 3 * 8, 0));
}

#[test]
fn a_log_without_sync_of_the_file_is_caught() {
    assert!(sweep(Mistake::NoFileSync).1 > 0);
}

#[test]
fn a_log_without_sync_of_the_directory_is_caught() {
    assert!(sweep(Mistake::NoDirSync).1 > 0);
}

#[test]
fn a_log_that_renames_before_it_syncs_is_caught() {
    assert!(sweep(Mistake::RenameBeforeSync).1 > 0);
}
