//! Hosts and what lies between them, in two lanes: a simulated network with ticks, latencies and links
//! that can be cut, or pipes between a server and all others, over which nothing takes longer than a
//! tick and nothing is lost. What a run does with them is not decided here.

mod together; // the lane of pipes

use std::error::Error;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use nexus3::world::BoxFuture;
use turmoil::Sim;

use crate::machine::{self, EPOCH, Sockets, Traffic, TurmoilNet};
use crate::mcp;
use crate::model::{self, Observer, Scripted};
use crate::scenario::{Lane, MCP, MODEL};
use together::Together;

/// How much virtual time one step of the simulation takes. The longest latency is ten times that:
/// with less, messages would never overtake each other.
pub const TICK: Duration = Duration::from_millis(5);
pub const LATENCY_MAX: Duration = Duration::from_millis(50);
pub const LATENCY_MIN: Duration = Duration::from_millis(5);
/// What a link holds; more waits for the reader.
const LINK_PIECES: usize = 1024;

const MODEL_PORT: u16 = 80;
const MCP_PORT: u16 = 81;
/// Where nobody listens.
pub const NOBODY: &str = "http://127.0.0.1:1";
/// Beyond any run's limit: those are watched by whoever steps.
const FOR_EVER: Duration = Duration::from_hours(24 * 365);

/// A network without hosts.
pub fn simulation(seed: u64) -> Sim<'static> {
    let epoch = u64::try_from(EPOCH).expect("the simulation begins after 1970");
    let epoch = std::time::UNIX_EPOCH + Duration::from_secs(epoch);
    turmoil::Builder::new()
        .rng_seed(seed)
        .epoch(epoch)
        .tick_duration(TICK)
        .min_message_latency(LATENCY_MIN)
        .max_message_latency(LATENCY_MAX)
        .simulation_duration(FOR_EVER)
        .tcp_capacity(LINK_PIECES)
        .enable_random_order()
        .build()
}

/// The virtual time.
pub fn now() -> Duration {
    machine::elapsed()
}

/// All hosts of a run.
pub enum Hosts {
    Network(Box<Sim<'static>>),
    Pipes(Box<Together>),
}

impl std::fmt::Debug for Hosts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Network(_) => "Network",
            Self::Pipes(_) => "Pipes",
        })
    }
}

impl Hosts {
    pub fn new(lane: Lane, seed: u64) -> Self {
        match lane {
            Lane::Turmoil => Self::Network(Box::new(simulation(seed))),
            Lane::Pipes => Self::Pipes(Box::new(Together::new(seed))),
        }
    }

    /// A host that runs what `software` makes, at every start anew.
    pub fn host<F, Fut>(&mut self, name: &str, software: F)
    where
        F: Fn() -> Fut + 'static,
        Fut: Future<Output = Ended> + Send + 'static,
    {
        match self {
            Self::Network(sim) => sim.host(name, on_network(software)),
            Self::Pipes(together) => together.host(name, Box::new(move || Box::pin(software()))),
        }
    }

    pub fn lookup(&self, name: &str) -> IpAddr {
        match self {
            Self::Network(sim) => sim.lookup(name),
            Self::Pipes(together) => together.lookup(name),
        }
    }

    /// The sockets of a host, whose messages are part of `traffic`.
    pub fn sockets(&self, name: &str, traffic: &Traffic) -> Sockets {
        match self {
            Self::Network(sim) => {
                Sockets::Network(TurmoilNet::in_traffic(sim.lookup(name), traffic))
            }
            Self::Pipes(together) => together.sockets(),
        }
    }

    /// The sockets of a host that no fault touches.
    pub fn quiet_sockets(&self) -> Sockets {
        match self {
            Self::Network(_) => Sockets::Network(TurmoilNet::default()),
            Self::Pipes(together) => together.sockets(),
        }
    }

    /// Lets one tick of virtual time pass; over pipes, where nobody has anything to do, more of it at once,
    /// but not beyond the time at which something is due. An error is a panic or a failure inside a host.
    pub fn step(&mut self, due: impl FnOnce() -> Option<Duration>) -> Result<(), String> {
        match self {
            Self::Network(sim) => sim.step().map(drop).map_err(|error| error.to_string()),
            Self::Pipes(together) => together.step(due()),
        }
    }

    pub fn elapsed(&self) -> Duration {
        match self {
            Self::Network(sim) => sim.elapsed(),
            Self::Pipes(together) => together.elapsed(),
        }
    }

    pub fn crash(&mut self, name: &str) {
        match self {
            Self::Network(sim) => sim.crash(name),
            Self::Pipes(together) => together.crash(name),
        }
    }

    /// Starts what has ended or was killed.
    pub fn bounce(&mut self, name: &str) {
        match self {
            Self::Network(sim) => sim.bounce(name),
            Self::Pipes(together) => together.bounce(name),
        }
    }

    pub fn is_running(&mut self, name: &str) -> bool {
        match self {
            Self::Network(sim) => sim.is_host_running(name),
            Self::Pipes(together) => together.is_running(name),
        }
    }

    /// Does something to the links between hosts. Pipes have none: a scenario that would cut one is not
    /// played there, and there is nothing to heal.
    pub fn change_links(&self, change: impl FnOnce(&Sim<'static>)) {
        match self {
            Self::Network(sim) => change(sim),
            Self::Pipes(_) => {}
        }
    }
}

/// What the host of the models runs.
pub fn model_host(
    net: Sockets,
    models: Arc<Scripted>,
    observer: Arc<dyn Observer>,
) -> impl Fn() -> Serving + 'static {
    move || {
        let (models, observer) = (Arc::clone(&models), Arc::clone(&observer));
        let net = Arc::new(net.clone());
        Box::pin(async move {
            let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), MODEL_PORT);
            model::serve(net, address, models, observer).await?;
            Ok(())
        })
    }
}

/// How a host's software has ended.
pub type Ended = Result<(), Box<dyn Error + Send + Sync>>;

/// A host at work.
pub type Serving = BoxFuture<'static, Ended>;

/// The same software where errors may be of any kind.
pub fn on_network<Fut: Future<Output = Ended> + 'static>(
    software: impl Fn() -> Fut + 'static,
) -> impl Fn() -> Pin<Box<dyn Future<Output = turmoil::Result>>> + 'static {
    move || {
        let running = software();
        Box::pin(async move { running.await.map_err(|error| error as Box<dyn Error>) })
    }
}

/// Where the models are reached.
pub fn model_root(address: IpAddr) -> String {
    format!("http://{address}:{MODEL_PORT}")
}

/// Adds the host of the models and returns the URL of its root.
pub fn add_models(
    hosts: &mut Hosts,
    models: &Arc<Scripted>,
    observer: &Arc<dyn Observer>,
    traffic: &Traffic,
) -> String {
    let net = hosts.sockets(MODEL, traffic);
    hosts.host(MODEL, model_host(net, Arc::clone(models), Arc::clone(observer)));
    model_root(hosts.lookup(MODEL))
}

/// Adds the host of MCP servers, where there are any for it, and returns the URL of its root; of a place
/// where nobody is, if there are none.
pub fn add_mcp(hosts: &mut Hosts, servers: &[Arc<mcp::Scripted>], traffic: &Traffic) -> String {
    let servers: Vec<_> = servers.iter().filter(|server| server.is_at_host()).cloned().collect();
    if servers.is_empty() {
        return NOBODY.to_owned();
    }
    let net = hosts.sockets(MCP, traffic);
    hosts.host(MCP, move || {
        let (servers, net) = (servers.clone(), Arc::new(net.clone()));
        async move {
            let at = |port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
            if !servers.iter().any(|server| server.leads_elsewhere()) {
                match mcp::serve(net, at(MCP_PORT), servers).await? {}
            }
            let elsewhere = mcp::serve(net.clone(), at(mcp::ELSEWHERE_PORT), servers.clone());
            match tokio::try_join!(mcp::serve(net, at(MCP_PORT), servers), elsewhere)? {}
        }
    });
    format!("http://{}:{MCP_PORT}", hosts.lookup(MCP))
}
