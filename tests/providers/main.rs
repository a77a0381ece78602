//! Providers through the real machine's client, against real servers on this machine.
//! What each byte means is tested beside the wires' own code; here it crosses a socket.

#![expect(
    clippy::disallowed_methods,
    reason = "a test looks for keys in the files of its server, on the machine it runs on"
)]

#[expect(dead_code, reason = "other tests look at more of it")]
#[path = "../agents_support/server.rs"]
mod server; // a whole server

mod completions; // whole requests and answers of one wire
mod failures; // every failure, on both wires
mod messages; // and of the other
mod minimal; // the least that can be configured
mod pieces; // bytes and connections that end anywhere
mod support;
mod turns; // answers that a whole turn has to cope with
