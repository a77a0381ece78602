//! Writing for people and programs: results to stdout, the rest to stderr.
//! A reader that went away (a closed pipe) is no error of ours.

use std::io::Write;

pub fn line(text: impl std::fmt::Display) {
    let _ = writeln!(std::io::stdout().lock(), "{text}");
}

pub fn json(value: &impl serde::Serialize) {
    let text = serde_json::to_string_pretty(value).expect("results have only string keys");
    line(text);
}

pub fn note(text: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// The error and, indented below it, what caused it.
pub fn error(error: &anyhow::Error) {
    note(format_args!("error: {error}"));
    for cause in error.chain().skip(1) {
        note(format_args!("  because: {cause}"));
    }
}
