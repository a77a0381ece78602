//! Random trees of directories, files and links, and random paths through them: nothing outside the
//! working directory is opened, shown or changed, whatever they are.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use nexus3::tool::error::Given;
use nexus3::tool::place::{Parents, Paths};
use nexus3::world::Access;
use nexus3_sim::disk::{Disk, Item, OperationKind, View};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::json;

use crate::support::{Bench, CWD, disk, put_dir, put_file, put_link, rights};

const OUTSIDE: &str = "/outside";
const USER_HOME: &str = "/outside/home";
const SECRET: &str = "SECRET";

/// Steps of paths and of what links lead to.
const STEPS: [&str; 16] = [
    "a",
    "b",
    "c",
    "é",
    "a\nb",
    "..",
    ".",
    "/",
    "~",
    "/project",
    "/outside",
    "/outside/a",
    "home",
    "project",
    "outside",
    "//",
];
const NAMES: [&str; 5] = ["a", "b", "c", "é", "a\nb"];

#[derive(Clone, Debug)]
enum Thing {
    Dir,
    File,
    Link(String),
}

fn path_text() -> impl Strategy<Value = String> {
    let long = Just("x".repeat(300));
    let step = prop_oneof![
        20 => prop::sample::select(&STEPS[..]).prop_map(str::to_owned),
        1 => long,
        1 => "\\PC{1,8}",
    ];
    prop::collection::vec(step, 1..6).prop_map(|steps| steps.join("/"))
}

fn things() -> impl Strategy<Value = Vec<(PathBuf, Thing)>> {
    let path = prop::collection::vec(prop::sample::select(&NAMES[..]), 1..4);
    let path = path.prop_map(|names| names.iter().collect::<PathBuf>());
    let thing = prop_oneof![
        Just(Thing::Dir),
        Just(Thing::File),
        path_text()
            .prop_filter("a name has its bounds", |text| text.len() < 200)
            .prop_map(Thing::Link),
    ];
    prop::collection::vec((path, thing), 0..10)
}

/// A disk with secrets outside and these things inside, as far as they fit in one tree.
fn stage(things: &[(PathBuf, Thing)]) -> Disk {
    let disk = disk();
    for (path, name) in [("a", "a"), ("home", "secret"), ("home/b", "c")] {
        put_file(&disk, &format!("{OUTSIDE}/{path}/{name}"), SECRET);
    }
    put_dir(&disk, "/home");
    for (path, thing) in things {
        let path = Path::new(CWD).join(path);
        let item = match thing {
            Thing::Dir => Item::Dir { mode: 0o755 },
            Thing::File => Item::File { content: b"mine".to_vec(), mode: 0o644 },
            Thing::Link(target) => Item::Link { target: target.into() },
        };
        // What does not go where something else is, is left out.
        let _ = disk.put(&path, item);
    }
    disk
}

fn outside(disk: &Disk) -> BTreeMap<PathBuf, Item> {
    disk.tree(View::Now).into_iter().filter(|(path, _)| !path.starts_with(CWD)).collect()
}

/// Opening, listing and reading outside, which nothing may do but to reach the working directory.
fn trespasses(disk: &Disk) -> Arc<Mutex<Vec<String>>> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let seen_here = Arc::clone(&seen);
    disk.on_operation(move |operation| {
        let is_way_in =
            operation.kind == OperationKind::OpenDir && operation.path == Path::new("/");
        // A path is resolved before it is decided on.
        let resolves = operation.kind == OperationKind::Stat;
        if !operation.path.starts_with(CWD) && !is_way_in && !resolves {
            seen_here.lock().expect("nobody panics with it").push(format!("{operation:?}"));
        }
    });
    seen
}

#[test]
fn nothing_outside_is_opened_or_shown() {
    let bench = Bench::new();
    let runs = TestRunner::default().run(&(things(), path_text()), |(things, path)| {
        let disk = stage(&things);
        let trespasses = trespasses(&disk);
        for (tool, arguments) in [
            ("read_file", json!({"path": path})),
            ("tail", json!({"path": path})),
            ("file_info", json!({"path": path})),
            ("list_directory", json!({"path": path, "all": true, "long": true})),
            ("glob", json!({"pattern": "**", "path": path})),
            ("search_text", json!({"pattern": ".", "path": path})),
        ] {
            let output = bench.call(&disk, tool, arguments);
            let (Ok(text) | Err(text)) = &output;
            prop_assert!(!text.contains(SECRET), "{tool}: {text}");
            // Nothing is told of the host but the path as it was given.
            let told = text.replace(&Given::new(&path).to_string(), "");
            let names_host = output.is_err() && told.contains(OUTSIDE);
            prop_assert!(!names_host, "{tool}: {text}");
        }
        prop_assert_eq!(&*trespasses.lock().unwrap(), &Vec::<String>::new());
        Ok(())
    });
    runs.unwrap();
}

#[test]
fn nothing_outside_is_written() {
    let bench = Bench::new();
    let runs = TestRunner::default().run(&(things(), path_text()), |(things, path)| {
        let disk = stage(&things);
        let before = outside(&disk);
        let paths = Paths {
            fs: &disk,
            rights: &rights(),
            tool: "",
            user_home: Some(Path::new(USER_HOME)),
            confirmed: &[],
        };
        let written = paths.writing(&Given::new(&path), Parents::Create, |spot| {
            let file = spot.parent.open(spot.name(), Access::Create { mode: 0o644 })?;
            file.set_len(0)?;
            file.write_at(b"written", 0)?;
            Ok(spot.resolved.clone())
        });
        prop_assert_eq!(outside(&disk), before);
        if let Ok(resolved) = written {
            prop_assert!(resolved.starts_with(CWD));
            let read = bench.call(&disk, "read_file", json!({"path": path, "line_numbers": false}));
            prop_assert_eq!(read, Ok("written".to_owned()), "{}", path);
        }
        Ok(())
    });
    runs.unwrap();
}

#[test]
fn a_new_file_goes_where_links_inside_lead() {
    let disk = disk();
    put_dir(&disk, "/project/real");
    put_link(&disk, "/project/link", "real");
    put_link(&disk, "/project/dangling", "link/new/file");
    let paths = Paths { fs: &disk, rights: &rights(), tool: "", user_home: None, confirmed: &[] };
    let create = |given: &str, parents| {
        let written = paths.writing(&Given::new(given), parents, |spot| {
            spot.parent.open(spot.name(), Access::CreateNew { mode: 0o600 })?;
            Ok(spot.resolved.clone())
        });
        written.map_err(|error| error.to_string())
    };
    assert_eq!(create("link/a", Parents::MustExist), Ok("/project/real/a".into()));
    assert_eq!(
        create("link/x/y", Parents::MustExist),
        Err("the directory of `link/x/y` does not exist".to_owned())
    );
    assert_eq!(create("link/x/y", Parents::Create), Ok("/project/real/x/y".into()));
    assert_eq!(create("dangling", Parents::Create), Ok("/project/real/new/file".into()));
    assert_eq!(
        create("nothing/../z", Parents::Create),
        Err("`nothing/../z` does not exist".to_owned())
    );
    assert_eq!(
        create("~/z", Parents::Create),
        Err("`~/z` is no path: it needs a home, and there is none".to_owned())
    );
    assert_eq!(
        create("real", Parents::Create),
        Err("`real` exists already: set `overwrite` to replace it".to_owned())
    );
}
