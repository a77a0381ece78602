//! Hosts on a simulated network: its ticks and latencies, and the host of the models.
//! What a run does with them is not decided here.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use turmoil::Sim;

use crate::machine::{self, EPOCH, Traffic, TurmoilNet};
use crate::model::{self, Observer, Scripted};
use crate::scenario::MODEL;

/// How much virtual time one step of the simulation takes. The longest latency is ten times that:
/// with less, messages would never overtake each other.
pub const TICK: Duration = Duration::from_millis(5);
pub const LATENCY_MAX: Duration = Duration::from_millis(50);
pub const LATENCY_MIN: Duration = Duration::from_millis(5);
/// What a link holds; more waits for the reader.
const LINK_PIECES: usize = 1024;

const MODEL_PORT: u16 = 80;
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

/// Adds the host of the models and returns the URL of its root.
pub fn add_models(
    sim: &mut Sim<'_>,
    models: &Arc<Scripted>,
    observer: &Arc<dyn Observer>,
    traffic: &Traffic,
) -> String {
    let (models, observer) = (Arc::clone(models), Arc::clone(observer));
    let net = TurmoilNet::in_traffic(sim.lookup(MODEL), traffic);
    sim.host(MODEL, move || {
        let (models, observer) = (Arc::clone(&models), Arc::clone(&observer));
        let net = Arc::new(net.clone());
        async move {
            let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), MODEL_PORT);
            model::serve(net, address, models, observer).await?;
            Ok(())
        }
    });
    format!("http://{}:{MODEL_PORT}", sim.lookup(MODEL))
}
