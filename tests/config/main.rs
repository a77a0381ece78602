//! The configuration as the program puts it together on a real disk: layers, trust, and the commands
//! that show, write and judge it.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "these tests run the program, so they use the machine as a shell does, and fail where \
              it does not do as it should"
)]

mod doctor;
mod help;
#[path = "../private_home/home.rs"]
mod home;
mod init;
mod serve;
mod show;
mod support;
mod trust;
