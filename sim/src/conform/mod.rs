//! What every [`World`] must keep, real or simulated: one suite per seam. A
//! simulated machine that behaves differently from the real one proves nothing about the server.
//! Suites see the world through its seams only, panic with the fact that does not hold, and never
//! sleep or ask how long something took.

mod blocking;
mod chance;
mod clock;
mod environment;
mod fs;
mod http;
mod net;
mod programs;
mod signals;
mod sqlite;

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use nexus3::world::{Listener, World};

pub use blocking::blocking;
pub use chance::chance;
pub use clock::clock;
pub use environment::environment;
pub use fs::fs;
pub use http::http;
pub use net::net;
pub use programs::{Cast, programs};
pub use signals::{Stop, signals};
pub use sqlite::sqlite;

/// Where suites that need a peer listen, and where they reach what listens there: the same loopback
/// address on a real machine, two addresses where a simulated host has to bind the unspecified one.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub bind: IpAddr,
    pub reach: IpAddr,
}

impl Place {
    /// Listens on a port the machine chooses and returns the address that reaches it.
    async fn listen(self, world: &World) -> (Box<dyn Listener>, SocketAddr) {
        let listener = world
            .net
            .bind(SocketAddr::new(self.bind, 0))
            .await
            .expect("port 0 can always be bound");
        let port = listener.local_addr().expect("a listener has an address").port();
        (listener, SocketAddr::new(self.reach, port))
    }
}

/// Waits for what has to happen, and names it where it does not. The bound only turns a test that
/// would hang into one that fails: nothing that holds comes near it.
async fn must<T>(happen: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_mins(1), future)
        .await
        .unwrap_or_else(|_late| panic!("this never happened: {happen}"))
}
