//! One simulated machine: every seam of `nexus3::world`, decided by the seed and the scenario.
//! Each part passes the conformance suite of the real one.

mod blocking;
mod chance;
mod clock;
mod environment;
mod net;
mod programs;
mod signals;
mod sockets;
mod tasks;
mod traffic;
mod whole;
mod window;

pub use blocking::{Inline, current_job};
pub use chance::{Seeded, SplitMix};
pub use clock::{EPOCH, VirtualClock, elapsed, pass, set_between_ticks};
pub use environment::Given;
pub use net::TurmoilNet;
pub use programs::{Act, Acting, Pipe, Stage};
pub use signals::Raised;
pub use sockets::{PipesNet, Sockets};
pub use tasks::align_task_ids;
pub use traffic::Traffic;
pub use whole::{HOME, Machine, PROJECT};
