//! Agents and their pool as clients meet them: a whole server, real sockets, the typed client, and
//! a model that answers when the test says so. Nothing here waits for time to pass.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests may use the machine they run on"
)]

#[path = "../agents_support/mod.rs"]
mod agents_support;

mod at_most_once;
mod callers;
mod cancel;
mod ceilings;
mod create;
mod create_refused;
mod destroy;
mod initial_message;
mod limits;
mod observe;
mod plain_http;
mod restore;
mod send;
mod sessions;
mod stopping;
mod tools;
