//! The content of files: positional reads and writes, length, mode, locks, and replacing one whole.

use std::io::ErrorKind;

use nexus3::world::{Access, Dir, Kind};

use super::{p, put, refused, text};

const NEW: Access = Access::CreateNew { mode: 0o600 };

pub(super) fn check(dir: &std::sync::Arc<dyn Dir>) {
    let dir = dir.as_ref();
    files_are_opened_as_asked(dir);
    bytes_are_read_where_they_were_written(dir);
    reading_all_is_bounded(dir);
    handles_outlive_names(dir);
    modes_are_kept(dir);
    locks_exclude_each_other(dir);
    replacing_leaves_the_new_file_only(dir);
    a_failed_replacement_leaves_the_old_file_only(dir);
}

fn files_are_opened_as_asked(dir: &dyn Dir) {
    for access in [Access::Read, Access::Write] {
        refused(dir.open(p("new"), access), ErrorKind::NotFound, "only creating creates");
    }
    dir.open(p("new"), Access::Create { mode: 0o600 }).expect("a missing file is created");
    let again = dir.open(p("new"), Access::Create { mode: 0o600 }).expect("and opened after that");
    again.write_at(b"kept", 0).expect("a created file is writable");
    dir.open(p("new"), Access::Create { mode: 0o600 }).expect("opening does not empty it");
    assert_eq!(text(dir, "new"), "kept", "what exists keeps its content");
    refused(dir.open(p("new"), NEW), ErrorKind::AlreadyExists, "a new file is new");
    let reader = dir.open(p("new"), Access::Read).expect("a file opens for reading");
    assert!(reader.write_at(b"x", 0).is_err(), "a file opened for reading takes no bytes");
    assert!(reader.set_len(0).is_err(), "nor another length");

    let missing = dir.open(p("missing/file"), Access::Create { mode: 0o600 });
    refused(missing, ErrorKind::NotFound, "a file is made in a directory that exists");
    let below = dir.open(p("new/file"), Access::Read);
    refused(below, ErrorKind::NotADirectory, "there is nothing below a file");
    dir.make_dir(p("folder"), 0o700).expect("a directory is made");
    for access in [Access::Read, Access::Write, Access::Create { mode: 0o600 }] {
        let folder = dir.open(p("folder"), access);
        refused(folder, ErrorKind::IsADirectory, "a directory is no file");
    }
}

fn bytes_are_read_where_they_were_written(dir: &dyn Dir) {
    let file = dir.open(p("bytes"), NEW).expect("a file is made");
    let read = |offset: u64, len: usize| {
        let mut bytes = vec![0xff; len];
        let count = file.read_at(&mut bytes, offset).expect("a file is read");
        bytes.truncate(count);
        bytes
    };
    assert_eq!(read(0, 8), b"", "a new file is empty");
    file.write_at(b"hello", 0).expect("bytes are written");
    file.write_at(b"J", 0).expect("bytes are overwritten");
    file.write_at(b"end", 8).expect("bytes are written past the end");
    assert_eq!(read(0, 100), b"Jello\0\0\0end", "a gap reads as zeros");
    assert_eq!(read(1, 3), b"ell", "a read begins and ends where it is asked to");
    assert_eq!(read(9, 100), b"nd", "a read stops at the end");
    assert_eq!(read(11, 1), b"", "there is nothing at the end");
    assert_eq!(read(1000, 1), b"", "nor past it");
    file.write_at(b"", 500).expect("no bytes can be written anywhere");
    assert_eq!(file.stat().expect("a file has facts").len, 11, "writing nothing adds nothing");

    file.set_len(3).expect("a file is cut");
    assert_eq!(read(0, 100), b"Jel", "what was cut is gone");
    file.set_len(6).expect("a file is grown");
    assert_eq!(read(0, 100), b"Jel\0\0\0", "what was cut does not come back");
    file.sync().expect("a file is synced");
    let stat = file.stat().expect("a file has facts");
    assert_eq!((stat.kind, stat.len), (Kind::File, 6), "the facts follow the content");
    let by_name = dir.stat(p("bytes")).expect("a name has facts");
    assert_eq!(by_name, stat, "the facts of the name are those of the file");
}

fn reading_all_is_bounded(dir: &dyn Dir) {
    // Longer than one piece of `read_all`.
    let content = "0123456789".repeat(5000);
    put(dir, "long", &content);
    let file = dir.open(p("long"), Access::Read).expect("a file opens");
    let all = file.read_all(50_000).expect("a file as long as the bound is read");
    assert!(all == content.as_bytes(), "all of it, in order");
    refused(file.read_all(49_999), ErrorKind::FileTooLarge, "one byte more is too large");
    put(dir, "nothing", "");
    let empty = dir.open(p("nothing"), Access::Read).expect("an empty file opens");
    assert_eq!(empty.read_all(0).expect("nothing is within any bound"), b"", "nothing is read");
}

fn handles_outlive_names(dir: &dyn Dir) {
    put(dir, "leaving", "still here");
    let file = dir.open(p("leaving"), Access::Write).expect("a file opens");
    dir.remove_file(p("leaving")).expect("an open file's name is removed");
    assert_eq!(file.read_all(100).expect("it is read"), b"still here", "a handle keeps the file");
    put(dir, "leaving", "another");
    file.write_at(b"STILL", 0).expect("it is written");
    assert_eq!(text(dir, "leaving"), "another", "the name is another file's now");
}

fn modes_are_kept(dir: &dyn Dir) {
    let mode = |path: &str| dir.stat(p(path)).expect("it is there").mode;
    put(dir, "secret", "");
    assert_eq!(mode("secret"), 0o600, "a file has the mode it was made with");
    dir.open(p("secret"), Access::Create { mode: 0o700 }).expect("a file opens");
    assert_eq!(mode("secret"), 0o600, "opening does not change the mode");
    dir.set_mode(p("secret"), 0o640).expect("a mode is set");
    assert_eq!(mode("secret"), 0o640, "a mode is what it was set to");
    // Nobody may read it, and its owner may still change that.
    dir.set_mode(p("secret"), 0).expect("every permission is taken");
    dir.set_mode(p("secret"), 0o600).expect("and given back");
    assert_eq!(mode("secret"), 0o600, "without a look inside");

    dir.make_dir(p("private"), 0o700).expect("a directory is made");
    assert_eq!(mode("private"), 0o700, "a directory has the mode it was made with");
    dir.set_mode(p("private"), 0o750).expect("a directory's mode is set");
    assert_eq!(mode("private"), 0o750, "as a file's");
    let private = dir.dir(p("private")).expect("a directory opens");
    private.set_mode(p("."), 0o700).expect("a handle's own mode is set");
    assert_eq!(mode("private"), 0o700, "by the path of the directory itself");
    refused(dir.set_mode(p("missing"), 0o600), ErrorKind::NotFound, "there is nothing to change");
}

fn locks_exclude_each_other(dir: &dyn Dir) {
    put(dir, "lock", "");
    let open = || dir.open(p("lock"), Access::Write).expect("a lock file opens");
    let (first, second) = (open(), open());
    first.try_lock().expect("a free lock is taken");
    refused(second.try_lock(), ErrorKind::WouldBlock, "a lock has one holder");
    refused(open().try_lock(), ErrorKind::WouldBlock, "dropping another handle frees nothing");
    let shared = first.clone();
    drop(first);
    refused(second.try_lock(), ErrorKind::WouldBlock, "a lock lives as long as its last handle");
    drop(shared);
    second.try_lock().expect("a lock is free once its holder is dropped");
    dir.remove_file(p("lock")).expect("a locked file can be removed");
}

fn replacing_leaves_the_new_file_only(dir: &dyn Dir) {
    dir.make_dir(p("place"), 0o700).expect("a directory is made");
    dir.replace(p("place/file"), b"first", 0o640, "temp").expect("a missing file is made");
    assert_eq!(text(dir, "place/file"), "first", "with its content");
    let before = dir.open(p("place/file"), Access::Read).expect("the first file opens");
    dir.replace(p("place/file"), b"second", 0o600, "temp").expect("a file is replaced");
    assert_eq!(text(dir, "place/file"), "second", "with the new content");
    assert_eq!(dir.stat(p("place/file")).expect("it is there").mode, 0o600, "and the new mode");
    assert_eq!(before.read_all(100).expect("it is read"), b"first", "who reads goes on reading");
    dir.replace(p("here"), b"third", 0o600, "temp").expect("a file is made right here");
    assert_eq!(text(dir, "here"), "third", "as in a directory below");
    let place = dir.dir(p("place")).expect("a directory opens");
    assert_eq!(place.list().expect("it is listed").len(), 1, "no temporary file is left");
}

fn a_failed_replacement_leaves_the_old_file_only(dir: &dyn Dir) {
    dir.make_dir(p("yard"), 0o700).expect("a directory is made");
    dir.make_dir(p("yard/taken"), 0o700).expect("a directory is made in it");
    let over_directory = dir.replace(p("yard/taken"), b"x", 0o600, "temp");
    refused(over_directory, ErrorKind::IsADirectory, "a file does not replace a directory");
    let yard = dir.dir(p("yard")).expect("a directory opens");
    assert_eq!(yard.list().expect("it is listed").len(), 1, "the temporary file is removed");

    put(dir, "yard/temp", "somebody's");
    let taken = dir.replace(p("yard/new"), b"x", 0o600, "temp");
    refused(taken, ErrorKind::AlreadyExists, "a temporary name must be new");
    assert_eq!(text(dir, "yard/temp"), "somebody's", "what has it already is left alone");
    for temp in ["../temp", "taken/temp", "", ".."] {
        let elsewhere = dir.replace(p("yard/new"), b"x", 0o600, temp);
        refused(elsewhere, ErrorKind::InvalidInput, "a temporary name is a plain name");
    }
}
