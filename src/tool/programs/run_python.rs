//! `run_python`: code for the machine's own `python3`.

use schemars::JsonSchema;
use serde::Deserialize;

use super::super::error::Given;
use super::super::list_directory::here;
use super::{AsProgram, Asked, Reach, seconds};
use crate::limits::PROGRAM_SECONDS_MAX;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RunPython {
    /// What python3 runs.
    code: String,
    /// After how many seconds it is ended.
    #[serde(default = "seconds")]
    #[schemars(range(min = 0, max = PROGRAM_SECONDS_MAX))]
    timeout: f64,
    /// Where it runs; the working directory by default.
    #[serde(default = "here")]
    cwd: String,
}

impl AsProgram for RunPython {
    const NAME: &'static str = "run_python";
    const DESCRIPTION: &'static str = "Runs code with python3 and gives its output and exit code. \
                                       Print what you want to see.";

    fn asked(self) -> Asked {
        Asked {
            program: "python3".to_owned(),
            arguments: vec!["-c".to_owned(), self.code],
            environment: &[],
            reach: Reach::Agent,
            seconds: self.timeout,
            cwd: Given::new(&self.cwd),
        }
    }
}
