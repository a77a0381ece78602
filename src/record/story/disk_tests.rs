//! Who took away what is no longer there.

use std::path::PathBuf;

use super::*;
use crate::record::note::What;
use crate::record::story::tests::{Told, time};

fn content(told: &mut Told, at: u64, path: &str, text: &str) {
    let (found, len) = (Found::Content(text.as_bytes().to_vec()), text.len() as u64);
    let (path, mode, modified) = (PathBuf::from(path), 0o644, time(-5000));
    told.at(at, What::File(Sighting { path, found, len, mode, modified }));
}

fn misses(told: &mut Told, at: u64, path: &str) {
    told.at(at, What::File(Sighting::nothing(path.into())));
}

/// The keys of the file at these places that say that something is removed.
fn removed(told: &Told) -> Vec<String> {
    let text = told.parsed();
    let removals = |kind: &str, key: &str| {
        let items = text.get(kind).and_then(toml::Value::as_array).into_iter().flatten();
        let files =
            items.enumerate().filter_map(|(at, item)| Some((at, item.get(key)?.as_table()?)));
        let paths = files.flat_map(|(at, files)| {
            let gone = files.iter().filter(|(_, file)| file.get("remove").is_some());
            gone.map(|(path, _)| format!("{kind} {at}: {path}")).collect::<Vec<_>>()
        });
        paths.collect::<Vec<_>>()
    };
    [removals("program", "writes"), removals("step", "files")].concat()
}

#[test]
fn a_program_has_removed_only_what_was_there_before_it_ended() {
    let mut told = Told::new();
    content(&mut told, 100, "/work/a", "1");
    told.runs((1000, 2000), "make");
    content(&mut told, 3000, "/work/b", "2");
    told.begins(4000, 1, "list_agents", None).ends(4010, 1);
    misses(&mut told, 5000, "/work/a");
    misses(&mut told, 5000, "/work/b");
    assert_eq!(removed(&told), ["program 0: /project/a", "step 0: /project/b"]);
}

#[test]
fn what_a_list_does_not_have_any_more_is_gone_with_all_that_was_in_it() {
    let mut told = Told::new();
    for path in ["/work/a", "/work/dir/b", "/work/dir/deep/c", "/work/kept"] {
        content(&mut told, 100, path, "1");
    }
    let dir = |path: &str| {
        let (path, found, modified) = (path.into(), Found::Dir, time(-5000));
        Sighting { path, found, len: 0, mode: 0o755, modified }
    };
    told.at(110, What::File(dir("/work/dir")));
    told.runs((1000, 2000), "mv");
    let (directory, unseen) = (PathBuf::from("/work"), vec![PathBuf::from("/work/kept")]);
    let listing = Listing { directory, seen: vec![dir("/work")], unseen };
    told.at(3000, What::Listed(listing));
    misses(&mut told, 3001, "/work/dir/b");
    assert_eq!(removed(&told), ["program 0: /project/a", "program 0: /project/dir"]);
}

#[test]
fn a_change_right_before_a_call_comes_before_it() {
    let mut told = Told::new();
    content(&mut told, 100, "/work/a", "1");
    told.begins(4005, 1, "send", Some("a"));
    let (found, modified) = (Found::Content(b"22".to_vec()), time(4000));
    told.at(
        4008,
        What::File(Sighting { path: "/work/a".into(), found, len: 2, mode: 0o644, modified }),
    );
    told.ends(4020, 1);
    let steps = told.steps();
    let place = |key: &str| steps.iter().position(|step| step.contains(key)).unwrap();
    assert!(place("files=") < place("call=send"), "{steps:?}");
}
