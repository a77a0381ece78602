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

/// What to do about an error. It is told after the error and what caused it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Hint(pub String);

/// The error and, indented below it, what caused it and what can be done.
pub fn error(error: &anyhow::Error) {
    let hint = error.downcast_ref::<Hint>();
    let mut causes = error.chain().skip(usize::from(hint.is_some()));
    if let Some(first) = causes.next() {
        note(format_args!("error: {first}"));
    }
    for cause in causes {
        note(format_args!("  because: {cause}"));
    }
    if let Some(hint) = hint {
        note(format_args!("  hint: {hint}"));
    }
}
