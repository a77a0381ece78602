//! The presets as a table, and what the configuration puts on top of them.

use super::{Level as L, SendRule as S, WriteRule as W, *};
use crate::config::{LineageError, PresetConfig, ToolConfig};

fn preset(extends: &str, tools: &[(&str, Option<bool>, Option<f64>)]) -> PresetConfig {
    let tool = |&(name, enabled, timeout): &(&str, _, _)| {
        (name.to_owned(), ToolConfig { enabled, timeout, allowed_paths: None })
    };
    PresetConfig {
        extends: extends.to_owned(),
        description: Some(format!("like {extends}")),
        allowed_paths: None,
        blocked_paths: Vec::new(),
        tools: tools.iter().map(tool).collect(),
    }
}

fn config(presets: &[(&str, PresetConfig)]) -> PermissionsConfig {
    let presets = presets.iter().map(|(name, preset)| ((*name).to_owned(), preset.clone()));
    PermissionsConfig { presets: presets.collect(), ..PermissionsConfig::default() }
}

#[test]
fn the_built_in_presets_are_these() {
    let presets = Presets::new(&PermissionsConfig::default()).unwrap();
    let rows: Vec<_> = presets
        .presets
        .iter()
        .map(|p| (p.name.as_str(), p.level, p.may_create, p.send, p.writes))
        .collect();
    assert_eq!(
        rows,
        [
            ("yolo", L::Yolo, true, S::Anyone, W::ByLevel),
            ("trusted", L::Trusted, true, S::Anyone, W::ByLevel),
            ("sandboxed", L::Sandboxed, false, S::ParentOnly, W::ListedInCwd),
            ("worker", L::Sandboxed, false, S::Nobody, W::Never),
        ]
    );
    assert_eq!(presets.default_preset().name, "sandboxed");
}

#[test]
fn a_custom_preset_has_the_rules_of_its_base_and_the_tools_of_its_chain() {
    let config = config(&[
        (
            "quiet",
            preset("worker", &[("sleep", Some(false), Some(1.5)), ("echo", Some(false), None)]),
        ),
        ("louder", preset("quiet", &[("echo", Some(true), None), ("glob", None, Some(2.0))])),
    ]);
    assert_eq!(
        Presets::new(&config).unwrap().get("louder").unwrap().as_ref(),
        &Preset {
            name: "louder".to_owned(),
            description: Some("like quiet".to_owned()),
            level: Level::Sandboxed,
            may_create: false,
            send: SendRule::Nobody,
            writes: WriteRule::Never,
            roots: Roots::anywhere(),
            tool_roots: BTreeMap::new(),
            blocked_paths: Vec::new(),
            disabled_tools: ["sleep".to_owned()].into(),
            tool_timeouts: [
                ("glob".to_owned(), Duration::from_secs(2)),
                ("sleep".to_owned(), Duration::from_millis(1500)),
            ]
            .into(),
        }
    );
}

#[test]
fn an_unknown_preset_is_told_with_the_known_ones() {
    let presets = Presets::new(&config(&[("mine", preset("yolo", &[]))])).unwrap();
    let error = presets.get("your").unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is no preset `your`; there are yolo, trusted, sandboxed, worker, mine"
    );
}

#[test]
fn presets_that_lead_nowhere_are_refused() {
    let build = |presets: &[(&str, PresetConfig)]| Presets::new(&config(presets)).unwrap_err();
    let name = || "a".to_owned();
    let refused = |source| PolicyError::Preset { name: name(), source };
    assert_eq!(
        build(&[("a", preset("b", &[])), ("b", preset("a", &[]))]),
        refused(LineageError::Endless { name: name() })
    );
    assert_eq!(
        build(&[("a", preset("gone", &[]))]),
        refused(LineageError::Unknown { name: "gone".to_owned() })
    );
    assert_eq!(
        build(&[("a", preset("yolo", &[("echo", None, Some(-1.0))]))]),
        PolicyError::Timeout { preset: name(), tool: "echo".to_owned() }
    );
}

#[test]
fn a_tool_that_does_not_exist_is_refused_rather_than_left_enabled() {
    let tool = ToolConfig { enabled: Some(false), timeout: None, allowed_paths: None };
    let preset = PresetConfig {
        extends: "trusted".to_owned(),
        description: None,
        allowed_paths: None,
        blocked_paths: Vec::new(),
        tools: [("ech".to_owned(), tool)].into(),
    };
    let config = PermissionsConfig {
        presets: [("quiet".to_owned(), preset)].into(),
        ..PermissionsConfig::default()
    };
    let presets = Presets::new(&config).unwrap();
    let refused = presets.check_tools(&["echo", "sleep"]).unwrap_err().to_string();
    assert_eq!(
        refused,
        "the preset `quiet` names the tool `ech`, which this version does not have; it has echo, sleep"
    );
    assert_eq!(presets.check_tools(&["ech"]), Ok(()));
}

#[test]
fn each_preset_of_a_chain_takes_paths_away() {
    let paths = |paths: &[&str]| paths.iter().map(PathBuf::from).collect::<Vec<_>>();
    let mut outer = preset("trusted", &[("glob", None, None)]);
    outer.allowed_paths = Some(paths(&["/project", "/docs"]));
    outer.blocked_paths = paths(&["/project/keys"]);
    outer.tools.get_mut("glob").unwrap().allowed_paths = Some(paths(&["/srv", "/docs/api"]));
    let mut inner = preset("outer", &[("glob", None, None)]);
    inner.allowed_paths = Some(paths(&["/docs/api", "/elsewhere"]));
    inner.blocked_paths = paths(&["/docs/api/old"]);
    inner.tools.get_mut("glob").unwrap().allowed_paths = Some(paths(&["/docs"]));
    let mut none = preset("inner", &[]);
    none.allowed_paths = Some(Vec::new());
    let config = config(&[("outer", outer), ("inner", inner), ("none", none)]);
    let presets = Presets::new(&config).unwrap();
    let inner = presets.get("inner").unwrap();
    assert_eq!(inner.roots, Roots::below(paths(&["/docs/api"])));
    assert_eq!(inner.tool_roots["glob"], Roots::below(paths(&["/docs/api"])));
    assert_eq!(inner.blocked_paths, paths(&["/project/keys", "/docs/api/old"]));
    assert_eq!(presets.get("none").unwrap().roots, Roots::nowhere(), "an empty list is nothing");
}
