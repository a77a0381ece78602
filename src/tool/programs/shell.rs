//! `shell_UNSAFE`: a command line for the machine's shell, which does with it what it likes.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{AsProgram, Asked, Reach, Terms};
use crate::policy::Subject;

#[derive(Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Shell {
    /// The command line for sh.
    command: String,
    #[serde(flatten)]
    terms: Terms,
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
            terms: self.terms,
        }
    }
}
