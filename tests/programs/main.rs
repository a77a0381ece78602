//! Programs on the real machine: none outlives what it was started for, whatever it does, and none
//! reaches what is closed to its agent. The server is a process of its own, driven by its built-in
//! model, which calls a tool when it is asked to.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "these tests run the program, so they use the machine as a shell does"
)]

mod confined; // what a program reaches
mod endings; // what is left of a program
mod looking; // git in a repository that wants to start programs
mod server; // the server

#[path = "../private_home/home.rs"]
mod home;

use std::time::Duration;

/// Waits for what has to happen. The bound only turns a test that would hang into one that fails.
async fn must<T>(happen: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_mins(2), future)
        .await
        .unwrap_or_else(|_late| panic!("this never happened: {happen}"))
}
