//! The terminal as people use it: the built program in a pseudo-terminal, with keys that are typed and
//! screens that are looked at.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "these tests run the program, so they use the machine as a shell does, and fail with it"
)]

#[path = "../cli_support/mod.rs"]
mod support;

mod choosing;
mod conversation;
mod leaving;
mod lost;
mod person;
mod remembering;
mod shared;
mod tour;
