//! The store on a simulated disk: what it keeps, what it closes, and that a power cut at any moment
//! and a disk that fails in any way cost nothing that was acknowledged.

mod support; // a machine that outlives its servers
mod commits; // together or not at all
