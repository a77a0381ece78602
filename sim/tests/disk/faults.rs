//! What goes wrong with the power on: each fault as the real disk shows it, and for as long as it is
//! switched on.

use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex};

use nexus3::world::{Access, Dir, File};
use nexus3_sim::disk::{CrashMode, Disk, Fault, OperationKind, Switch, View};

use super::{chance, dir, disk, p};

const NEW: Access = Access::CreateNew { mode: 0o600 };

/// A disk with a durable file `/d/file` of three bytes, open.
fn with_file() -> (Disk, Arc<dyn Dir>, Arc<dyn File>) {
    let disk = disk();
    let dir = dir(&disk);
    let file = dir.open(p("file"), NEW).expect("it is new");
    file.write_at(b"old", 0).expect("it is written");
    file.sync().expect("it syncs");
    dir.sync().expect("it syncs");
    (disk, dir, file)
}

fn kind<T>(result: io::Result<T>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind())
}

/// Whether it is the system's I/O error, for which `ErrorKind` has no word.
fn is_io_error<T>(result: io::Result<T>) -> bool {
    result.err().and_then(|error| error.raw_os_error()) == Some(5)
}

fn read(file: &dyn File) -> Vec<u8> {
    file.read_all(1 << 20).expect("it is read")
}

#[test]
fn a_full_disk_takes_what_fits_and_lets_the_rest_go() {
    let (disk, dir, file) = with_file();
    disk.set_fault(Fault::Full, Switch::On);
    assert_eq!(kind(dir.open(p("new"), NEW)), Some(ErrorKind::StorageFull));
    assert_eq!(kind(dir.make_dir(p("new"), 0o700)), Some(ErrorKind::StorageFull));
    assert_eq!(kind(file.write_at(&[b'x'; 5000], 0)), Some(ErrorKind::StorageFull));
    assert_eq!(read(&*file), [b'x'; 4096], "the file's own block was there to be filled");
    file.write_at(b"over", 0).expect("what is there can be written over");
    file.sync().expect("and synced");
    dir.rename(p("file"), p("moved")).expect("names change");
    dir.remove_file(p("moved")).expect("and go, which is how to make room");
    disk.set_fault(Fault::Full, Switch::Off);
    dir.open(p("new"), NEW).expect("there is room again");
}

#[test]
fn a_read_only_disk_is_read() {
    let (disk, dir, file) = with_file();
    disk.set_fault(Fault::ReadOnly, Switch::On);
    let refused = [
        file.write_at(b"new", 0),
        file.set_len(0),
        dir.open(p("file"), Access::Write).map(drop),
        dir.open(p("new"), NEW).map(drop),
        dir.make_dir(p("new"), 0o700),
        dir.make_link(p("new"), p("file")),
        dir.set_mode(p("file"), 0o400),
        dir.rename(p("file"), p("new")),
        dir.remove_file(p("file")),
    ];
    for result in refused {
        assert_eq!(kind(result), Some(ErrorKind::ReadOnlyFilesystem));
    }
    assert_eq!(read(&*dir.open(p("file"), Access::Read).expect("it opens for reading")), b"old");
}

#[test]
fn an_io_error_strikes_once_or_until_it_is_off() {
    let (disk, dir, file) = with_file();
    disk.set_fault(Fault::IoError, Switch::Once);
    assert!(is_io_error(file.read_at(&mut [0; 3], 0)));
    assert_eq!(read(&*file), b"old", "once is once");
    disk.set_fault(Fault::IoError, Switch::On);
    assert!(is_io_error(file.read_at(&mut [0; 3], 0)));
    assert!(is_io_error(file.write_at(b"x", 0)));
    assert!(is_io_error(file.sync()));
    assert!(is_io_error(dir.list()));
    disk.set_fault(Fault::IoError, Switch::Once);
    assert!(is_io_error(dir.list()));
    assert!(is_io_error(dir.list()), "one that is on stays on");
    disk.set_fault(Fault::IoError, Switch::Off);
    assert_eq!(read(&*file), b"old", "what failed did nothing");
}

#[test]
fn a_failed_sync_is_told_once_and_its_bytes_are_lost() {
    let (disk, dir, file) = with_file();
    file.write_at(b"new", 0).expect("it is written");
    disk.set_fault(Fault::FsyncError, Switch::Once);
    assert!(is_io_error(file.sync()));
    file.sync().expect("the second sync has nothing left to do");
    assert_eq!(read(&*file), b"new", "the cache still has it");
    dir.rename(p("file"), p("moved")).expect("it is renamed");
    disk.set_fault(Fault::FsyncError, Switch::Once);
    assert!(is_io_error(dir.sync()));
    dir.sync().expect("nor has the second sync of a directory");
    disk.crash(&mut chance(0), CrashMode::KeepAll);
    disk.power_on();
    let file = super::dir(&disk).open(p("file"), Access::Read).expect("it has its old name");
    assert_eq!(read(&*file), b"old");
}

#[test]
fn a_lying_sync_leaves_the_work_to_an_honest_one() {
    let (disk, dir, file) = with_file();
    let durable = disk.digest(View::Durable);
    file.write_at(b"new", 0).expect("it is written");
    dir.rename(p("file"), p("moved")).expect("it is renamed");
    disk.set_fault(Fault::FsyncLies, Switch::On);
    file.sync().expect("so it says");
    dir.sync().expect("so it says");
    assert_eq!(disk.digest(View::Durable), durable, "nothing is durable");
    disk.set_fault(Fault::FsyncLies, Switch::Off);
    file.sync().expect("it syncs");
    dir.sync().expect("it syncs");
    assert_eq!(disk.digest(View::Durable), disk.digest(View::Now), "now all of it is");
}

#[test]
fn a_torn_write_leaves_its_first_half() {
    let (disk, _dir, file) = with_file();
    disk.set_fault(Fault::TornWrite, Switch::Once);
    assert!(is_io_error(file.write_at(b"NEWNEW", 1)));
    assert_eq!(read(&*file), b"oNEW");
    file.write_at(b"NEWNEW", 1).expect("once is once");
    assert_eq!(read(&*file), b"oNEWNEW");
}

#[test]
fn an_observer_sees_each_operation_before_it_happens() {
    let (disk, dir, file) = with_file();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let notes = seen.clone();
    let observed = disk.clone();
    disk.on_operation(move |operation| {
        let note = format!("{} {}", operation.kind.name(), operation.path.display());
        notes.lock().expect("nobody panicked").push(note);
        // Between the decision to open and the opening.
        if operation.kind == OperationKind::Open && operation.path == p("/d/file") {
            observed.remove(p("/d/file")).expect("it is there");
        }
        if operation.kind == OperationKind::Write {
            observed.set_fault(Fault::IoError, Switch::Once);
        }
    });
    assert!(is_io_error(file.write_at(b"x", 0)));
    dir.rename(p("file"), p("./other")).expect("it is renamed");
    dir.rename(p("other"), p("file")).expect("and back");
    assert_eq!(kind(dir.open(p("file"), Access::Read)), Some(ErrorKind::NotFound));
    dir.sync().expect("it syncs");
    let expected = [
        "write /d/file",
        "rename /d/file",
        "rename_to /d/other",
        "rename /d/other",
        "rename_to /d/file",
        "open /d/file",
        "sync_dir /d",
    ];
    assert_eq!(*seen.lock().expect("nobody panicked"), expected);
}
