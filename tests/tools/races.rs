//! A link that leads out is swapped in just before any operation of a call: the call never follows
//! it. Where it was swapped in too late to matter, the call works.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use nexus3::tool::error::{FileError, Given};
use nexus3::tool::place::{Parents, Paths};
use nexus3::world::Access;
use nexus3_sim::disk::{Disk, Item, OperationKind, View};
use serde_json::{Value, json};

use crate::support::{Bench, disk, put_dir, put_file, put_link, rights};

const OPERATIONS_MAX: usize = 200;

/// What is swapped for a link that leads out, and the same place in both trees.
const SWAPPED: [&str; 3] = ["/project/dir/file", "/project/dir", "/project"];

fn stage() -> Disk {
    let disk = disk();
    put_file(&disk, "/project/dir/file", "mine");
    put_file(&disk, "/outside/dir/file", "SECRET");
    disk
}

/// Puts a link to the outside in the place of `path` before the operation of that number; returns
/// how many operations there were.
fn swap_at(disk: &Disk, path: &'static str, at: usize) -> Arc<AtomicUsize> {
    let count = Arc::new(AtomicUsize::new(0));
    let (counted, target) = (Arc::clone(&count), path.replacen("/project", "/outside", 1));
    let swapped = disk.clone();
    disk.on_operation(move |_| {
        if counted.fetch_add(1, Ordering::Relaxed) == at {
            swapped.remove(Path::new(path)).expect("it was there");
            put_link(&swapped, path, &target);
        }
    });
    count
}

#[test]
fn no_tool_follows_a_link_that_is_swapped_in() {
    let bench = Bench::new();
    let calls: [(&str, Value); 5] = [
        ("read_file", json!({"path": "dir/file"})),
        ("tail", json!({"path": "dir/file"})),
        ("search_text", json!({"pattern": ".", "path": "."})),
        ("search_text", json!({"pattern": ".", "path": "dir/file"})),
        ("glob", json!({"pattern": "**", "path": "dir"})),
    ];
    for (tool, arguments) in calls {
        for swapped in SWAPPED {
            let (mut refused, mut done) = (0, 0);
            for at in 0..OPERATIONS_MAX {
                let disk = stage();
                put_file(&disk, "/outside/dir/SECRET", "SECRET");
                let count = swap_at(&disk, swapped, at);
                let output = bench.call(&disk, tool, arguments.clone());
                let (Ok(text) | Err(text)) = &output;
                assert!(!text.contains("SECRET"), "{tool} {swapped} at {at}: {text}");
                match output {
                    Ok(_) => done += 1,
                    Err(_) => refused += 1,
                }
                if count.load(Ordering::Relaxed) <= at {
                    break;
                }
                assert!(at + 1 < OPERATIONS_MAX, "{tool} takes too many operations");
            }
            // What walks passes over a link on its way.
            let walks = matches!(tool, "search_text" | "glob");
            assert!(refused > 0 || walks, "{tool} {swapped} met the link");
            assert!(done > 0, "{tool} {swapped} works before the swap");
        }
    }
}

#[test]
fn no_write_follows_a_link_that_is_swapped_in() {
    for swapped in SWAPPED {
        for at in 0..OPERATIONS_MAX {
            let disk = stage();
            let count = swap_at(&disk, swapped, at);
            let paths =
                Paths { fs: &disk, rights: &rights(), tool: "", user_home: None, confirmed: &[] };
            let written = paths.writing(&Given::new("dir/file"), Parents::MustExist, |spot| {
                let file = spot.parent.open(spot.name(), Access::Create { mode: 0o644 })?;
                file.write_at(b"gone", 0)
            });
            let untouched = Item::File { content: b"SECRET".to_vec(), mode: 0o644 };
            let tree = disk.tree(View::Now);
            assert_eq!(tree[Path::new("/outside/dir/file")], untouched, "{swapped} at {at}");
            if count.load(Ordering::Relaxed) <= at {
                assert_eq!(written, Ok(()));
                break;
            }
        }
    }
}

#[test]
fn what_never_settles_is_given_up() {
    let disk = stage();
    put_dir(&disk, "/project/other");
    let flip = disk.clone();
    // A file while it is looked at, a link whenever it is opened.
    disk.on_operation(move |operation| {
        let path = Path::new("/project/dir/file");
        match operation.kind {
            OperationKind::Open => {
                flip.remove(path).expect("it is there");
                put_link(&flip, "/project/dir/file", "../other/file");
            }
            OperationKind::Stat => {
                flip.remove(path).expect("it is there");
                put_file(&flip, "/project/dir/file", "mine");
            }
            _ => (),
        }
    });
    let paths = Paths { fs: &disk, rights: &rights(), tool: "", user_home: None, confirmed: &[] };
    let given = Given::new("dir/file");
    let read = paths.reading(&given, |spot| spot.parent.open(spot.name(), Access::Read).map(drop));
    assert_eq!(read, Err(FileError::Unsettled { given }));
}
