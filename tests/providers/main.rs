//! Providers through the real machine's client, against real servers on this machine.
//! What each byte means is tested beside the wires' own code; here it crosses a socket.

mod completions; // whole requests and answers of one wire
mod failures; // every failure, on both wires
mod minimal; // the least that can be configured
mod support;
