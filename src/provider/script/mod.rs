//! Scripted models: answers written down beforehand, with their faults. The same entries are read
//! by the `script` provider and by the simulation's model host.

mod entry;
mod time; // how times and uses are written

pub use entry::{Ask, Chunks, Entry, Fault, ScriptUsage, Stall, Time, Times};
pub use time::TimeError;
