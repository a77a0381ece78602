//! Which programs an agent may have started, and which calls of `git` only look. Pure.

mod git;

pub use git::{Started, started};

use super::{Leave, Level, Permissions};

/// What a call wants to have started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted<'a> {
    /// Something that may do anything.
    Anything,
    /// `git` with these arguments.
    Git(&'a [String]),
}

/// What an agent's level says to a program.
pub fn programs(permissions: &Permissions, wanted: Wanted<'_>) -> Leave {
    match (permissions.level(), wanted) {
        (Level::Sandboxed, _) => Leave::Never,
        (Level::Yolo, _) => Leave::Free,
        (Level::Trusted, Wanted::Anything) => Leave::Confirm,
        (Level::Trusted, Wanted::Git(arguments)) => match started(arguments) {
            Started::ToLook(_) => Leave::Free,
            Started::AsAsked => Leave::Confirm,
        },
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::config::PermissionsConfig;
    use crate::policy::{Grant, Presets};

    #[test]
    fn programs_follow_the_level_and_git_what_it_does() {
        let presets = Presets::new(&PermissionsConfig::default()).unwrap();
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let (looks, changes, nothing) = (words("status"), words("commit -m x"), Vec::new());
        let table = ["yolo", "trusted", "sandboxed", "worker"].map(|name| {
            let preset = Arc::clone(presets.get(name).unwrap());
            let permissions = Permissions::new(Grant::new(preset, "/".into(), vec![]), None, &[]);
            let git = |arguments| programs(&permissions, Wanted::Git(arguments));
            let anything = programs(&permissions, Wanted::Anything);
            (name, anything, git(&looks), git(&changes), git(&nothing))
        });
        let (free, ask, never) = (Leave::Free, Leave::Confirm, Leave::Never);
        assert_eq!(
            table,
            [
                ("yolo", free, free, free, free),
                ("trusted", ask, free, ask, ask),
                ("sandboxed", never, never, never, never),
                ("worker", never, never, never, never),
            ]
        );
    }
}
