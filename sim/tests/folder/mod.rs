//! A folder with scenario files, in which tests run the simulation as a program.

use std::path::Path;
use std::process::{Command, Output};

pub struct Folder(tempfile::TempDir);

/// Exit code, stdout and stderr.
pub type Ended = (i32, String, String);

impl Folder {
    pub fn with(name: &str, text: &str) -> Self {
        let folder = Self(tempfile::tempdir().expect("there is room for a temporary directory"));
        folder.write(name, text);
        folder
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path().join(name), text).expect("a temporary file can be written");
    }

    pub fn run(&self, arguments: &[&str]) -> Ended {
        let output = Command::new(env!("CARGO_BIN_EXE_nexus3-sim"))
            .args(arguments)
            .current_dir(self.path())
            .output()
            .expect("the program starts");
        ended(output)
    }
}

/// What a program that ended by itself has said.
pub fn ended(output: Output) -> Ended {
    let text = |bytes| String::from_utf8(bytes).expect("the program prints text");
    let code = output.status.code().expect("the program ends by itself");
    (code, text(output.stdout), text(output.stderr))
}
