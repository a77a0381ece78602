//! The `nexus3-sim` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    nexus3_sim::cli::main()
}
