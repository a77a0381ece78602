//! Files that are replaced, appended to and copied, on the simulated disk: with its crashes and its
//! faults, in the simulated machine's chance.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use nexus3::tool::edit::save::{Overwrite, Target, append, copy, replace};
use nexus3::world::{Access, Dir, Fs};
use nexus3_sim::disk::{CrashMode, Disk, Fault, Item, Switch, View};
use nexus3_sim::machine::Seeded;

const OLD: &[u8] = b"old content\r\n";

/// A disk with the file `/d/f`, and the directory it is in.
fn disk() -> (Disk, Arc<dyn Dir>) {
    let disk = Disk::new(|| Timestamp::UNIX_EPOCH);
    put(&disk, "/d/f", OLD, 0o750);
    let dir = disk.dir(Path::new("/d")).expect("it was put there");
    (disk, dir)
}

fn put(disk: &Disk, path: &str, content: &[u8], mode: u32) {
    disk.put(Path::new(path), file(content, mode)).expect("there is room");
}

fn file(content: &[u8], mode: u32) -> Item {
    Item::File { content: content.to_vec(), mode }
}

/// What is at `path` for those who read it now.
fn at(disk: &Disk, path: &str) -> Item {
    disk.tree(View::Now).remove(Path::new(path)).expect("something is there")
}

/// The names in `/d`.
fn names(disk: &Disk) -> Vec<PathBuf> {
    let mut names: Vec<PathBuf> = disk.tree(View::Now).into_keys().collect();
    names.retain(|path| path.parent() == Some(Path::new("/d")));
    names.iter().filter_map(|path| path.file_name()).map(PathBuf::from).collect()
}

fn name() -> &'static OsStr {
    OsStr::new("f")
}

/// Cuts the power at every write and sync of `act` in turn, in every way, and looks at what is left.
/// Returns what a cut after the last of them leaves.
fn crash_everywhere(act: impl Fn(&dyn Dir) -> io::Result<()>, look: impl Fn(&Disk)) -> Disk {
    let (whole, dir) = disk();
    let before = whole.operations();
    act(&*dir).expect("nothing is wrong with this disk");
    let operations = whole.operations() - before;
    assert!(operations >= 2, "something is written and synced");
    for cut in 1..=operations {
        for mode in CrashMode::ALL {
            let (disk, dir) = disk();
            disk.power_off_in(cut);
            act(&*dir).expect_err("the power is cut");
            drop(dir);
            let mut draws = 0;
            disk.crash(
                &mut || {
                    draws += 7;
                    draws
                },
                mode,
            );
            disk.power_on();
            look(&disk);
        }
    }
    whole.crash(&mut || 0, CrashMode::LoseAll);
    whole
}

#[test]
fn a_file_is_replaced_whole_with_its_mode() {
    let (disk, dir) = disk();
    let chance = Seeded::new(1);
    replace(&*dir, &chance, name(), Target::Existing { mode: 0o750 }, b"new")
        .expect("it is written");
    assert_eq!(at(&disk, "/d/f"), file(b"new", 0o750));
    replace(&*dir, &chance, OsStr::new("g"), Target::New, b"more").expect("it is written");
    assert_eq!(at(&disk, "/d/g"), file(b"more", 0o644));
    assert_eq!(names(&disk), [Path::new("f"), Path::new("g")]);
}

#[test]
fn a_crash_leaves_all_of_the_old_or_all_of_the_new() {
    let new = [b'n'; 10_000];
    let act = |dir: &dyn Dir| {
        replace(dir, &Seeded::new(1), name(), Target::Existing { mode: 0o750 }, &new)
    };
    let done = crash_everywhere(act, |disk| {
        let left = at(disk, "/d/f");
        assert!(left == file(OLD, 0o750) || left == file(&new, 0o750), "it is torn");
    });
    assert_eq!(at(&done, "/d/f"), file(&new, 0o750));
    assert_eq!(names(&done), [Path::new("f")]);
}

#[test]
fn a_failed_write_leaves_the_old_file_and_nothing_else() {
    for fault in [Fault::Full, Fault::TornWrite, Fault::FsyncError] {
        let (disk, dir) = disk();
        let switch = if fault == Fault::Full { Switch::On } else { Switch::Once };
        let from = dir.open(Path::new("f"), Access::Read).expect("it is there");
        let new = vec![b'n'; 100_000];
        disk.set_fault(fault, switch);
        let target = Target::Existing { mode: 0o750 };
        replace(&*dir, &Seeded::new(1), name(), target, &new).expect_err("the disk fails");
        disk.set_fault(fault, switch);
        let copied = copy(&*from, &*dir, &Seeded::new(2), OsStr::new("g"), Overwrite::Refuse);
        copied.expect_err("the disk fails");
        disk.set_fault(fault, switch);
        append(&*dir, &Seeded::new(3), name(), &"a\n".repeat(100_000)).expect_err("the disk fails");
        assert_eq!(at(&disk, "/d/f"), file(OLD, 0o750), "{fault:?}");
        assert_eq!(names(&disk), [Path::new("f")], "{fault:?}");
    }
}

#[test]
fn appended_lines_end_as_the_file_has_them() {
    let (disk, dir) = disk();
    let chance = Seeded::new(1);
    let len = append(&*dir, &chance, name(), "a\nb").expect("it is written");
    assert_eq!(at(&disk, "/d/f"), file(b"old content\r\na\r\nb", 0o750));
    assert_eq!(len, 17);
    append(&*dir, &chance, OsStr::new("g"), "a\n").expect("it is written");
    append(&*dir, &chance, OsStr::new("g"), "b\n").expect("it is written");
    assert_eq!(at(&disk, "/d/g"), file(b"a\nb\n", 0o644));
    // A sample that begins inside of a line end says nothing of that one.
    let long = [b"\r\n".repeat(20_000), b"x".to_vec()].concat();
    put(&disk, "/d/h", &long, 0o600);
    append(&*dir, &chance, OsStr::new("h"), "\n").expect("it is written");
    assert_eq!(at(&disk, "/d/h"), file(&[long, b"\r\n".to_vec()].concat(), 0o600));
}

#[test]
fn a_crash_while_appending_leaves_what_was_there() {
    let act = |dir: &dyn Dir| append(dir, &Seeded::new(1), name(), "a\nb").map(|_| ());
    let done = crash_everywhere(act, |disk| {
        let Item::File { content, mode: 0o750 } = at(disk, "/d/f") else {
            panic!("it is another file");
        };
        assert!(content.starts_with(OLD), "what was there is gone");
    });
    assert_eq!(at(&done, "/d/f"), file(b"old content\r\na\r\nb", 0o750));
}

#[test]
fn a_copy_has_content_and_mode_and_takes_no_place() {
    let (disk, dir) = disk();
    let long: Vec<u8> = (0..1_000_000_u32).flat_map(u32::to_le_bytes).collect();
    put(&disk, "/d/long", &long, 0o640);
    let from = dir.open(Path::new("long"), Access::Read).expect("it is there");
    let chance = Seeded::new(1);
    let to = |name: &str, overwrite| copy(&*from, &*dir, &chance, OsStr::new(name), overwrite);
    assert_eq!(to("g", Overwrite::Refuse).expect("it is copied"), long.len() as u64);
    assert_eq!(at(&disk, "/d/g"), file(&long, 0o640));
    let refused = to("f", Overwrite::Refuse).expect_err("there is a file");
    assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(at(&disk, "/d/f"), file(OLD, 0o750));
    to("f", Overwrite::Replace).expect("it is copied");
    assert_eq!(at(&disk, "/d/f"), file(&long, 0o640));
    assert_eq!(names(&disk), [Path::new("f"), Path::new("g"), Path::new("long")]);
}

#[test]
fn a_crash_while_copying_leaves_all_of_either_file() {
    let long = vec![b'l'; 600_000];
    let act = |dir: &dyn Dir| {
        let from = dir.open(Path::new("long"), Access::Create { mode: 0o640 })?;
        if from.stat()?.len == 0 {
            from.write_at(&long, 0)?;
        }
        copy(&*from, dir, &Seeded::new(1), name(), Overwrite::Replace).map(|_| ())
    };
    let done = crash_everywhere(act, |disk| {
        let left = at(disk, "/d/f");
        assert!(left == file(OLD, 0o750) || left == file(&long, 0o640), "it is torn");
    });
    assert_eq!(at(&done, "/d/f"), file(&long, 0o640));
}
