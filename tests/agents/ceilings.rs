//! Random families and what is done to them: created, changed, moved, destroyed, brought back by another
//! server. Whatever happens, no agent may do what one above it may not.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use nexus3::config::{Config, PresetConfig, SyncMode, ToolConfig};
use nexus3::id::AgentId;
use nexus3::logs::{Detail, Logs};
use nexus3::policy::budget::Limits;
use nexus3::policy::ceiling::Yolo;
use nexus3::policy::{PathRule, Permissions, Side};
use nexus3::pool::{
    Asker, Children, FirstTurn, Ground, NewAgent, NewId, NewPermissions, Pool, Records,
};
use nexus3::provider::Models;
use nexus3::world::real;
use proptest::prelude::*;
use proptest::test_runner::{Config as Runs, TestRunner};

const PRESETS: [&str; 8] =
    ["yolo", "yolo", "trusted", "trusted", "sandboxed", "worker", "narrow", "mute"];
const TOOLS: [&str; 3] = ["read_file", "write_file", "echo"];
/// Below the ground; the first is its own.
const DIRS: [&str; 5] = ["", "a", "a/b", "c", "c/d"];
const AGENTS: usize = 5;
/// More than in any run of a few steps would make the test long, fewer would miss what takes several.
const STEPS: usize = 14;
const FAMILIES: u32 = 100;

#[derive(Clone, Debug)]
enum Act {
    Create { id: usize, parent: usize, preset: &'static str, dir: usize, writes: bool },
    SetPermissions { id: usize, preset: &'static str, disable: usize, enable: usize },
    SetCwd { id: usize, dir: usize },
    Destroy { id: usize, children: Children },
    Restart,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let (id, dir) = (0..AGENTS, 0..DIRS.len());
    let preset = || prop::sample::select(&PRESETS[..]);
    let tool = || 0..=TOOLS.len();
    let children = prop_oneof![Just(Children::Keep), Just(Children::Destroy)];
    let create = (id.clone(), 0..=AGENTS, preset(), dir.clone(), any::<bool>());
    let act = prop_oneof![
        6 => create.prop_map(|(id, parent, preset, dir, writes)| {
            Act::Create { id, parent, preset, dir, writes }
        }),
        5 => (id.clone(), preset(), tool(), tool()).prop_map(|(id, preset, disable, enable)| {
            Act::SetPermissions { id, preset, disable, enable }
        }),
        3 => (id.clone(), dir).prop_map(|(id, dir)| Act::SetCwd { id, dir }),
        1 => (id, children).prop_map(|(id, children)| Act::Destroy { id, children }),
        1 => Just(Act::Restart),
    ];
    prop::collection::vec(act, 1..STEPS)
}

struct Yard {
    top: PathBuf,
    config: Config,
    pool: Arc<Pool>,
    _dir: tempfile::TempDir,
}

fn agent_id(number: usize) -> AgentId {
    AgentId::parse(&format!("agent{number}")).expect("it is an id")
}

fn config(top: &Path) -> Config {
    let mut config = Config::default();
    config.storage.sync = SyncMode::Normal;
    let read = ToolConfig {
        enabled: None,
        allowed_paths: Some(vec![top.join("c"), top.join("a/b")]),
        timeout: None,
    };
    let narrow = PresetConfig {
        extends: "yolo".to_owned(),
        description: None,
        allowed_paths: Some(vec![top.join("a"), top.join("c/d")]),
        blocked_paths: vec![top.join("a/b")],
        tools: [("read_file".to_owned(), read)].into(),
    };
    let off = ToolConfig { enabled: Some(false), allowed_paths: None, timeout: None };
    let mute = PresetConfig {
        extends: "trusted".to_owned(),
        description: None,
        allowed_paths: None,
        blocked_paths: vec![top.join("c/d")],
        tools: [("echo".to_owned(), off)].into(),
    };
    config.permissions.presets = [("narrow".to_owned(), narrow), ("mute".to_owned(), mute)].into();
    config
}

async fn open(top: &Path, config: &Config) -> Arc<Pool> {
    let world = real::world().expect("the machine opens");
    let home = top.join("home");
    let ground = Ground {
        home: home.clone(),
        cwd: top.to_owned(),
        blocked_paths: Vec::new(),
        yolo: Yolo::Allowed,
    };
    let models = Models::new(&world, config, None).expect("there is a model");
    let logs = Logs::start(&world, home.join("logs"), Detail::default());
    let records = Records::open(&world, &home, config, logs).await.expect("the home is ours");
    Pool::new(world, config, models, ground, records).expect("the pool opens")
}

impl Yard {
    async fn new() -> Self {
        let dir = tempfile::tempdir().expect("there is room");
        let top = std::fs::canonicalize(dir.path()).expect("it is there");
        for below in DIRS.iter().chain(&["home"]) {
            std::fs::create_dir_all(top.join(below)).expect("a directory is made");
        }
        let config = config(&top);
        let pool = open(&top, &config).await;
        Self { top, config, pool, _dir: dir }
    }

    /// What is refused changes nothing, which the next look shows.
    async fn act(&mut self, act: Act) {
        let tools = |tool: usize| TOOLS.get(tool).map(|name| (*name).to_owned()).into_iter();
        match act {
            Act::Create { id, parent, preset, dir, writes } => {
                let cwd = self.top.join(DIRS[dir]);
                let new = NewAgent {
                    id: NewId::Given(agent_id(id)),
                    preset: Some(preset.to_owned()),
                    system_prompt: Some("Be good.".to_owned()),
                    write_paths: (writes && preset == "sandboxed").then(|| vec![cwd.clone()]),
                    cwd: Some(cwd),
                    model: None,
                    disable_tools: Vec::new(),
                    parent: (parent < AGENTS).then(|| agent_id(parent)),
                    asker: if id % 2 == 0 { Asker::Person } else { Asker::Agent },
                    limits: Limits::default(),
                    first_turn: FirstTurn::Later,
                };
                let _ = self.pool.create(new).await;
            }
            Act::SetPermissions { id, preset, disable, enable } => {
                if let Ok(Some(agent)) = self.pool.find(&agent_id(id)).await {
                    let new = NewPermissions {
                        preset: preset.to_owned(),
                        disable_tools: tools(disable).collect(),
                        enable_tools: tools(enable).collect(),
                    };
                    let _ = self.pool.set_permissions(&agent, new).await;
                }
            }
            Act::SetCwd { id, dir } => {
                if let Ok(Some(agent)) = self.pool.find(&agent_id(id)).await {
                    let _ = self.pool.set_cwd(&agent, self.top.join(DIRS[dir])).await;
                }
            }
            Act::Destroy { id, children } => {
                self.pool.destroy(&agent_id(id), children).await.expect("the disk takes it");
            }
            Act::Restart => {
                self.pool.wind_down(std::future::ready(())).await;
                self.pool.store().close().await;
                self.pool = open(&self.top, &self.config).await;
            }
        }
    }

    /// What an agent may that one above it may not.
    fn beyond(&self) -> Vec<String> {
        let agents = self.pool.list();
        let of = |id: &AgentId| agents.iter().find(|listed| listed.agent.id() == *id);
        let mut found = Vec::new();
        for listed in &agents {
            let child = &listed.agent.id();
            let mut above = &listed.family.parent;
            while let Some(ancestor) = above {
                let Some(parent) = of(ancestor) else { break };
                let pair = (&*listed.agent.permissions(), &*parent.agent.permissions());
                let beyond = self.excess(pair.0, pair.1);
                found.extend(
                    beyond.into_iter().map(|what| format!("{child} beyond {ancestor}: {what}")),
                );
                above = &parent.family.parent;
            }
        }
        found
    }

    /// By trying each place with each tool, not by comparing lists.
    fn excess(&self, child: &Permissions, above: &Permissions) -> Vec<String> {
        let mut found = Vec::new();
        if child.level() >= above.level() {
            found.push(format!("{} under {}", child.level(), above.level()));
        }
        let places = DIRS.iter().map(|dir| self.top.join(dir).join("file"));
        for place in places.chain([self.top.join("home/x"), "/etc/x".into(), "/proc/x".into()]) {
            for tool in ["read_file", "write_file", "glob"] {
                let of =
                    |permissions: &Permissions, side| permissions.rights().path(tool, side, &place);
                if of(child, Side::Read) == PathRule::Free
                    && of(above, Side::Read) != PathRule::Free
                {
                    found.push(format!("{tool} reads {}", place.display()));
                }
                let may_ask = matches!(of(above, Side::Write), PathRule::Free | PathRule::Confirm);
                if of(child, Side::Write) == PathRule::Free && !may_ask {
                    found.push(format!("{tool} writes {}", place.display()));
                }
            }
        }
        for tool in TOOLS {
            let lacks =
                |permissions: &Permissions| permissions.rights().disabled_tools.contains(tool);
            if lacks(above) && !lacks(child) {
                found.push(format!("it has {tool}"));
            }
        }
        found
    }
}

#[test]
fn no_agent_ever_may_more_than_one_above_it() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime starts");
    let runs = Runs { cases: FAMILIES, failure_persistence: None, ..Runs::default() };
    let held = TestRunner::new(runs).run(&acts(), |acts| {
        runtime.block_on(async {
            let mut yard = Yard::new().await;
            // Chance alone seldom makes three generations.
            let first = [(0, AGENTS, "yolo"), (1, 0, "trusted"), (2, 1, "sandboxed")];
            let first = first.map(|(id, parent, preset)| Act::Create {
                id,
                parent,
                preset,
                dir: 0,
                writes: true,
            });
            for act in first.into_iter().chain(acts) {
                let shown = format!("{act:?}");
                yard.act(act).await;
                prop_assert_eq!(yard.beyond(), Vec::<String>::new(), "after {}", shown);
            }
            // What comes back is no more than what was there.
            yard.act(Act::Restart).await;
            let lost = yard.pool.restore_all().await;
            prop_assert_eq!(lost.len(), 0, "{:?}", lost);
            prop_assert_eq!(yard.beyond(), Vec::<String>::new(), "after all came back");
            Ok(())
        })
    });
    held.unwrap();
}
