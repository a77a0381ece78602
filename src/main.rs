//! The `nexus3` program: command line → real world → server or client command.

use std::process::ExitCode;

fn main() -> ExitCode {
    nexus3::cli::main()
}
