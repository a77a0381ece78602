//! Presets that change, directories that change, and what is left of the rest.

use super::*;
use crate::config::PermissionsConfig;
use crate::policy::Presets;

fn preset(name: &str) -> Arc<Preset> {
    Arc::clone(Presets::new(&PermissionsConfig::default()).unwrap().get(name).unwrap())
}

fn change(name: &str, disable: &[&str], enable: &[&str]) -> Change {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    Change { preset: preset(name), disable: names(disable), enable: names(enable) }
}

fn agent(name: &str) -> Permissions {
    let mut grant = Grant::new(preset(name), "/project".into(), Vec::new());
    grant.allowances.mcp_servers.insert("files".to_owned());
    Permissions::new(grant, None, &[])
}

fn changed(permissions: &Permissions, change: &Change) -> Permissions {
    permissions.changed(change, &[]).unwrap()
}

#[test]
fn what_is_enabled_wins_over_what_is_disabled() {
    let after = changed(&agent("yolo"), &change("trusted", &["echo", "glob"], &["glob"]));
    assert_eq!(after.rights().disabled_tools, ["echo".to_owned()].into());
    assert_eq!(after.level(), Level::Trusted);
    let again = changed(&after, &change("trusted", &[], &[]));
    assert_eq!(again.rights().disabled_tools, BTreeSet::new(), "a preset begins anew");
}

#[test]
fn allowances_end_with_the_sandbox() {
    let allowed = agent("yolo").grant().allowances.clone();
    let trusted = changed(&agent("yolo"), &change("trusted", &[], &[]));
    assert_eq!(trusted.rights().allowances, allowed);
    let sandboxed = changed(&trusted, &change("sandboxed", &[], &[]));
    assert_eq!(sandboxed.rights().allowances, Allowances::default());
    let back = changed(&sandboxed, &change("trusted", &[], &[]));
    assert_eq!(back.rights().allowances, Allowances::default(), "and do not come back");
}

#[test]
fn the_root_of_a_sandboxed_agent_stays_while_it_moves() {
    let moved = agent("trusted").moved("/srv".into(), &[]);
    assert_eq!(moved.write_roots(), Some(&[PathBuf::from("/srv")][..]));
    let sandboxed = changed(&moved, &change("sandboxed", &[], &[]));
    let inside = sandboxed.moved("/srv/deep".into(), &[]);
    assert_eq!(inside.grant().cwd, PathBuf::from("/srv/deep"));
    assert_eq!(inside.rights().roots.paths(), Some(&[PathBuf::from("/srv")][..]));
}

#[test]
fn write_paths_last_as_long_as_the_preset_takes_them() {
    let grant = Grant::new(preset("sandboxed"), "/p".into(), vec!["/p/out".into()]);
    let writing = Permissions::new(grant, None, &[]);
    let writes = |permissions: &Permissions| permissions.listed_writes().map(<[_]>::to_vec);
    let same = changed(&writing, &change("sandboxed", &["echo"], &[]));
    assert_eq!(writes(&same), Some(vec!["/p/out".into()]));
    let worker = changed(&writing, &change("worker", &[], &[]));
    assert_eq!(writes(&worker), Some(vec![]));
    let back =
        changed(&changed(&writing, &change("trusted", &[], &[])), &change("sandboxed", &[], &[]));
    assert_eq!(writes(&back), Some(vec![]));
}

#[test]
fn a_child_gets_no_level_and_no_tool_that_its_parent_lacks() {
    let parent = changed(&agent("yolo"), &change("trusted", &["echo"], &[]));
    let ceiling = Some(Arc::new(parent.rights().as_ceiling()));
    let child =
        Permissions::new(Grant::new(preset("worker"), "/project".into(), vec![]), ceiling, &[]);
    let refused = |change: Change| child.changed(&change, &[]).unwrap_err();
    let ceiling = |message: &str| Refusal { reason: Reason::Ceiling, message: message.to_owned() };
    assert_eq!(
        refused(change("trusted", &[], &[])),
        ceiling("a trusted agent creates only agents below its level, and `trusted` is trusted")
    );
    assert_eq!(
        refused(change("sandboxed", &[], &["echo"])),
        ceiling("the agent's parent does not have the tool `echo`")
    );
    let allowed = changed(&child, &change("sandboxed", &[], &["glob"]));
    assert_eq!(allowed.rights().disabled_tools, ["echo".to_owned()].into());
    assert_eq!(allowed.rights().allowances, Allowances::default(), "nobody inherits one");
}

#[test]
fn what_is_allowed_is_added_and_no_child_has_it() {
    let mut more = Allowances::default();
    more.write_directories.insert("/srv".into());
    let boss = agent("trusted").allowing(&more);
    let mut expected = agent("trusted").grant().allowances.clone();
    expected.write_directories.insert("/srv".into());
    assert_eq!(boss.rights().allowances, expected, "beside what there was");
    assert_eq!(boss.allowing(&more), boss, "again, it is nothing new");
    let ceiling = Arc::new(boss.rights().as_ceiling());
    let child = agent("sandboxed").below(Some(ceiling), &[]);
    assert_eq!(child.rights().allowances, Allowances::default());
    assert_eq!(child.allowing(&more).rights().allowances, Allowances::default());
}
