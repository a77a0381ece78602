//! `exec`: a program with its arguments, without a shell.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{AsProgram, Asked, Reach, Terms};
use crate::policy::{Subject, exec_name};

#[derive(Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Exec {
    /// The program: a name in PATH, or a path.
    program: String,
    /// Its arguments, each as it is: no shell looks at them.
    #[serde(default)]
    args: Vec<String>,
    #[serde(flatten)]
    terms: Terms,
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
            terms: self.terms,
        }
    }
}
