//! The configuration as the program puts it together on a real disk: layers, trust, and the commands
//! that show, write and judge it.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "these tests run the program, so they use the machine as a shell does, and fail where \
              it does not do as it should"
)]

mod asked;
mod doctor;
mod effects;
mod help;
#[path = "../private_home/home.rs"]
mod home;
mod init;
mod keys;
#[path = "../cli_support/ran.rs"]
mod ran;
mod script;
mod serve;
mod show;
mod support;
mod trust;
