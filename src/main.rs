//! The `nexus3` program: command line → real world → server or client command.

use std::process::ExitCode;

/// Gives memory back to the machine when agents are destroyed, which the system's allocator does not.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    nexus3::cli::main()
}
