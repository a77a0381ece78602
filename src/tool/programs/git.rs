//! `git`: with an argument vector. A call that only looks is free for those who may not start
//! everything, so the repository, which anybody may have made, gets no say in what it starts.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{AsProgram, Asked, Reach, Terms};
use crate::policy::programs::{Started, Wanted, programs, started};
use crate::policy::{Leave, Permissions};

#[derive(Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Git {
    /// The arguments of git, each for itself: the subcommand first.
    args: Vec<String>,
    #[serde(flatten)]
    terms: Terms,
}

/// Before the subcommand of every call. They win over what the repository says.
const ALWAYS: &[&str] = &[
    "--no-pager",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.pager=cat",
    "-c",
    "protocol.ext.allow=never",
];

/// And of one that only looks: nothing checks a signature, looks into the work trees of submodules or
/// takes a directory that somebody put there for a repository.
const LOOKING: &[&str] = &[
    "-c",
    "log.showSignature=false",
    "-c",
    "gpg.program=/dev/null",
    "-c",
    "gpg.ssh.program=/dev/null",
    "-c",
    "gpg.x509.program=/dev/null",
    "-c",
    "diff.ignoreSubmodules=dirty",
    "-c",
    "diff.submodule=short",
    "-c",
    "status.submoduleSummary=false",
    "-c",
    "core.attributesFile=/dev/null",
    "-c",
    "safe.bareRepository=explicit",
];

/// Nobody is there who could edit something or type a password.
const UNATTENDED: &[(&str, &str)] = &[
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_EDITOR", "true"),
    ("GIT_SEQUENCE_EDITOR", "true"),
    ("GIT_SSH_COMMAND", "ssh"),
];

/// Whoever only looks reads no configuration but the repository's, asks no other machine, takes no lock
/// and writes nothing.
const LOOKS: &[(&str, &str)] = &[
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_EDITOR", "true"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_ALLOW_PROTOCOL", "none"),
    ("GIT_SSH_COMMAND", "false"),
    ("GIT_ASKPASS", "false"),
];

impl AsProgram for Git {
    const NAME: &'static str = "git";
    const DESCRIPTION: &'static str = "Runs git and gives its output and exit code. Hooks, pagers \
                                       and editors do not run.";

    fn leave(arguments: &Value, permissions: &Permissions) -> Leave {
        let given = arguments["args"].as_array().into_iter().flatten();
        let given: Vec<String> =
            given.filter_map(|word| word.as_str().map(str::to_owned)).collect();
        programs(permissions, Wanted::Git(&given))
    }

    fn asked(self) -> Asked {
        let words =
            |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let (arguments, environment, reach) = match started(&self.args) {
            Started::ToLook(looks) => ([words(ALWAYS), words(LOOKING), looks], LOOKS, Reach::Look),
            Started::AsAsked => ([words(ALWAYS), Vec::new(), self.args], UNATTENDED, Reach::Agent),
        };
        Asked {
            program: "git".to_owned(),
            arguments: arguments.concat(),
            environment,
            reach,
            terms: self.terms,
        }
    }
}
