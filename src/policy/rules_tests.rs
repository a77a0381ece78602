//! Paths and targets against every preset.

use super::*;
use crate::config::PermissionsConfig;
use crate::policy::Presets;

const PRESETS: [&str; 4] = ["yolo", "trusted", "sandboxed", "worker"];

fn of_presets<T>(rule: impl Fn(&Preset) -> T) -> [(&'static str, T); 4] {
    let presets = Presets::new(&PermissionsConfig::default()).unwrap();
    PRESETS.map(|name| (name, rule(presets.get(name).unwrap())))
}

fn id(text: &str) -> AgentId {
    AgentId::parse(text).unwrap()
}

#[test]
fn only_sandboxed_agents_take_write_paths() {
    let told = of_presets(|preset| {
        write_paths(preset, Path::new("/srv"), &["out".into()]).map_err(|e| e.to_string())
    });
    let needless = |preset, level| {
        Err(format!("`allowed_write_paths` is for sandboxed agents; `{preset}` is {level}"))
    };
    assert_eq!(
        told,
        [
            ("yolo", needless("yolo", "yolo")),
            ("trusted", needless("trusted", "trusted")),
            ("sandboxed", Ok(vec!["/srv/out".into()])),
            ("worker", Err("`worker` agents never write".to_owned())),
        ]
    );
}

#[test]
fn write_paths_lie_in_the_working_directory() {
    let presets = Presets::new(&PermissionsConfig::default()).unwrap();
    let sandboxed = presets.get("sandboxed").unwrap();
    let check = |paths: &[&str]| {
        let paths: Vec<_> = paths.iter().map(PathBuf::from).collect();
        write_paths(sandboxed, Path::new("/srv/./here"), &paths)
    };
    assert_eq!(
        check(&[".", "a/../b", "/srv/here/c", "../here/d"]),
        Ok(["/srv/here", "/srv/here/b", "/srv/here/c", "/srv/here/d"].map(PathBuf::from).to_vec())
    );
    for outside in ["..", "/srv", "/srv/hereafter", "a/../../x", "/../etc"] {
        let message = format!("{outside} lies outside the working directory");
        assert_eq!(check(&["ok", outside]), Err(policy(message).into()));
    }
}

#[test]
fn whom_an_agent_may_send_to_follows_its_preset() {
    let (me, parent, other) = (id("me"), id("boss"), id("other"));
    let may = of_presets(|preset| {
        [&parent, &other, &me].map(|to| may_send(preset.send, &me, to, Some(&parent)).is_ok())
    });
    assert_eq!(
        may,
        [
            ("yolo", [true, true, false]),
            ("trusted", [true, true, false]),
            ("sandboxed", [true, false, false]),
            ("worker", [false, false, false]),
        ]
    );
    assert_eq!(
        may_send(SendRule::ParentOnly, &me, &other, None),
        Err(policy(
            "a sandboxed agent sends only to its parent, and `other` is not the parent of `me`"
                .to_owned()
        ))
    );
}
