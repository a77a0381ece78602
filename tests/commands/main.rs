//! The commands that talk to a server, as people and scripts use them: the built program, on the demo
//! model or one that a test plays.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "these tests run the program, so they use the machine as a shell does, and fail with it"
)]

#[path = "../cli_support/mod.rs"]
mod support;

mod agents;
mod background;
mod interrupted;
mod live;
mod mcp;
mod mcp_servers;
mod model;
mod odd;
mod once;
mod ports;
mod readme;
mod sessions;
mod terminal;
mod unknown;
