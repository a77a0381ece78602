//! A wrong command line, told. What is unknown gets one line with what was probably meant; for all
//! else clap's own words are good.

use std::process::ExitCode;

use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::{Arguments, output};
use crate::config::words::meant;

const USAGE: u8 = 2;

/// Tells what clap has to say: help, the version, or what is wrong.
pub fn told(error: &clap::Error) -> ExitCode {
    let unknown = match error.kind() {
        ErrorKind::InvalidSubcommand => {
            Some(("command", ContextKind::InvalidSubcommand, ContextKind::SuggestedSubcommand))
        }
        ErrorKind::UnknownArgument => {
            Some(("argument", ContextKind::InvalidArg, ContextKind::SuggestedArg))
        }
        _ => None,
    };
    match unknown {
        Some((what, given, suggested)) => {
            let given = word(error, given).unwrap_or_default();
            // Ours counts two letters in the wrong order as one mistake.
            let known = nearest(&given, &typed()).or_else(|| word(error, suggested));
            unknown_word(what, &given, known.as_deref());
        }
        None => {
            // Whoever closed stdout or stderr does not want to know.
            let _ = error.print();
        }
    }
    // Of a usage error 2, of help and version 0.
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(USAGE))
}

/// Tells that a command has no subcommand of this name.
pub fn unknown_command(given: &str, command: &clap::Command) -> ExitCode {
    unknown_word("command", given, nearest(given, command).as_deref());
    ExitCode::from(USAGE)
}

fn unknown_word(what: &str, given: &str, known: Option<&str>) {
    let hint = match known {
        Some(known) => format!("did you mean `{known}`?"),
        None => "see --help".to_owned(),
    };
    output::note(format_args!("error: unknown {what} `{}`; {hint}", output::plain(given)));
}

/// The command that was typed, as far as there is one.
fn typed() -> clap::Command {
    let mut command = Arguments::command();
    for word in std::env::args_os().skip(1) {
        let found = word.to_str().and_then(|word| command.find_subcommand(word)).cloned();
        command = found.unwrap_or(command);
    }
    command
}

/// The subcommand that was probably meant.
fn nearest(given: &str, command: &clap::Command) -> Option<String> {
    let known = command.get_subcommands().filter(|known| !known.is_hide_set());
    let names: Vec<&str> = known.map(clap::Command::get_name).collect();
    meant(given, &names).map(str::to_owned)
}

/// The word itself, or of several suggestions the likeliest, which clap has last.
fn word(error: &clap::Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        ContextValue::Strings(texts) => texts.last().cloned(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Names that a command has itself and gets from one above it: clap would read one as the other.
    fn doubled(command: &clap::Command, above: &BTreeSet<String>, found: &mut Vec<String>) {
        let mut global = above.clone();
        for argument in command.get_arguments() {
            let name = argument.get_id().to_string();
            if above.contains(&name) {
                found.push(format!("{}: {name}", command.get_name()));
            }
            if argument.is_global_set() {
                global.insert(name);
            }
        }
        for below in command.get_subcommands() {
            doubled(below, &global, found);
        }
    }

    #[test]
    fn no_command_has_an_argument_that_all_have() {
        let mut found = Vec::new();
        doubled(&Arguments::command(), &BTreeSet::new(), &mut found);
        assert_eq!(found, [""; 0]);
    }
}
