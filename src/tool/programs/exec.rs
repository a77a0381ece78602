//! `exec`: a program with its arguments, without a shell.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

use super::super::error::Given;
use super::super::list_directory::here;
use super::{AsProgram, Asked, Reach, seconds};
use crate::limits::PROGRAM_SECONDS_MAX;
use crate::policy::{Subject, exec_name};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Exec {
    /// The program: a name in PATH, or a path.
    program: String,
    /// Its arguments, each as it is: no shell looks at them.
    #[serde(default)]
    args: Vec<String>,
    /// After how many seconds it is ended.
    #[serde(default = "seconds")]
    #[schemars(range(min = 0, max = PROGRAM_SECONDS_MAX))]
    timeout: f64,
    /// Where it runs; the working directory by default.
    #[serde(default = "here")]
    cwd: String,
}

impl AsProgram for Exec {
    const NAME: &'static str = "exec";
    const DESCRIPTION: &'static str = "Runs a program without a shell and gives its output and exit \
                                       code. What it leaves running is ended with it.";

    fn subject(program: String, directory: PathBuf) -> Subject {
        Subject::Program { name: exec_name(&program, &directory), directory }
    }

    fn asked(self) -> Asked {
        Asked {
            program: self.program,
            arguments: self.args,
            environment: &[],
            reach: Reach::Agent,
            seconds: self.timeout,
            cwd: Given::new(&self.cwd),
        }
    }
}
