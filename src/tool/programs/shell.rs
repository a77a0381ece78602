//! `shell_UNSAFE`: a command line for the machine's shell, which does with it what it likes.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

use super::super::error::Given;
use super::super::list_directory::here;
use super::{AsProgram, Asked, Reach, seconds};
use crate::limits::PROGRAM_SECONDS_MAX;
use crate::policy::Subject;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Shell {
    /// The command line for sh.
    command: String,
    /// After how many seconds it is ended.
    #[serde(default = "seconds")]
    #[schemars(range(min = 0, max = PROGRAM_SECONDS_MAX))]
    timeout: f64,
    /// Where it runs; the working directory by default.
    #[serde(default = "here")]
    cwd: String,
}

impl AsProgram for Shell {
    const NAME: &'static str = "shell_UNSAFE";
    const DESCRIPTION: &'static str = "Runs a command line with sh and gives its output and exit \
                                       code. Prefer exec, which needs no quoting. What it leaves \
                                       running is ended with it.";

    fn subject(_program: String, directory: PathBuf) -> Subject {
        Subject::Shell { directory }
    }

    fn asked(self) -> Asked {
        Asked {
            program: "sh".to_owned(),
            arguments: vec!["-c".to_owned(), self.command],
            environment: &[],
            reach: Reach::Agent,
            seconds: self.timeout,
            cwd: Given::new(&self.cwd),
        }
    }
}
