//! The names of files: listing, making, renaming and removing, and which paths are none.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use nexus3::world::{Access, Dir, Entry, Kind};

use super::{p, put, refused, text};

pub(super) fn check(dir: &Arc<dyn Dir>) {
    let dir = dir.as_ref();
    lists_are_sorted(dir);
    directories_are_made_and_removed(dir);
    renaming_replaces(dir);
    the_directory_itself_is_a_dot(dir);
    paths_that_lead_out_are_refused(dir);
    dir.sync().expect("a directory is synced");
}

fn lists_are_sorted(dir: &dyn Dir) {
    dir.make_dir(p("list"), 0o700).expect("a directory is made");
    let list = dir.dir(p("list")).expect("a directory opens");
    assert_eq!(list.list().expect("it is listed"), [], "a new directory is empty");
    for name in ["b", "a", "B", ".hidden", "ä", "a.b", "c c"] {
        put(list.as_ref(), name, "");
    }
    list.make_dir(p("a-dir"), 0o700).expect("a directory is made in it");
    list.make_link(p("a-link"), p("nowhere")).expect("a link is made in it");
    let expected = [
        (".hidden", Kind::File),
        ("B", Kind::File),
        ("a", Kind::File),
        ("a-dir", Kind::Dir),
        ("a-link", Kind::Link),
        ("a.b", Kind::File),
        ("b", Kind::File),
        ("c c", Kind::File),
        ("ä", Kind::File),
    ]
    .map(|(name, kind)| Entry { name: OsString::from(name), kind });
    assert_eq!(list.list().expect("it is listed"), expected, "entries are sorted by their bytes");
    assert_eq!(list.list().expect("it is listed again"), expected, "and listed from the start");

    for n in 0..1000 {
        put(list.as_ref(), &format!("many {n:04}"), "");
    }
    let many = list.list().expect("a long directory is listed");
    assert_eq!(many.len(), 1009, "all entries of a long directory are there");
    assert!(many.is_sorted_by(|a, b| a.name < b.name), "each once, in order");
}

fn directories_are_made_and_removed(dir: &dyn Dir) {
    dir.make_dir(p("outer"), 0o700).expect("a directory is made");
    dir.make_dir(p("outer/inner"), 0o700).expect("a directory is made below");
    let again = dir.make_dir(p("outer"), 0o700);
    refused(again, ErrorKind::AlreadyExists, "a directory is made once");
    let deep = dir.make_dir(p("outer/missing/inner"), 0o700);
    refused(deep, ErrorKind::NotFound, "a directory is made in one that exists");
    put(dir, "outer/inner/file", "deep");
    let inner = dir.dir(p("outer/inner")).expect("a directory below opens");
    assert_eq!(text(inner.as_ref(), "file"), "deep", "and is the same directory");
    assert_eq!(
        dir.stat(p("outer/inner")).expect("it is there").kind,
        Kind::Dir,
        "its kind is told"
    );

    let full = dir.remove_dir(p("outer/inner"));
    refused(full, ErrorKind::DirectoryNotEmpty, "a directory with entries stays");
    refused(dir.remove_file(p("outer")), ErrorKind::IsADirectory, "a directory is no file");
    let file = dir.remove_dir(p("outer/inner/file"));
    refused(file, ErrorKind::NotADirectory, "a file is no directory");
    dir.remove_file(p("outer/inner/file")).expect("a file is removed");
    dir.remove_dir(p("outer/inner")).expect("an empty directory is removed");
    refused(dir.dir(p("outer/inner")), ErrorKind::NotFound, "what is removed is gone");
    refused(dir.stat(p("outer/inner")), ErrorKind::NotFound, "for every method");
    let twice = dir.remove_file(p("outer/inner/file"));
    refused(twice, ErrorKind::NotFound, "a file is removed once");
}

fn renaming_replaces(dir: &dyn Dir) {
    dir.make_dir(p("from"), 0o700).expect("a directory is made");
    dir.make_dir(p("to"), 0o700).expect("another is made");
    put(dir, "from/file", "new");
    put(dir, "to/file", "old");
    dir.rename(p("from/file"), p("to/file")).expect("a file is renamed over another");
    assert_eq!(text(dir, "to/file"), "new", "the old file is replaced");
    refused(dir.stat(p("from/file")), ErrorKind::NotFound, "the old name is gone");
    refused(dir.rename(p("from/file"), p("x")), ErrorKind::NotFound, "it is renamed once");
    dir.rename(p("to/file"), p("to/file")).expect("a file is renamed to itself");
    assert_eq!(text(dir, "to/file"), "new", "which changes nothing");

    let over = dir.rename(p("to/file"), p("from"));
    refused(over, ErrorKind::IsADirectory, "a file does not replace a directory");
    put(dir, "plain", "");
    let under = dir.rename(p("from"), p("plain"));
    refused(under, ErrorKind::NotADirectory, "a directory does not replace a file");
    dir.rename(p("to"), p("from/moved")).expect("a directory is moved with what is in it");
    assert_eq!(text(dir, "from/moved/file"), "new", "its files are below its new name");
}

fn the_directory_itself_is_a_dot(dir: &dyn Dir) {
    put(dir, "marker", "");
    for path in [".", "", "./."] {
        let same = dir.dir(p(path)).expect("a directory opens itself");
        same.stat(p("marker")).expect("and finds what is in it");
        assert_eq!(dir.stat(p(path)).expect("it has facts").kind, Kind::Dir, "`{path}` is itself");
        let facts = [
            dir.make_dir(p(path), 0o700),
            dir.remove_dir(p(path)),
            dir.remove_file(p(path)),
            dir.rename(p(path), p("x")),
            dir.rename(p("marker"), p(path)),
            dir.make_link(p(path), p("x")),
            dir.read_link(p(path)).map(drop),
        ];
        for fact in facts {
            refused(fact, ErrorKind::InvalidInput, "a directory has no name in itself");
        }
        let opened = dir.open(p(path), Access::Read);
        refused(opened, ErrorKind::IsADirectory, "a directory is no file");
    }
    put(dir, "./marker 2", "");
    dir.stat(p("./././marker 2")).expect("dots on the way are nothing");
}

fn paths_that_lead_out_are_refused(dir: &dyn Dir) {
    dir.make_dir(p("sub"), 0o700).expect("a directory is made");
    for path in ["..", "../file", "sub/..", "sub/../marker", "/", "/etc", "/marker"] {
        let path = Path::new(path);
        let facts = [
            dir.dir(path).map(drop),
            dir.open(path, Access::Read).map(drop),
            dir.open(path, Access::Create { mode: 0o600 }).map(drop),
            dir.stat(path).map(drop),
            dir.read_link(path).map(drop),
            dir.make_dir(path, 0o700),
            dir.make_link(path, p("x")),
            dir.set_mode(path, 0o700),
            dir.rename(path, p("x")),
            dir.rename(p("marker"), path),
            dir.remove_file(path),
            dir.remove_dir(path),
            dir.replace(path, b"", 0o600, "temp"),
        ];
        for (nth, fact) in facts.into_iter().enumerate() {
            let which = format!("{} leads out (check {nth})", path.display());
            refused(fact, ErrorKind::InvalidInput, &which);
        }
    }
    dir.stat(p("marker")).expect("nothing was moved by what was refused");
}
