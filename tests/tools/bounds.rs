//! What is too deep, too long or shut is left out, and the result says so.

use std::path::Path;

use nexus3_sim::disk::Item;
use serde_json::json;

use crate::support::{Bench, CWD, disk, put_dir, put_file};

const DEPTH_MAX: usize = 128;
const ENTRIES_MAX: usize = 200_000;

#[test]
fn a_walk_ends_at_its_depth() {
    let disk = disk();
    let deep = vec!["d"; DEPTH_MAX].join("/");
    put_file(&disk, &format!("{CWD}/{deep}/file"), "needle");
    let bench = Bench::new();
    let note = "[1 directory more than 128 levels deep: not looked into.]\n";
    let found = bench.call(&disk, "glob", json!({"pattern": "**/file"}));
    assert_eq!(found, Ok(format!("[Nothing matches.]\n{note}")));
    let found = bench.call(&disk, "search_text", json!({"pattern": "needle", "path": "."}));
    assert_eq!(found, Ok(format!("[No matches.]\n{note}")));
    let found = bench.call(&disk, "glob", json!({"pattern": "**/file", "path": "d"}));
    assert_eq!(found, Ok(format!("d/{}/file\n", &deep[2..])), "it begins again further down");
}

#[test]
fn a_walk_ends_after_so_many_entries() {
    let disk = disk();
    for dir in 0..ENTRIES_MAX / 1000 {
        for file in 0..1000 {
            put_file(&disk, &format!("{CWD}/{dir:03}/{file:03}"), "");
        }
    }
    // The directories count too, so that the last of them are not reached.
    let bench = Bench::new();
    let last = bench.call(&disk, "glob", json!({"pattern": "199/999"}));
    let note = "[Stopped after 200000 names. Begin at a deeper path.]\n";
    assert_eq!(last, Ok(format!("[Nothing matches.]\n{note}")));
    let below = bench.call(&disk, "glob", json!({"pattern": "999", "path": "199"}));
    assert_eq!(below, Ok("199/999\n".to_owned()));
}

#[test]
fn a_directory_that_is_shut_is_passed_over() {
    let disk = disk();
    put_file(&disk, "/project/open/file", "");
    put_dir(&disk, "/project/shut");
    disk.put(Path::new("/project/shut"), Item::Dir { mode: 0o000 }).unwrap();
    let found = Bench::new().call(&disk, "glob", json!({"pattern": "**/file"}));
    assert_eq!(found, Ok("open/file\n[1 directory could not be read.]\n".to_owned()));
}

#[test]
fn a_long_list_is_cut() {
    let disk = disk();
    for index in 0..10_001 {
        put_file(&disk, &format!("{CWD}/{index:05}"), "x\n");
    }
    let bench = Bench::new();
    let (note, names) = {
        let listed = bench.call(&disk, "list_directory", json!({})).unwrap();
        let mut lines: Vec<String> = listed.lines().map(str::to_owned).collect();
        (lines.pop().unwrap(), lines)
    };
    assert_eq!(note, "[Cut after 10000 of 10001 names. glob finds the others by a pattern.]");
    assert_eq!((names.len(), names[9999].as_str()), (10_000, "09999"));
    let arguments = json!({"pattern": "x", "path": ".", "max_matches": 10_000});
    let found = bench.call(&disk, "search_text", arguments).unwrap();
    let last = found.lines().last().unwrap();
    assert_eq!(
        last,
        "[The first 10000 matches, in 10000 files. Narrow the search, or raise max_matches.]"
    );
}
