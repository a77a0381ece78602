//! One server in this process, and a client that writes whatever bytes it likes.

pub mod client;
pub mod server;
