//! The machine itself behind every seam: system calls, threads, sockets and programs.
//! The only part of the server that may touch them; it never decides anything, so that all which
//! could be decided wrongly is above the seams and simulated.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "this is where the seams meet the machine the bans keep everybody else away from"
)]

mod blocking;
mod chance;
mod child;
mod clock;
mod confined;
mod environment;
mod fs;
mod http;
mod net;
mod programs;
mod signals;
mod sqlite;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::{Programs, World};
pub use child::supervise;
pub use confined::Landlock;
pub use fs::{fs_by_openat2, fs_by_walking};
pub use programs::COMMAND as SUPERVISOR_COMMAND;

/// The file that this process runs, also after another was put in its place.
const OWN_EXECUTABLE: &str = "/proc/self/exe";

/// Programs whose supervisors are processes of `executable`, which is `nexus3` itself.
pub fn programs_by(executable: PathBuf) -> Arc<dyn Programs> {
    Arc::new(programs::Supervised::by(executable))
}

/// Opens this machine. Called once, at start, inside a tokio runtime (signals need one): it raises
/// the limit of open handles for the whole process and takes over SIGTERM and SIGINT.
pub fn world() -> io::Result<World> {
    Ok(World {
        clock: Arc::new(clock::SystemClock),
        chance: Arc::new(chance::SystemChance),
        net: Arc::new(net::Tcp::open()),
        http: Arc::new(http::Client::default()),
        // A kernel before 5.6, or a sandbox that hides the call, gets the slower walk.
        fs: fs_by_openat2().unwrap_or_else(fs_by_walking),
        blocking: Arc::new(blocking::Threads),
        sqlite: Arc::new(sqlite::Files),
        programs: programs_by(OWN_EXECUTABLE.into()),
        signals: Arc::new(signals::StopSignals::open()?),
        environment: Arc::new(environment::ProcessEnvironment),
    })
}
