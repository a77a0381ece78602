//! The invariant `ceiling` against records that never were: it finds what goes too far, whoever is
//! at work, and lets pass what does not.

use serde_json::json;

use super::*;

fn grant(id: &str, parent: Option<&str>, recipe: Value, calls: &[&str]) -> KeptGrant {
    KeptGrant {
        number: id.bytes().map(i64::from).sum(),
        id: id.to_owned(),
        parent: parent.map(str::to_owned),
        recipe,
        calls: calls.iter().map(|tool| (*tool).to_owned()).collect(),
        allowed: Vec::new(),
    }
}

fn check(permissions: Value, grants: Vec<KeptGrant>) -> Ceiling {
    let (gone, before) = (BTreeMap::new(), Vec::new());
    Ceiling { permissions, grants, before, read_at: None, gone, job: None }
}

/// Whether each use alone could be by one of those at work.
fn uses(check: &mut Ceiling, path: &str) -> [bool; 2] {
    let [read, write] = [(OperationKind::Open, Use::Reads), (OperationKind::Write, Use::Writes)];
    [read, write].map(|(kind, what)| check.is_open(kind, Path::new(path), what, None))
}

#[test]
fn what_a_preset_forbids_is_found_wherever_it_is_used() {
    let uses = |preset: &str, path: &str| {
        let recipe = json!({"preset": preset, "cwd": "/p/in", "write_paths": ["/p/in/out"]});
        let grants = vec![grant("a", None, recipe, &["read_file", "write_file"])];
        uses(&mut check(json!({"blocked_paths": ["/b"]}), grants), path)
    };
    assert_eq!(uses("yolo", "/proc/1"), [true, true]);
    assert_eq!(uses("trusted", "/proc/1"), [false, false]);
    assert_eq!(uses("trusted", "/b/x"), [false, false]);
    assert_eq!(uses("trusted", "/etc/x"), [true, false]);
    assert_eq!(uses("trusted", "/p/in/x"), [true, true]);
    assert_eq!(uses("sandboxed", "/p/x"), [false, false]);
    assert_eq!(uses("sandboxed", "/p/in/x"), [true, false]);
    assert_eq!(uses("sandboxed", "/p/in/out/x"), [true, true]);
    assert_eq!(uses("sandboxed", "/p/in/.nexus3-00"), [true, true], "beside what it writes");
    assert_eq!(uses("worker", "/p/in/out/x"), [true, false]);
}

#[test]
fn a_child_is_held_by_what_its_parent_may_also_once_that_is_gone() {
    let presets = json!({"presets": {"narrow": {"extends": "yolo", "allowed_paths": ["/p"]}}});
    let boss = grant("boss", None, json!({"preset": "narrow", "cwd": "/p"}), &[]);
    let recipe = json!({"preset": "yolo", "cwd": "/p/in"});
    let child = grant("child", Some("boss"), recipe.clone(), &["write_file"]);
    let mut check = check(presets, vec![boss, child]);
    let alone = vec![grant("child", None, recipe, &["write_file"])];
    for grants in [check.grants.clone(), alone] {
        check.before = std::mem::replace(&mut check.grants, grants);
        check.remember_parents();
        check.before.clear();
        assert_eq!(uses(&mut check, "/etc/x"), [false, false], "its parent may not");
        let within = uses(&mut check, "/p/x");
        assert_eq!(within, [true, false], "it is trusted at most, and works elsewhere");
        assert_eq!(uses(&mut check, "/p/in/x"), [true, true]);
        // As it was before the parent went.
        check.before.clone_from(&check.grants);
    }
}

#[test]
fn all_that_a_job_does_is_done_for_one_agent_and_one_call() {
    let recipe = |cwd: &str| json!({"preset": "sandboxed", "cwd": cwd, "write_paths": [cwd]});
    let stage = |first: &[&str], second: &[&str]| {
        let grants =
            vec![grant("a", None, recipe("/a"), first), grant("b", None, recipe("/b"), second)];
        check(Value::Null, grants)
    };
    let does = |check: &mut Ceiling, job, all: &[(&str, Use)]| {
        let one = |(path, what): &(&str, Use)| {
            check.is_open(OperationKind::Open, Path::new(path), *what, Some(job))
        };
        all.iter().map(one).collect::<Vec<_>>()
    };
    let mut both = stage(&["copy_file"], &["copy_file"]);
    let from_one_to_the_other = [("/a/x", Use::Reads), ("/b/x", Use::Writes)];
    assert_eq!(does(&mut both, 1, &from_one_to_the_other), [true, false]);
    assert_eq!(does(&mut both, 2, &[("/b/x", Use::Reads), ("/b/y", Use::Writes)]), [true, true]);
    let mut reader = stage(&["read_file"], &["sleep"]);
    assert_eq!(does(&mut reader, 3, &[("/a/x", Use::Writes)]), [false], "it only reads");
    assert_eq!(does(&mut reader, 4, &[("/b/x", Use::Reads)]), [false], "it uses no files");
    let mut idle = stage(&[], &[]);
    assert_eq!(does(&mut idle, 5, &[("/a/x", Use::Reads)]), [false], "nobody is at work");
}

#[test]
fn a_tool_is_held_to_its_own_paths_and_one_that_is_disabled_to_none() {
    let presets = json!({"presets": {"some": {
        "extends": "trusted",
        "allowed_paths": ["/p"],
        "tools": {"glob": {"allowed_paths": ["/docs"]}},
    }}});
    let of = |tool: &str, path: &str| {
        let recipe = json!({"preset": "some", "cwd": "/p", "disabled_tools": ["tail"]});
        uses(&mut check(presets.clone(), vec![grant("a", None, recipe, &[tool])]), path)[0]
    };
    assert_eq!(["/p/x", "/docs/x"].map(|path| of("read_file", path)), [true, false]);
    assert_eq!(["/p/x", "/docs/x"].map(|path| of("glob", path)), [false, true]);
    assert!(!of("tail", "/p/x"));
}
