//! Runs the NEXUS3 server in a deterministic simulation: the same server that ships, over seams
//! that one number, the seed, decides. Uses the public API of `nexus3` only, so that whatever
//! passes here passes with the server as it is.

#[cfg(not(tokio_unstable))]
compile_error!(
    "without `--cfg tokio_unstable` tokio's own randomness is not seeded and panics of spawned \
     tasks are lost; .cargo/config.toml sets it, unless a RUSTFLAGS variable replaces that"
);

pub mod cli; // the command line
pub mod scenario; // what a run is made of
pub mod play; // a scenario, from its first step to its last check
pub mod report; // a page about runs
pub mod verdict; // whether a scenario fails, and at what
pub mod explore; // scenarios with what a seed makes go wrong
pub mod shrink; // the smallest scenario that still fails
pub mod load; // many turns, through as many layers as wanted
pub mod hosts; // hosts, and a network or pipes between them
pub mod model; // models that say what is scripted
pub mod mcp; // MCP servers that say what is scripted
pub mod machine; // the seams of one simulated machine
pub mod disk; // a disk that loses what was not synced
pub mod pipes; // sockets without a network
pub mod http_client; // outgoing HTTP over any net
pub mod digest; // a number for many bytes
pub mod conform; // what every world must keep, real or simulated
