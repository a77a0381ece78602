//! Programs that run until the test is over.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

/// Killed when the test ends.
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only where it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts `nexus3-sim model`, and returns the configuration that it prints once it listens.
pub fn model(command: &mut Command) -> (Running, Value) {
    let command = command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("the program starts");
    let mut printed = BufReader::new(child.stdout.take().expect("its output is piped"));
    let running = Running(child);
    let mut config = String::new();
    loop {
        assert!(printed.read_line(&mut config).expect("it prints text") > 0, "{config}");
        if let Ok(config) = serde_json::from_str(&config) {
            return (running, config);
        }
    }
}
