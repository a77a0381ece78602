//! Links are never followed below a handle, by any method, at any component; what is about a link
//! itself works on the link.

use std::io::ErrorKind;
use std::sync::Arc;

use nexus3::world::{Access, Dir, Kind};

use super::{link_refused, p, put, refused, text};

const NEW: Access = Access::CreateNew { mode: 0o600 };

pub(super) fn check(dir: &Arc<dyn Dir>) {
    let dir = dir.as_ref();
    dir.make_dir(p("real"), 0o700).expect("a directory is made");
    dir.make_dir(p("real/inner"), 0o700).expect("a directory is made below");
    put(dir, "real/file", "untouched");
    dir.make_link(p("to-dir"), p("real")).expect("a link to a directory is made");
    dir.make_link(p("to-file"), p("real/file")).expect("a link to a file is made");
    dir.make_link(p("to-nothing"), p("nothing")).expect("a link to nothing is made");
    dir.make_link(p("real/up"), p("..")).expect("a link out of a directory is made");

    no_link_is_followed_on_the_way(dir);
    no_link_is_followed_at_the_end(dir);
    a_link_can_be_looked_at(dir);
    a_link_can_be_moved_and_removed(dir);
    a_link_swapped_in_changes_no_handle(dir);
    assert_eq!(text(dir, "real/file"), "untouched", "no link led to the file");
    let names = dir.dir(p("real")).expect("it opens").list().expect("it is listed");
    assert_eq!(names.len(), 3, "no link led into the directory: {names:?}");
}

fn no_link_is_followed_on_the_way(dir: &dyn Dir) {
    for (way, inner) in [("to-dir/file", "to-dir/inner"), ("real/up/real/file", "real/up/real")] {
        let (way, inner) = (p(way), p(inner));
        link_refused(dir.dir(inner), "opening a directory");
        for access in [Access::Read, Access::Write, Access::Create { mode: 0o600 }, NEW] {
            link_refused(dir.open(way, access), "opening a file");
        }
        link_refused(dir.stat(way), "asking for facts");
        link_refused(dir.read_link(way), "reading a link");
        link_refused(dir.make_dir(&way.with_file_name("new"), 0o700), "making a directory");
        link_refused(dir.make_link(&way.with_file_name("new"), p("x")), "making a link");
        link_refused(dir.set_mode(way, 0o777), "setting a mode");
        link_refused(dir.rename(way, p("x")), "renaming from");
        link_refused(dir.rename(p("real/file"), way), "renaming to");
        link_refused(dir.remove_file(way), "removing a file");
        link_refused(dir.remove_dir(inner), "removing a directory");
        link_refused(dir.replace(way, b"changed", 0o600, "temp"), "replacing a file");
    }
}

fn no_link_is_followed_at_the_end(dir: &dyn Dir) {
    link_refused(dir.dir(p("to-dir")), "opening a directory");
    link_refused(dir.dir(p("real/up")), "opening the directory above");
    for link in ["to-file", "to-dir", "to-nothing"] {
        for access in [Access::Read, Access::Write, Access::Create { mode: 0o600 }] {
            link_refused(dir.open(p(link), access), "opening a file");
        }
        link_refused(dir.set_mode(p(link), 0o777), "setting a mode");
        refused(dir.open(p(link), NEW), ErrorKind::AlreadyExists, "a link has the name");
        refused(dir.make_dir(p(link), 0o700), ErrorKind::AlreadyExists, "a link has the name");
        let again = dir.make_link(p(link), p("x"));
        refused(again, ErrorKind::AlreadyExists, "a link has the name");
        refused(dir.remove_dir(p(link)), ErrorKind::NotADirectory, "a link is no directory");
    }
    refused(dir.stat(p("nothing")), ErrorKind::NotFound, "nothing was made through a link");
    assert_eq!(dir.stat(p("real/file")).expect("it is there").mode, 0o600, "nor changed");
}

fn a_link_can_be_looked_at(dir: &dyn Dir) {
    for (link, target) in [("to-dir", "real"), ("to-file", "real/file"), ("real/up", "..")] {
        assert_eq!(dir.stat(p(link)).expect("it is there").kind, Kind::Link, "{link} is a link");
        assert_eq!(
            dir.read_link(p(link)).expect("it is a link"),
            p(target),
            "{link} says where to"
        );
    }
    let file = dir.read_link(p("real/file"));
    refused(file, ErrorKind::InvalidInput, "a file is no link");
    refused(dir.read_link(p("missing")), ErrorKind::NotFound, "what is missing is no link");
}

fn a_link_can_be_moved_and_removed(dir: &dyn Dir) {
    let target = |link: &str| dir.read_link(p(link)).expect("it is a link");
    dir.rename(p("to-file"), p("moved")).expect("a link is renamed");
    assert_eq!(target("moved"), p("real/file"), "a renamed link says the same");
    put(dir, "over", "new");
    dir.rename(p("over"), p("moved")).expect("a link is replaced by a file");
    assert_eq!(text(dir, "moved"), "new", "the file has the link's name");

    dir.make_link(p("stale"), p("real/file")).expect("a link is made");
    dir.replace(p("stale"), b"fresh", 0o600, "temp").expect("a link is replaced whole");
    assert_eq!(text(dir, "stale"), "fresh", "by the new file, not its target's content");

    dir.remove_file(p("to-nothing")).expect("a link is removed");
    dir.remove_file(p("to-dir")).expect("a link to a directory is removed like a file");
    refused(dir.stat(p("to-dir")), ErrorKind::NotFound, "a removed link is gone");
}

fn a_link_swapped_in_changes_no_handle(dir: &dyn Dir) {
    dir.make_dir(p("swapped"), 0o700).expect("a directory is made");
    put(dir, "swapped/file", "of the first");
    let handle = dir.dir(p("swapped")).expect("a directory opens");
    dir.rename(p("swapped"), p("aside")).expect("it is renamed");
    dir.make_link(p("swapped"), p("real")).expect("a link takes its name");
    assert_eq!(text(handle.as_ref(), "file"), "of the first", "a handle stays where it was opened");
    link_refused(dir.open(p("swapped/file"), Access::Read), "the name leads to a link now");
}
