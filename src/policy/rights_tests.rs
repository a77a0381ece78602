//! What grants come to: each preset against places on a disk, alone and under a parent.

use std::sync::Arc;

use super::*;
use crate::config::{PermissionsConfig, PresetConfig, ToolConfig};
use crate::policy::{Permissions, Presets};

const CLOSED: &str = "/home/me/.nexus3";

fn paths(paths: &[&str]) -> Vec<PathBuf> {
    paths.iter().map(PathBuf::from).collect()
}

fn built_in(name: &str) -> Grant {
    granted(&PermissionsConfig::default(), name)
}

fn granted(config: &PermissionsConfig, name: &str) -> Grant {
    let presets = Presets::new(config).unwrap();
    Grant::new(Arc::clone(presets.get(name).unwrap()), "/project".into(), Vec::new())
}

fn alone(grant: Grant) -> Arc<Rights> {
    Arc::clone(Permissions::new(grant, None, &[CLOSED.into()]).rights())
}

fn custom(preset: PresetConfig) -> Grant {
    let presets = [("custom".to_owned(), preset)].into();
    granted(&PermissionsConfig { presets, ..PermissionsConfig::default() }, "custom")
}

fn extending(name: &str) -> PresetConfig {
    PresetConfig {
        extends: name.to_owned(),
        description: None,
        allowed_paths: None,
        blocked_paths: Vec::new(),
        tools: BTreeMap::new(),
    }
}

#[test]
fn each_preset_reads_and_writes_where_the_table_says() {
    use PathRule::{Blocked as B, Confirm as C, Free as F, NotWritable as N, Outside as O};
    let writing = Grant { write_paths: paths(&["/project/out"]), ..built_in("sandboxed") };
    let grants = [built_in("yolo"), built_in("trusted"), built_in("sandboxed"), writing];
    let places =
        ["/project/a", "/project/out/a", "/etc/a", "/proc/1", "/dev", "/home/me/.nexus3/t"];
    let table = grants.map(|grant| {
        let rights = alone(grant);
        [Side::Read, Side::Write].map(|side| places.map(|at| rights.path("t", side, Path::new(at))))
    });
    assert_eq!(
        table,
        [
            [[F, F, F, F, F, F], [F, F, F, F, F, F]],
            [[F, F, F, B, B, B], [F, F, C, B, B, B]],
            [[F, F, O, B, B, B], [N, N, O, B, B, B]],
            [[F, F, O, B, B, B], [N, F, O, B, B, B]],
        ]
    );
    assert_eq!(alone(built_in("worker")).path("t", Side::Write, Path::new("/project/a")), N);
    let names = ["/projects", "/process/x", "/home/me/.nexus3x"].map(PathBuf::from);
    let near = names.map(|path| alone(built_in("trusted")).path("t", Side::Read, &path));
    assert_eq!(near, [F, F, F], "names are compared whole");
}

#[test]
fn an_empty_list_of_paths_is_nothing() {
    let nothing = alone(custom(PresetConfig { allowed_paths: Some(vec![]), ..extending("yolo") }));
    let at = |path| nothing.path("read_file", Side::Read, Path::new(path));
    assert_eq!(["/project", "/", "/etc"].map(at), [PathRule::Outside; 3]);
}

#[test]
fn tools_have_roots_of_their_own_within_what_the_level_allows() {
    let tool = |allowed: &[&str]| ToolConfig {
        enabled: None,
        allowed_paths: Some(paths(allowed)),
        timeout: None,
    };
    let preset = |base| PresetConfig {
        allowed_paths: Some(paths(&["/project"])),
        blocked_paths: paths(&["/docs/old"]),
        tools: [("glob".to_owned(), tool(&["/docs", "/project/src"]))].into(),
        ..extending(base)
    };
    let at = |rights: &Rights, tool, path| rights.path(tool, Side::Read, Path::new(path));
    let trusted = alone(custom(preset("trusted")));
    assert_eq!(at(&trusted, "glob", "/docs/a"), PathRule::Free);
    assert_eq!(at(&trusted, "glob", "/project/a"), PathRule::Outside);
    assert_eq!(at(&trusted, "glob", "/docs/old/a"), PathRule::Blocked, "that comes first, always");
    assert_eq!(at(&trusted, "tail", "/docs/a"), PathRule::Outside);
    let sandboxed = alone(custom(preset("sandboxed")));
    assert_eq!(at(&sandboxed, "glob", "/docs/a"), PathRule::Outside, "its level forbids it");
    assert_eq!(at(&sandboxed, "glob", "/project/src/a"), PathRule::Free);
}

#[test]
fn an_allowance_covers_what_would_be_confirmed_and_nothing_else() {
    use PathRule::{Allowance, Blocked, Confirm, Outside};
    let allowances = Allowances {
        write_files: [PathBuf::from("/etc/one")].into(),
        write_directories: paths(&["/srv", CLOSED]).into_iter().collect(),
        ..Allowances::default()
    };
    let allowed = |grant: Grant| alone(Grant { allowances: allowances.clone(), ..grant });
    let places = ["/etc/one", "/etc/two", "/srv/a/b", CLOSED].map(PathBuf::from);
    let of = |rights: Arc<Rights>| places.clone().map(|at| rights.path("t", Side::Write, &at));
    let trusted = of(allowed(built_in("trusted")));
    assert_eq!(trusted, [Allowance, Confirm, Allowance, Blocked]);
    assert_eq!(of(allowed(built_in("sandboxed"))), [Outside, Outside, Outside, Blocked]);
}

#[test]
fn an_agent_never_may_more_than_its_parent() {
    let parent = Permissions::new(
        custom(PresetConfig {
            allowed_paths: Some(paths(&["/project", "/docs"])),
            blocked_paths: paths(&["/docs/old"]),
            ..extending("yolo")
        }),
        None,
        &[CLOSED.into()],
    );
    let ceiling = Arc::new(parent.rights().as_ceiling());
    let child = Permissions::new(built_in("yolo"), Some(Arc::clone(&ceiling)), &[CLOSED.into()]);
    let rights = child.rights();
    assert_eq!(rights.level, Level::Trusted, "strictly below");
    assert_eq!(rights.roots, Roots::below(paths(&["/docs", "/project"])));
    assert!(rights.is_blocked(Path::new("/docs/old/a")));
    assert_eq!(rights.writes, Roots::below(paths(&["/project"])));
    assert!(rights.is_within(&ceiling) && !ceiling.is_within(rights));
    let below = Arc::new(rights.as_ceiling());
    let grandchild = Permissions::new(built_in("trusted"), Some(below), &[CLOSED.into()]);
    assert_eq!(grandchild.level(), Level::Sandboxed);
    assert_eq!(grandchild.rights().send, SendRule::ParentOnly);
    assert!(!grandchild.rights().may_create && !grandchild.rights().may_write());
}

#[test]
fn what_takes_something_from_an_agent_is_known() {
    let trusted = alone(built_in("trusted"));
    let allowed = |paths_: &[&str]| PresetConfig {
        allowed_paths: Some(paths(paths_)),
        ..extending("trusted")
    };
    let narrow = alone(custom(allowed(&["/project"])));
    assert!(!trusted.take_from(&trusted) && !trusted.take_from(&narrow), "nothing, or more");
    assert!(narrow.take_from(&trusted), "places");
    assert!(alone(custom(allowed(&["/etc"]))).take_from(&narrow), "places for others");
    assert!(trusted.take_from(&alone(built_in("yolo"))), "a level");
    let blocked = PresetConfig { blocked_paths: paths(&["/etc"]), ..extending("trusted") };
    assert!(alone(custom(blocked)).take_from(&trusted), "a place by name");
    let disabled_tools = [String::from("exec")].into();
    assert!(alone(Grant { disabled_tools, ..built_in("trusted") }).take_from(&trusted), "a tool");
    let moved = alone(Grant { cwd: "/etc".into(), ..built_in("trusted") });
    assert!(!moved.take_from(&trusted), "to work elsewhere is no less");
}
