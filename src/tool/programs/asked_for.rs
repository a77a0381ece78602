//! A program that was started, in the words of whoever asked for it: what the tools put before the
//! subcommand of `git`, and what they keep away, was nobody's wish. For those who look on. Pure.

use crate::world::Program;

/// The options of `git` that keep drivers and submodules away.
const KEPT_AWAY: [&str; 3] = ["--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty"];

/// The program by this name, and its arguments.
pub fn asked_for(name: &str, started: &Program) -> Vec<String> {
    let given = started.arguments.iter().map(|word| word.to_string_lossy().into_owned());
    let mut words = vec![name.to_owned()];
    if name != "git" {
        words.extend(given);
        return words;
    }
    let mut given = given.skip_while(|word| word == "--no-pager").peekable();
    while given.next_if(|word| word == "-c").is_some() {
        given.next();
    }
    words.extend(given.filter(|word| !KEPT_AWAY.contains(&word.as_str())));
    words
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::world::Confinement;

    fn named(name: &str, arguments: &[&str]) -> String {
        let started = Program {
            program: name.into(),
            arguments: arguments.iter().map(Into::into).collect(),
            directory: PathBuf::from("/"),
            environment: Vec::new(),
            confinement: Confinement::None,
        };
        asked_for(name, &started).join(" ")
    }

    #[test]
    fn only_what_was_put_before_the_subcommand_of_git_is_left_out() {
        assert_eq!(named("make", &["-c", "test"]), "make -c test");
        let given = ["--no-pager", "-c", "core.pager=cat", "diff", "--no-ext-diff", "-c"];
        assert_eq!(named("git", &given), "git diff -c");
    }
}
