//! The seams: all that the server may ask of the machine it runs on.
//! Every part is a small object-safe trait. `real` is the machine itself; `nexus3-sim` brings a
//! simulated one, and the server cannot tell them apart. Each seam has a conformance suite in
//! `nexus3_sim::conform` that both must pass.
//!
//! Elapsed time is the one thing taken from elsewhere: `tokio::time` is real or virtual with the
//! runtime that drives it, so timers and deadlines use it directly.

mod blocking;
mod chance;
mod clock;
mod environment;
mod fs;
mod http;
mod net;
mod programs;
pub mod real;
mod signals;
mod sqlite;

use std::pin::Pin;
use std::sync::Arc;

pub use blocking::Blocking;
pub use chance::{Chance, Use};
pub use clock::Clock;
pub use environment::Environment;
pub use fs::{Access, Dir, Entry, File, Fs, Kind, LinkRefused, Stat};
pub use http::{
    Authorities, AuthoritiesError, Connection, Http, HttpBody, HttpError, HttpFault, HttpResponse,
    HttpTerms,
};
pub use net::{Listener, Net, Stream};
pub use programs::{Confinement, Execute, Exit, Process, Program, Programs, Signal};
pub use signals::Signals;
pub use sqlite::Sqlite;

pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// One machine, real or simulated. Cloning shares it.
#[derive(Clone)]
pub struct World {
    pub clock: Arc<dyn Clock>,
    pub chance: Arc<dyn Chance>,
    pub net: Arc<dyn Net>,
    pub http: Arc<dyn Http>,
    pub fs: Arc<dyn Fs>,
    pub blocking: Arc<dyn Blocking>,
    pub sqlite: Arc<dyn Sqlite>,
    pub programs: Arc<dyn Programs>,
    pub signals: Arc<dyn Signals>,
    pub environment: Arc<dyn Environment>,
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("World")
    }
}
