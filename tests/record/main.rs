//! `serve --record`: a live session of the built program, with a scripted model, becomes a scenario that
//! the simulation replays to the same conversation.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "these tests run the program, so they use the machine as a shell does"
)]

mod bounds; // how much there is room for
mod calls; // what may be said
mod disk; // what lies on the disk
mod earlier; // agents that were there before
mod edges; // what goes wrong
mod live; // the program and its model
mod machine; // what only real machines do
mod replay; // the recording in the simulation
mod servers; // MCP servers
mod same; // whether a replay is what happened
mod sweep; // scenarios of all kinds

#[path = "../private_home/home.rs"]
mod home;
