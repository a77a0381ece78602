//! The store on a simulated disk: what it keeps, what it closes, and that a power cut at any moment
//! and a disk that fails in any way cost nothing that was acknowledged.

mod support; // a machine that outlives its servers
mod commits; // together or not at all
mod reads; // what comes back
mod recovery; // what the last server left open
mod retention; // which events are kept
mod renaming; // another id
mod opening; // newer and damaged databases
mod faults; // a disk that fails
mod workload; // several agents at once, and what must be found of them
mod crashes; // a power cut at every operation
