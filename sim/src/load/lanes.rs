//! The three lanes, from a whole simulated network to no network at all. The server, its agents and
//! the clients are the same in all of them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use nexus3::client::NexusClient;
use nexus3::config::{self, Config, Source};
use nexus3::home::{DEFAULT_PORT, Home};
use nexus3::logs::{Detail, Logs};
use nexus3::policy::ceiling::Yolo;
use nexus3::pool::{Ground, Pool, Records};
use nexus3::provider::Models;
use nexus3::provider::script::AGENT_HEADER;
use nexus3::rpc::Rpc;
use nexus3::server::{Access, LogSettings, Resume, Server, Settings};
use nexus3::world::{Clock, Net, World};
use serde_json::{Value, json};
use tokio::runtime::{Builder, RngSeed, Runtime};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};
use tokio_util::task::AbortOnDropHandle;

use super::calls::{Door, drive};
use super::{Carried, Load, LoadError};
use crate::disk::{Disk, Item};
use crate::hosts;
use crate::machine::{
    Acting, HOME, Machine, PROJECT, Raised, Sockets, SplitMix, TurmoilNet, VirtualClock,
};
use crate::model::{Asked, ModelHost, Observer, Received, Scripted};
use crate::pipes::Pipes;
use crate::scenario::{MODEL, SERVER};

const CLIENTS: &str = "clients";
const MODEL_ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8000);
const SCRIPT: &str = "/project/load.toml";

/// Who asks for what is seen by the clients.
struct Unwatched;

impl Observer for Unwatched {
    fn asked(&self, _: &Asked, _: &Received<'_>) {}
}

pub fn turmoil(load: &Load, seed: u64) -> Result<Carried, LoadError> {
    let mut sim = hosts::simulation(seed);
    let models = Arc::new(Scripted::new(load.script(), [].into()));
    let observer: Arc<dyn Observer> = Arc::new(Unwatched);
    let net = Sockets::Network(TurmoilNet::default());
    sim.host(MODEL, hosts::on_network(hosts::model_host(net, models, observer)));
    let root = hosts::model_root(sim.lookup(MODEL));
    let signals = Arc::new(Raised::default());
    let machine = machine(Arc::new(TurmoilNet::default()), VirtualClock::new(hosts::now), &signals);
    let world = machine.world(server_seed(seed));
    let config = config(load, over_http(&format!("{root}/v1")))?;
    let (tell, told) = oneshot::channel();
    sim.client(SERVER, async move {
        let server = Server::bind(world, settings(config)).await?;
        // Without a client there is nobody to tell.
        let _ = tell.send(server.token().cloned());
        server.run().await;
        Ok(())
    });
    let address = SocketAddr::new(sim.lookup(SERVER), DEFAULT_PORT);
    let (hand_in, mut handed_in) = oneshot::channel();
    let wanted = *load;
    sim.client(CLIENTS, async move {
        let client = NexusClient::new(Arc::new(TurmoilNet::default()), address, told.await?);
        let carried = drive(&wanted, &Door::Http(client), hosts::now).await;
        // Whoever stopped waiting has an error to tell already.
        let _ = hand_in.send(carried);
        signals.raise();
        Ok(())
    });
    loop {
        match sim.step() {
            Ok(false) if sim.elapsed() <= load.limit() => {}
            Ok(false) => return Err(LoadError::Limit { limit: load.limit() }),
            Ok(true) => break,
            Err(error) => return Err(LoadError::Host { problem: error.to_string() }),
        }
    }
    let carried = handed_in.try_recv();
    carried.map_err(|error| LoadError::Host { problem: error.to_string() })?
}

pub fn pipes(load: &Load, seed: u64) -> Result<Carried, LoadError> {
    on_one_runtime(load, seed, async {
        let net: Arc<dyn Net> = Arc::new(Pipes::new());
        let models = Arc::new(Scripted::new(load.script(), [].into()));
        let host = ModelHost::bind(net.as_ref(), MODEL_ADDRESS, models, Arc::new(Unwatched)).await;
        let _models = AbortOnDropHandle::new(tokio::spawn(host.map_err(start)?.run()));
        let signals = Arc::new(Raised::default());
        let elapsed = stopwatch();
        let machine = machine(Arc::clone(&net), VirtualClock::new(elapsed.clone()), &signals);
        let config = config(load, over_http(&format!("http://{MODEL_ADDRESS}/v1")))?;
        let server = Server::bind(machine.world(server_seed(seed)), settings(config)).await;
        let server = server.map_err(start)?;
        let client = NexusClient::new(net, server.address(), server.token().cloned());
        let serving = AbortOnDropHandle::new(tokio::spawn(server.run()));
        let carried = drive(load, &Door::Http(client), elapsed).await?;
        signals.raise();
        serving.await.map_err(|error| LoadError::Host { problem: error.to_string() })?;
        Ok(carried)
    })
}

pub fn direct(load: &Load, seed: u64) -> Result<Carried, LoadError> {
    on_one_runtime(load, seed, async {
        let elapsed = stopwatch();
        let clock = VirtualClock::new(elapsed.clone());
        let machine = machine(Arc::new(Pipes::new()), clock, &Arc::default());
        let content = load.script_text().into_bytes();
        let script = Item::File { mode: 0o644, content };
        machine.disk.put(SCRIPT.as_ref(), script).map_err(start)?;
        let config = config(load, json!({ "type": "script", "script": SCRIPT }))?;
        let door = inside(machine.world(server_seed(seed)), &config).await?;
        drive(load, &door, elapsed).await
    })
}

/// The inside of a server, without its port.
async fn inside(world: World, config: &Config) -> Result<Door, LoadError> {
    let logs = Logs::start(&world, Path::new(HOME).join("logs"), Detail::default());
    let models = Models::new(&world, config, logs.traffic()).map_err(start)?;
    let chance = Arc::clone(&world.chance);
    let ground = Ground {
        home: PathBuf::from(HOME),
        cwd: PathBuf::from(PROJECT),
        blocked_paths: Vec::new(),
        yolo: Yolo::Refused,
    };
    let home = ground.home.clone();
    Home::prepare(world.fs.as_ref(), &home).map_err(start)?;
    let records = Records::open(&world, &home, config, logs).await.map_err(start)?;
    let pool = Pool::new(world, config, models, ground, records).map_err(start)?;
    let rpc = Rpc::new(Arc::clone(&pool), chance, config.server.max_concurrent);
    Ok(Door::Direct { rpc: Arc::new(rpc), pool })
}

/// Runs everything on one thread whose time stands still while there is something to do.
fn on_one_runtime(
    load: &Load,
    seed: u64,
    work: impl Future<Output = Result<Carried, LoadError>>,
) -> Result<Carried, LoadError> {
    let runtime = runtime(seed).map_err(|source| LoadError::Runtime { source })?;
    let limit = load.limit();
    let ended = runtime.block_on(async { timeout(limit, work).await });
    ended.map_err(|_| LoadError::Limit { limit })?
}

fn runtime(seed: u64) -> std::io::Result<Runtime> {
    Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .rng_seed(RngSeed::from_bytes(&seed.to_le_bytes()))
        .build()
}

/// The virtual time from now on.
fn stopwatch() -> impl Fn() -> Duration + Clone + Send + Sync + 'static {
    let started = Instant::now();
    move || started.elapsed()
}

fn machine(net: Arc<dyn Net>, clock: VirtualClock, signals: &Arc<Raised>) -> Machine {
    let disk = {
        let clock = clock.clone();
        Disk::new(move || clock.now())
    };
    let project = Item::Dir { mode: 0o755 };
    disk.put(Path::new(PROJECT), project).expect("an empty disk takes a directory");
    let programs = Arc::new(Acting::new(Arc::new(disk.clone()), |_, _| None));
    Machine { net, clock, disk, programs, signals: Arc::clone(signals), vars: [].into() }
}

/// The server draws other numbers than the network.
fn server_seed(seed: u64) -> u64 {
    SplitMix::named(seed, "server").draw()
}

fn over_http(base_url: &str) -> Value {
    json!({
        "type": "vllm",
        "base_url": base_url,
        "auth_method": "none",
        "allow_insecure_http": true,
        "headers": { AGENT_HEADER: "${agent_id}" },
    })
}

fn config(load: &Load, mut provider: Value) -> Result<Config, LoadError> {
    provider["models"] = json!({ "default": { "id": "default" } });
    // The slowest model is still in time.
    provider["request_timeout"] = load.limit().as_secs_f64().into();
    // All agents may be created at the same moment, and a connection outlives its call a little.
    let at_once = load.agents.max(1);
    let config = json!({
        "server": { "max_concurrent": at_once, "max_connections": at_once.saturating_mul(4) },
        "providers": { "load": provider },
        "network": { "allow_private": true },
    });
    let source = Source { name: "config.json".to_owned(), text: config.to_string() };
    config::load(&source).map_err(start)
}

fn settings(config: Config) -> Settings {
    let home = PathBuf::from(HOME);
    let logs = LogSettings::in_home(&home);
    let (access, resume) = (Access::TokenHolders, Resume::WhenAsked);
    Settings { config, home, access, yolo: Yolo::Refused, resume, logs, record: None }
}

fn start(error: impl std::fmt::Display) -> LoadError {
    LoadError::Start { problem: error.to_string() }
}
