//! Runs the NEXUS3 server in a deterministic simulation: the same server that ships, over seams
//! that one number, the seed, decides. Uses the public API of `nexus3` only, so that whatever
//! passes here passes with the server as it is.

#[cfg(not(tokio_unstable))]
compile_error!(
    "without `--cfg tokio_unstable` tokio's own randomness is not seeded and panics of spawned \
     tasks are lost; .cargo/config.toml sets it, unless a RUSTFLAGS variable replaces that"
);

pub mod disk; // files and databases that lose what was not synced
pub mod conform; // what every world must keep, real or simulated
