//! What files keep, in three parts: their content, their names, and that no link is ever followed
//! below a directory handle. Never checks that anything is durable: only a crash could, and a suite
//! cannot crash the real machine.

mod files;
mod links;
mod names;

use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;

use nexus3::world::{Access, Dir, LinkRefused, World};

/// `scratch` is the absolute path of an empty directory without links on the way.
pub async fn fs(world: &World, scratch: &Path) {
    let (world_below, scratch_below) = (world.clone(), scratch.to_owned());
    world
        .blocking
        .call(move || {
            directories_are_opened_by_absolute_paths(&world_below, &scratch_below);
            files::check(&room(&world_below, &scratch_below, "files"));
            names::check(&room(&world_below, &scratch_below, "names"));
            links::check(&room(&world_below, &scratch_below, "links"));
            paths_are_made_canonical(&world_below, &scratch_below);
        })
        .await;
}

fn directories_are_opened_by_absolute_paths(world: &World, scratch: &Path) {
    world.fs.dir(scratch).expect("the scratch directory opens");
    let relative = world.fs.dir(Path::new("relative"));
    refused(relative, ErrorKind::InvalidInput, "a relative path opens no directory");
    let missing = world.fs.dir(&scratch.join("missing"));
    refused(missing, ErrorKind::NotFound, "a missing directory is not found");
    let dir = world.fs.dir(scratch).expect("the scratch directory opens again");
    dir.open(Path::new("file"), Access::CreateNew { mode: 0o600 }).expect("a file is made");
    let file = world.fs.dir(&scratch.join("file"));
    refused(file, ErrorKind::NotADirectory, "a file is no directory");
    dir.make_link(Path::new("way in"), scratch).expect("a link is made");
    world.fs.dir(&scratch.join("way in")).expect("a link on the way to a root is followed");
}

fn paths_are_made_canonical(world: &World, scratch: &Path) {
    let canonical = |path: &Path| world.fs.canonical(path);
    assert_eq!(canonical(scratch).expect("it exists"), scratch, "a plain path stays");
    let winding = scratch.join("way in/./names/../file");
    let found = canonical(&winding).expect("every part of it exists");
    assert_eq!(found, scratch.join("file"), "links, `.` and `..` are resolved");
    refused(canonical(Path::new("file")), ErrorKind::InvalidInput, "a relative path is refused");
    let missing = canonical(&scratch.join("missing"));
    refused(missing, ErrorKind::NotFound, "what is missing is not found");
}

/// A directory of its own for each part.
fn room(world: &World, scratch: &Path, name: &str) -> Arc<dyn Dir> {
    let dir = world.fs.dir(scratch).expect("the scratch directory opens");
    dir.make_dir(Path::new(name), 0o700).expect("a directory is made");
    dir.dir(Path::new(name)).expect("what was made opens")
}

fn p(path: &str) -> &Path {
    Path::new(path)
}

/// Writes a whole new file.
fn put(dir: &dyn Dir, path: &str, content: &str) {
    let file = dir
        .open(p(path), Access::CreateNew { mode: 0o600 })
        .unwrap_or_else(|error| panic!("{path} is made: {error}"));
    file.write_at(content.as_bytes(), 0).unwrap_or_else(|error| panic!("{path}: {error}"));
}

/// Reads a whole file.
fn text(dir: &dyn Dir, path: &str) -> String {
    let file = dir.open(p(path), Access::Read).unwrap_or_else(|error| panic!("{path}: {error}"));
    let content = file.read_all(1024 * 1024).expect("a small file is read");
    String::from_utf8(content).expect("the suite writes text")
}

fn refused<T>(result: io::Result<T>, kind: ErrorKind, fact: &str) {
    match result {
        Ok(_) => panic!("it was allowed, but {fact}"),
        Err(error) => assert_eq!(error.kind(), kind, "{fact}: {error}"),
    }
}

fn link_refused<T>(result: io::Result<T>, fact: &str) {
    match result {
        Ok(_) => panic!("a link was followed: {fact}"),
        Err(error) => assert!(LinkRefused::is(&error), "a link is refused as one: {fact}: {error}"),
    }
}
