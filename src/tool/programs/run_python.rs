//! `run_python`: code for the machine's own `python3`.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{AsProgram, Asked, Reach, Terms};

#[derive(Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct RunPython {
    /// What python3 runs.
    code: String,
    #[serde(flatten)]
    terms: Terms,
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
            terms: self.terms,
        }
    }
}
