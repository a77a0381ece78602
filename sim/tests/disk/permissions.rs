//! Modes count, for the owner of every file who is not root. The suites leave them out: whoever runs
//! those against the real disk may be root.

use std::io::{self, ErrorKind};

use nexus3::world::{Access, Fs};

use super::{dir, disk, p};

fn kind<T>(result: io::Result<T>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind())
}

#[test]
fn new_files_have_their_mode_less_the_umask() {
    let dir = dir(&disk());
    dir.open(p("file"), Access::CreateNew { mode: 0o666 }).expect("it is new");
    dir.make_dir(p("folder"), 0o777).expect("it is new");
    let mode = |path: &str| dir.stat(p(path)).expect("it is there").mode;
    assert_eq!((mode("file"), mode("folder")), (0o644, 0o755));
}

#[test]
fn a_file_is_opened_as_its_mode_allows() {
    let dir = dir(&disk());
    dir.open(p("file"), Access::CreateNew { mode: 0o400 }).expect("whoever makes it may write it");
    dir.open(p("file"), Access::Read).expect("it may be read");
    let denied = Some(ErrorKind::PermissionDenied);
    assert_eq!(kind(dir.open(p("file"), Access::Write)), denied);
    assert_eq!(kind(dir.open(p("file"), Access::Create { mode: 0o600 })), denied);
    dir.set_mode(p("file"), 0o200).expect("its owner may always");
    assert_eq!(kind(dir.open(p("file"), Access::Read)), denied);
}

#[test]
fn a_directory_is_used_as_its_mode_allows() {
    let disk = disk();
    let dir = dir(&disk);
    dir.make_dir(p("folder"), 0o700).expect("it is new");
    dir.open(p("folder/file"), Access::CreateNew { mode: 0o600 }).expect("it is new");
    let denied = Some(ErrorKind::PermissionDenied);

    dir.set_mode(p("folder"), 0o500).expect("its owner may always");
    dir.open(p("folder/file"), Access::Write).expect("what is in it is another matter");
    assert_eq!(kind(dir.open(p("folder/new"), Access::CreateNew { mode: 0o600 })), denied);
    assert_eq!(kind(dir.make_dir(p("folder/new"), 0o700)), denied);
    assert_eq!(kind(dir.rename(p("folder/file"), p("file"))), denied);
    assert_eq!(kind(dir.remove_file(p("folder/file"))), denied);

    dir.set_mode(p("folder"), 0o600).expect("its owner may always");
    dir.dir(p("folder")).expect("it may be listed").list().expect("it may be listed");
    assert_eq!(kind(dir.stat(p("folder/file"))), denied);

    dir.set_mode(p("folder"), 0o300).expect("its owner may always");
    dir.stat(p("folder/file")).expect("it may be passed");
    assert_eq!(kind(dir.dir(p("folder"))), denied);
    assert_eq!(kind(disk.dir(p("/d/folder"))), denied);
}
