//! Tools over a simulated disk whose jobs are done at once.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use futures_util::FutureExt;
use jiff::Timestamp;
use nexus3::config::PermissionsConfig;
use nexus3::id::AgentId;
use nexus3::message::ToolCall;
use nexus3::policy::{Grant, Permissions, Permit, Presets, Rights};
use nexus3::pool::Pool;
use nexus3::tool::team::Membership;
use nexus3::tool::workplace::Workplace;
use nexus3::tool::{ToolOutput, Tools};
use nexus3::world::{Blocking, BoxFuture, World, real};
use nexus3_sim::disk::{Disk, Item};
use serde_json::Value;

pub const CWD: &str = "/project";
/// Where the server has its own files, inside the working directory.
pub const CLOSED: &str = "/project/.nexus3";

/// Does every job when it is asked for.
struct AtOnce;

impl Blocking for AtOnce {
    fn run(&self, job: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()> {
        job();
        Box::pin(std::future::ready(()))
    }
}

/// A disk with nothing but the working directory.
pub fn disk() -> Disk {
    let disk = Disk::new(|| Timestamp::UNIX_EPOCH);
    put_dir(&disk, CWD);
    disk
}

pub fn put_dir(disk: &Disk, path: &str) {
    disk.put(Path::new(path), Item::Dir { mode: 0o755 }).expect("a directory goes there");
}

pub fn put_file(disk: &Disk, path: &str, content: &str) {
    let item = Item::File { content: content.as_bytes().to_vec(), mode: 0o644 };
    disk.put(Path::new(path), item).expect("a file goes there");
}

pub fn put_link(disk: &Disk, path: &str, target: &str) {
    let item = Item::Link { target: target.into() };
    disk.put(Path::new(path), item).expect("a link goes there");
}

/// The world of a test, with another disk and blocking seam.
pub fn world(disk: &Disk, blocking: Arc<dyn Blocking>) -> World {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime starts");
    let _inside = runtime.enter();
    let real = real::world().expect("a test runs in a runtime");
    World { fs: Arc::new(disk.clone()), blocking, ..real }
}

pub struct Bench {
    tools: Tools,
    world: World,
}

impl Bench {
    pub fn new() -> Self {
        Self { tools: Tools::new(), world: world(&disk(), Arc::new(AtOnce)) }
    }

    /// Has an agent in [`CWD`] call a tool on this disk.
    pub fn call(&self, disk: &Disk, tool: &str, arguments: Value) -> ToolOutput {
        let world = World { fs: Arc::new(disk.clone()), ..self.world.clone() };
        let workplace = self.tools.workplace(&world, &confined(), alone());
        run(&self.tools, &workplace, tool, arguments).now_or_never().expect("nothing is waited for")
    }
}

pub fn run(
    tools: &Tools,
    workplace: &Arc<Workplace>,
    tool: &str,
    arguments: Value,
) -> BoxFuture<'static, ToolOutput> {
    let call = ToolCall { id: "1".to_owned(), name: tool.to_owned(), arguments };
    tools.run(&call, &confined(), workplace, Permit::Nothing)
}

/// Of an agent that knows no other.
pub fn alone() -> Membership {
    Membership::new(AgentId::temp(1), Weak::<Pool>::new())
}

/// Of an agent that may write in its working directory, and do nothing outside.
pub fn confined() -> Permissions {
    confined_to(CWD.into())
}

pub fn confined_to(cwd: PathBuf) -> Permissions {
    let presets = Presets::new(&PermissionsConfig::default()).expect("the built-in ones are sound");
    let preset = Arc::clone(presets.get("sandboxed").expect("it is built in"));
    Permissions::new(Grant::new(preset, cwd.clone(), vec![cwd]), None, &[CLOSED.into()])
}

/// The same agent's rights.
pub fn rights() -> Arc<Rights> {
    Arc::clone(confined().rights())
}
